"""Functions under the instruments, right ones and faulty ones. Run by `case_runner`; returns notes as JSON."""

import ctypes
import dataclasses
import typing

import numpy
import torch
import triton
import triton.language as tl

from drills import instruments
from drills.instruments.notes import CallOptions

CASES = {}


def case(function):
    """Have the runner run it."""
    CASES[function.__name__] = function
    return function


def seen(function, inputs, inplace=(), **options):
    """Call `function` with the inputs (by name) as the worker would; its notes, results and exception."""
    names, args = list(inputs), tuple(inputs.values())
    placed = instruments.place(args, "cpu", names)
    record = instruments.recording(CallOptions(**options), dict(zip(names, placed.args, strict=True)), inplace)
    results = raised = None
    with record:
        try:
            results = function(*placed.args)
        except Exception as error:
            raised = error
    notes = record.notes(results)
    notes.findings += placed.findings([names.index(name) for name in inplace])
    tree = dataclasses.asdict(notes)
    tree["raised"] = f"{type(raised).__name__}: {raised}" if raised else ""
    tensors = results if isinstance(results, tuple) else (results,)
    tree["results"] = [one.tolist() if isinstance(one, torch.Tensor) else one for one in tensors]
    return tree


@triton.jit
def copy_kernel(x_ptr, o_ptr, stride_row, D, BLOCK_D: tl.constexpr):
    d = tl.arange(0, BLOCK_D)
    x = tl.load(x_ptr + tl.program_id(0) * stride_row + d)
    tl.store(o_ptr + tl.program_id(0) * stride_row + d, x, mask=d < D)


@triton.jit
def masked_copy_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + at, tl.load(x_ptr + at, mask=at < n), mask=at < n)


def masked_copy(x):
    o = torch.empty_like(x)
    masked_copy_kernel[(triton.cdiv(x.numel(), 8),)](x, o, x.numel(), 8)
    return o


@case
def a_right_copy():
    return seen(masked_copy, {"x": torch.arange(12.0)})


@case
def a_row_read_past_its_end():
    def merge(v_a):
        o = torch.empty_like(v_a)
        copy_kernel[(40,)](v_a, o, 80, 80, BLOCK_D=128)
        return o

    return seen(merge, {"v_a": torch.ones(40, 80)}, order_seed=None)


@triton.jit
def store_all_kernel(o_ptr, BLOCK: tl.constexpr):
    tl.store(o_ptr + tl.arange(0, BLOCK), 1.0)


@case
def a_store_past_the_end():
    def fill(x):
        o = torch.empty_like(x)
        store_all_kernel[(1,)](o, 4)
        return o

    return seen(fill, {"x": torch.ones(3)})


@triton.jit
def shifted_kernel(x_ptr, o_ptr, by, BLOCK: tl.constexpr):
    d = tl.arange(0, BLOCK)
    tl.store(o_ptr + d, tl.load(x_ptr + by + d))


def shifted(by):
    def function(x):
        o = torch.empty(4)
        shifted_kernel[(1,)](x, o, by, 4)
        return o

    return function


@case
def a_read_before_the_start():
    return seen(shifted(-2), {"x": torch.ones(4)})


@case
def a_read_of_a_gap():
    return seen(shifted(2), {"x": torch.ones(4, 8)[:, :3]})


@case
def a_read_of_a_gap_of_a_tensor_passed_twice():
    def function(x):
        o = torch.empty(1)
        into_the_other_kernel[(1,)](x, x, o, 1)
        return o

    return seen(function, {"x": torch.ones(8)[::2]})


@case
def a_read_within_a_sliced_row():
    return seen(shifted(8), {"x": torch.ones(4, 8)[:, :4]})


@case
def a_caught_fault_is_found():
    def careful(x):
        o = torch.zeros(4)
        try:
            shifted_kernel[(1,)](x, o, 100, 4)
        except Exception:
            masked_copy_kernel[(1,)](x, o, 4, 8)
        return o

    return seen(careful, {"x": torch.ones(4)})


@case
def an_empty_tensor_is_read():
    return seen(shifted(0), {"x": torch.ones(0)})


@triton.jit
def into_the_other_kernel(a_ptr, b_ptr, o_ptr, apart):
    tl.store(o_ptr, tl.load(a_ptr + apart) + tl.load(b_ptr))


@case
def a_pointer_of_one_tensor_into_another():
    def function(a, b):
        o = torch.empty(1)
        into_the_other_kernel[(1,)](a, b, o, (b.data_ptr() - a.data_ptr()) // 4)
        return o

    return seen(function, {"a": torch.ones(4), "b": torch.ones(6)})


@case
def two_views_of_one_cache():
    """K's pointer and the distance to V: legal, both are one tensor."""

    def function(cache):
        o = torch.empty(1)
        into_the_other_kernel[(1,)](cache[:, 0], cache[:, 1], o, cache.stride(1))
        return o

    return seen(function, {"cache": torch.ones(2, 2, 3)})


@triton.jit
def atomic_kernel(o_ptr, n, BLOCK: tl.constexpr):
    tl.atomic_add(o_ptr + tl.arange(0, BLOCK), 1.0, mask=tl.arange(0, BLOCK) <= n)


@case
def an_atomic_past_the_end():
    def function(x):
        o = torch.zeros(3)
        atomic_kernel[(1,)](o, 3, 4)
        return o

    return seen(function, {"x": torch.ones(3)})


@triton.jit
def block_pointer_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr, CHECK: tl.constexpr):
    block = tl.make_block_ptr(x_ptr, (n,), (1,), (0,), (BLOCK,), (0,))
    x = tl.load(block, boundary_check=(0,)) if CHECK else tl.load(block)
    tl.store(o_ptr + tl.arange(0, BLOCK), x, mask=tl.arange(0, BLOCK) < n)


def by_block_pointer(check):
    def function(x):
        o = torch.empty_like(x)
        block_pointer_kernel[(1,)](x, o, 3, 4, check)
        return o

    return function


@case
def a_block_pointer_unchecked():
    return seen(by_block_pointer(False), {"x": torch.ones(3)})


@case
def a_block_pointer_checked():
    return seen(by_block_pointer(True), {"x": torch.ones(3)})


@triton.jit
def descriptor_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    source = tl.make_tensor_descriptor(x_ptr, [n, 8], [8, 1], [BLOCK, 8])
    target = tl.make_tensor_descriptor(o_ptr, [n, 8], [8, 1], [BLOCK, 8])
    target.store([0, 0], source.load([0, 0]))


@case
def a_tensor_descriptor():
    def function(x):
        o = torch.empty_like(x)
        descriptor_kernel[(1,)](x, o, 3, 4)
        return o

    return seen(function, {"x": torch.ones(3, 8)})


@triton.jit
def far_kernel(x_ptr, o_ptr, stride, WIDE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) if WIDE else tl.program_id(0)
    tl.store(o_ptr + tl.program_id(0), tl.load(x_ptr + row * stride))


def far(wide):
    x = torch.empty_strided((3, 1), (2**30 + 16, 1), dtype=torch.float16)
    x.copy_(torch.tensor([[1.0], [2.0], [3.0]]))

    def function(x):
        o = torch.empty(3, dtype=x.dtype)
        far_kernel[(3,)](x, o, x.stride(0), wide)
        return o

    return seen(function, {"x": x})


@case
def an_offset_past_2_to_the_31_in_32_bits():
    return far(False)


@case
def an_offset_past_2_to_the_31_in_64_bits():
    return far(True)


@triton.jit
def column_blocks_kernel(v_ptr, s_ptr, D, BLOCK: tl.constexpr, OWNED: tl.constexpr):
    d = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    tl.store(v_ptr + tl.program_id(0) * D + d, 1.0, mask=d < D)
    if not OWNED or tl.program_id(1) == 0:
        tl.store(s_ptr + tl.program_id(0), 2.0)


def column_blocks(owned):
    def function(x):
        v, s = torch.empty_like(x), torch.empty(x.shape[0])
        column_blocks_kernel[(x.shape[0], 2)](v, s, x.shape[1], 4, owned)
        return v, s

    return function


@case
def each_block_of_columns_stores_s():
    return seen(column_blocks(False), {"x": torch.ones(3, 6)}, order_seed=None)


@case
def one_block_of_columns_stores_s():
    return seen(column_blocks(True), {"x": torch.ones(3, 6)})


@triton.jit
def neighbor_kernel(x_ptr, o_ptr, n, AHEAD: tl.constexpr):
    row = tl.program_id(0)
    tl.store(o_ptr + row, tl.load(x_ptr + row) + tl.load(o_ptr + (row + AHEAD) % n))


def neighbor(ahead):
    def function(x):
        o = torch.zeros(4)
        neighbor_kernel[(4,)](x, o, 4, ahead)
        return o

    return function


@case
def a_program_reads_its_neighbors_result():
    return seen(neighbor(1), {"x": torch.ones(4)}, order_seed=None)


@case
def a_program_reads_the_result_before_it():
    return seen(neighbor(3), {"x": torch.ones(4)}, order_seed=None)


@case
def a_program_reads_its_own_result():
    return seen(neighbor(0), {"x": torch.ones(4)})


@triton.jit
def lanes_kernel(o_ptr, SAME: tl.constexpr):
    d = tl.arange(0, 4)
    tl.store(o_ptr + d // 2, (d // 2 if SAME else d).to(tl.float32))


def lanes(same):
    def function(x):
        o = torch.empty(2)
        lanes_kernel[(1,)](o, same)
        return o

    return function


@case
def two_lanes_store_different_values():
    return seen(lanes(False), {"x": torch.ones(2)})


@case
def two_lanes_store_the_same_value():
    return seen(lanes(True), {"x": torch.ones(2)})


@triton.jit
def last_one_adds_kernel(x_ptr, part_ptr, count_ptr, o_ptr, n, SEM: tl.constexpr):
    row = tl.program_id(0)
    tl.store(part_ptr + row, tl.load(x_ptr + row))
    if tl.atomic_add(count_ptr, 1, sem=SEM) == n - 1:
        tl.store(o_ptr, tl.sum(tl.load(part_ptr + tl.arange(0, 4))))


def last_one_adds(sem):
    def function(x):
        parts, count, o = torch.empty(4), torch.zeros(1, dtype=torch.int32), torch.empty(1)
        last_one_adds_kernel[(4,)](x, parts, count, o, 4, sem)
        return o

    return function


@case
def the_last_program_adds_up_after_an_atomic():
    return seen(last_one_adds("acq_rel"), {"x": torch.ones(4)})


@case
def the_last_program_adds_up_after_a_relaxed_atomic():
    return seen(last_one_adds("relaxed"), {"x": torch.ones(4)})


@triton.jit
def counts_first_kernel(x_ptr, count_ptr, o_ptr, LOCKED: tl.constexpr):
    """LOCKED: nobody else is between the two atomic operations; else the one in front orders nothing."""
    if LOCKED:
        while tl.atomic_cas(count_ptr, 0, 1) != 0:
            pass
    else:
        tl.atomic_add(count_ptr, 1)
    tl.store(o_ptr, tl.load(o_ptr) + tl.load(x_ptr + tl.program_id(0)))
    if LOCKED:
        tl.atomic_xchg(count_ptr, 0)


def adds_after_an_atomic(locked):
    def function(x):
        o = torch.zeros(1)
        counts_first_kernel[(4,)](x, torch.zeros(1, dtype=torch.int32), o, locked)
        return o

    return function


@case
def programs_add_without_atomics_after_an_atomic():
    return seen(adds_after_an_atomic(False), {"x": torch.ones(4)})


@case
def programs_add_under_a_lock():
    return seen(adds_after_an_atomic(True), {"x": torch.ones(4)})


@triton.jit
def pass_on_kernel(v, o_ptr):
    tl.store(o_ptr + tl.program_id(0), tl.load(v + tl.program_id(0)))


@case
def a_workspace_is_passed_under_an_arguments_name():
    def function(v):
        work, o = torch.empty(4), torch.empty(4)
        pass_on_kernel[(4,)](v, work)
        pass_on_kernel[(4,)](work, o)
        return o

    return seen(function, {"v": torch.ones(4)})


@triton.jit
def adds_up_kernel(x_ptr, o_ptr):
    tl.atomic_add(o_ptr, tl.load(x_ptr + tl.program_id(0)))


@case
def programs_add_with_atomics():
    def function(x):
        o = torch.zeros(1)
        adds_up_kernel[(4,)](x, o)
        return o

    return seen(function, {"x": torch.ones(4)})


@case
def a_tail_is_never_written():
    def function(x):
        v, s = torch.empty(2, 6), torch.empty(2)
        column_blocks_kernel[(2, 1)](v, s, 6, 4, True)
        return v, s

    return seen(function, {"x": torch.ones(2, 6)})


@case
def a_cast_of_what_was_never_written():
    def function(x):
        v = torch.empty(12)
        masked_copy_kernel[(1,)](x, v, 8, 8)
        return v.view(2, 6).t().contiguous().to(torch.float16)

    return seen(function, {"x": torch.ones(12)})


@case
def a_cast_of_what_was_written():
    def function(x):
        v = torch.empty(12)
        masked_copy_kernel[(2,)](x, v, 12, 8)
        return torch.stack([v.view(3, 4).t().contiguous().to(torch.float16), torch.zeros(4, 3, dtype=torch.float16)])

    return seen(function, {"x": torch.ones(12)})


@case
def a_fill_and_a_kernel():
    def function(x):
        v = torch.full((12,), 7.0)
        masked_copy_kernel[(1,)](x, v, 8, 8)
        return v

    return seen(function, {"x": torch.ones(12)})


@case
def a_result_without_a_kernel():
    return seen(lambda x: torch.zeros_like(x), {"x": torch.ones(3)})


@case
def nothing_is_launched():
    return seen(lambda x: torch.empty_like(x), {"x": torch.ones(3)})


@triton.jit
def store_in_the_loop_kernel(o_ptr, N, B: tl.constexpr):
    for _ in range(0, N, B):
        tl.store(o_ptr + tl.program_id(0), 1.0)


def stored_in_the_loop(x, steps):
    o = torch.empty(2)
    store_in_the_loop_kernel[(2,)](o, steps, 4)
    return o


@case
def a_kernel_that_stores_nothing():
    return seen(lambda x: stored_in_the_loop(x, 0), {"x": torch.ones(2, 3)})


@case
def a_loop_that_an_input_of_size_0_does_not_enter():
    return seen(lambda x: stored_in_the_loop(x, x.shape[1]), {"x": torch.ones(2, 0)})


@case
def a_copy_of_an_input():
    return seen(lambda x: x.clone(), {"x": torch.ones(3)})


@case
def an_input_of_size_0_needs_no_kernel():
    return seen(lambda x: torch.zeros(2, 3), {"x": torch.ones(2, 0, 3)})


@case
def an_input_of_size_0_and_a_result_that_is_not_filled():
    return seen(lambda x: torch.empty(2), {"x": torch.ones(2, 0)})


@case
def results_from_numpy():
    def function(x):
        masked_copy(x)
        return torch.from_numpy(x.numpy() * 2)

    return seen(function, {"x": torch.ones(3)})


@case
def part_of_a_result_from_numpy():
    def function(x):
        o = masked_copy(x)
        o[1:].copy_(torch.from_numpy(numpy.ones(2, dtype=numpy.float32)))
        return o

    return seen(function, {"x": torch.ones(3)})


@case
def results_that_are_inputs_or_each_other():
    def function(x):
        o = masked_copy(x)
        return o, o[1:], x

    return seen(function, {"x": torch.ones(3)})


@case
def an_input_handed_back():
    return seen(lambda x: x, {"x": torch.ones(3)})


@case
def two_halves_of_one_allocation():
    def function(x):
        both = torch.empty(2, 3)
        masked_copy_kernel[(1,)](x, both[0], 3, 8)
        masked_copy_kernel[(1,)](x, both[1], 3, 8)
        return both[0], both[1]

    return seen(function, {"x": torch.ones(3)})


@triton.jit
def leaning_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    d = tl.arange(0, BLOCK)
    tl.store(o_ptr, tl.sum(tl.load(x_ptr + d, mask=d < n)))


def leaning(x):
    o = torch.empty(1, dtype=x.dtype)
    leaning_kernel[(1,)](x, o, x.numel(), 4)
    return o


@case
def a_masked_lane_is_used():
    return seen(leaning, {"x": torch.ones(3)})


@case
def a_masked_lane_is_used_with_zeros():
    return seen(leaning, {"x": torch.ones(3)}, masked_fill="zero")


@case
def a_masked_lane_is_used_with_minus_inf():
    return seen(leaning, {"x": torch.ones(3)}, masked_fill="low")


@case
def a_masked_lane_is_used_with_minus_inf_in_bfloat16():
    return seen(leaning, {"x": torch.ones(3, dtype=torch.bfloat16)}, masked_fill="low")


@case
def a_size_of_1_without_a_kernel():
    return seen(lambda v, s: v.clone(), {"v": torch.ones(1, 3), "s": torch.ones(3)})


class Strides(typing.NamedTuple):
    row: int
    column: int


@triton.jit
def named_kernel(o_ptr, by, FIXED: tl.constexpr):
    tl.store(o_ptr, by.row * 10.0 + by.column + FIXED.row)


@case
def strides_in_a_named_tuple():
    def function(x):
        o = torch.empty(1)
        named_kernel[(1,)](o, Strides(*x.stride()), Strides(100, 0))
        return o

    return seen(function, {"x": torch.ones(2, 3)})


@triton.jit
def topping_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    d = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + d, mask=d < n)
    tl.store(o_ptr, tl.max(x, axis=0))
    tl.store(o_ptr + 1, tl.sum(tl.where(x == x, 1.0, 0.0), axis=0))
    tl.store(o_ptr + 2, tl.sum(tl.where(d < n, x, 0.0), axis=0))


def topping(x):
    o = torch.empty(3, dtype=x.dtype)
    topping_kernel[(1,)](x, o, x.numel(), 4)
    return o


@case
def a_masked_lane_is_the_maximum():
    return seen(topping, {"x": -torch.ones(2)})


@case
def a_masked_lane_is_the_maximum_in_float16():
    return seen(topping, {"x": -torch.ones(2, dtype=torch.float16)})


@case
def a_masked_lane_is_the_maximum_in_bfloat16():
    return seen(topping, {"x": -torch.ones(2, dtype=torch.bfloat16)})


@case
def one_masked_lane_is_the_maximum():
    return seen(topping, {"x": -torch.ones(3)}, order_seed=0)


@case
def one_masked_lane_is_the_maximum_by_another_seed():
    return seen(topping, {"x": -torch.ones(3)}, order_seed=1)


@triton.jit
def checkered_kernel(x_ptr, o_ptr, n, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    r, d = tl.arange(0, ROWS), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + r[:, None] * n + d[None, :], mask=(d < n)[None, :])
    tl.store(o_ptr + r, tl.max(x, axis=1))


@case
def a_masked_lane_of_every_row_is_the_maximum():
    def function(x):
        o = torch.empty(2)
        checkered_kernel[(1,)](x, o, 3, 2, 4)
        return o

    return seen(function, {"x": -torch.ones(2, 3)})


@case
def a_masked_integer_lane_is_used():
    return seen(leaning, {"x": torch.ones(3, dtype=torch.int32)})


@triton.jit
def one_lane_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    d = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + d, mask=d < n, other=0.0)
    y = tl.load(x_ptr, mask=n > 0, other=0)
    tl.store(o_ptr + d, x + y)


@case
def other_of_0_in_one_lane():
    def function(x):
        o = torch.empty_like(x)
        one_lane_kernel[(1,)](x, o, 0, 1)
        return o

    return seen(function, {"x": torch.full((1,), 5.0, dtype=torch.float16)})


@triton.jit
def reading_kernel(x_ptr, o_ptr):
    tl.store(o_ptr, tl.load(x_ptr))


def reads_fresh_memory(dtype):
    def function(x):
        o = torch.zeros(1, dtype=dtype)
        reading_kernel[(1,)](torch.empty(1, dtype=dtype), o)
        return o

    return function


@case
def fresh_memory_is_read():
    return seen(reads_fresh_memory(torch.float32), {"x": torch.ones(1)})


@case
def fresh_integers_are_read():
    return seen(reads_fresh_memory(torch.int64), {"x": torch.ones(1)})


@case
def fresh_memory_is_read_with_zeros():
    return seen(reads_fresh_memory(torch.float32), {"x": torch.ones(1)}, empty_fill="zero")


@triton.jit
def ticket_kernel(count_ptr, o_ptr):
    tl.store(o_ptr + tl.program_id(0), tl.atomic_add(count_ptr, 1))


def tickets(x):
    count, o = torch.zeros(1, dtype=torch.int32), torch.empty(8, dtype=torch.int32)
    ticket_kernel[(8,)](count, o)
    return o


@case
def programs_in_order():
    return seen(tickets, {"x": torch.ones(1)}, order_seed=None)


@case
def programs_shuffled():
    return seen(tickets, {"x": torch.ones(1)}, order_seed=1)


@case
def programs_shuffled_in_the_same_way_again():
    return seen(tickets, {"x": torch.ones(1)}, order_seed=1)


@case
def torch_computes():
    def function(x):
        o = masked_copy(x)
        y = (x - 1).exp() @ x
        if x.max() > 0 and y.item() > 0:
            o.mul_(2)
        return o

    return seen(function, {"x": torch.ones(3)})


@case
def torch_picks_by_index():
    def function(x, at):
        o = masked_copy(x[at[at]])
        x.index_select(0, at)
        o[at] = x
        return o

    return seen(function, {"x": torch.ones(3), "at": torch.tensor([2, 0, 1])})


@case
def values_are_read_out():
    def function(x):
        x.tolist()
        x.numpy()
        numpy.asarray(x)
        numpy.from_dlpack(x)
        ctypes.string_at(x.data_ptr(), 4)
        return masked_copy(x)

    return seen(function, {"x": torch.ones(3)})


@case
def values_are_disguised_as_integers():
    def function(x):
        y = (x.view(torch.int32) + 1).tolist()
        z = x.to(torch.int64) * 2
        return masked_copy(x), masked_copy(z.float() if y else x)

    return seen(function, {"x": torch.ones(3)})


@case
def indices_are_computed_with():
    def function(x, indptr):
        longest = int((indptr[1:] - indptr[:-1]).max())
        first = indptr.tolist()[0] + indptr[0].item()
        order = torch.arange(longest, dtype=torch.int32) + first
        pages = int(((indptr[1:] - indptr[:-1]).float() / 2).ceil().sum())
        print(x, f"{x}", pages)
        return masked_copy(x.reshape(-1)[order.numel() * 0 :].contiguous())

    return seen(function, {"x": torch.ones(3), "indptr": torch.tensor([0, 2, 3])})


@case
def torch_moves_data_about():
    def function(x):
        both = torch.cat([x, x]).view(2, 3).t().contiguous().to(torch.float32)
        padded = torch.nn.functional.pad(both, (0, 2))
        room = torch.zeros(2, 3).fill_(1.0)
        room[0].copy_(x)
        room.t_().t_().unsqueeze_(0).squeeze_(0)
        return masked_copy(torch.stack([padded[:, 0], room[1]]).expand(2, 3).clone())

    return seen(function, {"x": torch.ones(3, dtype=torch.float16)})


@case
def an_input_is_changed():
    def function(x):
        store_all_kernel[(1,)](x, 2)
        return masked_copy(x)

    return seen(function, {"x": torch.zeros(4)})


@case
def an_input_is_changed_in_place():
    def function(x):
        store_all_kernel[(1,)](x, 2)

    return seen(function, {"x": torch.zeros(4)}, inplace=("x",))


@case
def torch_writes_in_place():
    def function(x):
        y = x * 2
        x.copy_(y)

    return seen(function, {"x": torch.ones(4)}, inplace=("x",))


@triton.jit
def traffic_kernel(x_ptr, s_ptr, o_ptr, BLOCK: tl.constexpr):
    d = tl.arange(0, BLOCK)
    again = tl.load(x_ptr + tl.program_id(0) * BLOCK + d) + tl.load(x_ptr + d)
    shared = tl.load(s_ptr + d // 4)
    tile = tl.load(x_ptr + d[:, None] % 2 * BLOCK + (d % 4)[None, :])
    tl.store(o_ptr + tl.program_id(0) * BLOCK + d, again + shared + tl.sum(tile) * 0, mask=d < BLOCK - 1)


@case
def bytes_are_counted():
    def function(x, s):
        o = torch.zeros_like(x)
        traffic_kernel[(2,)](x, s, o, 8)
        return o

    return seen(function, {"x": torch.ones(2, 8), "s": torch.ones(2)})


@triton.jit(do_not_specialize=["n"], do_not_specialize_on_alignment=["stride"])
def signature_kernel(
    x_ptr,
    y_ptr,
    n,
    stride,
    one,
    wide,
    big: tl.int64,
    scale,
    flag,
    none,
    pair,
    KIND: tl.constexpr,
    COMBINE: tl.constexpr,
):
    tl.store(y_ptr + tl.arange(0, 4), tl.load(x_ptr + tl.arange(0, 4)))


@triton.jit
def combine(a, b):
    return a + b


@case
def a_launch_is_noted():
    def function(x):
        o = torch.empty_like(x)
        arguments = (1, 32, 1, 2**40, 7, 0.5, True, None, (x, 16), tl.float16, combine)
        signature_kernel[1, 1](x[1:], o, *arguments, num_warps=8, num_stages=2, maxnreg=64)
        return o

    return seen(function, {"x": torch.ones(5)[:5]})


@triton.jit
def helper(x_ptr, at):
    return tl.load(x_ptr + at)


@triton.jit
def with_helper_kernel(x_ptr, o_ptr):
    tl.store(o_ptr, helper(x_ptr, 9))


@case
def a_fault_in_a_device_function():
    def function(x):
        o = torch.empty(1)
        with_helper_kernel[(1,)](x, o)
        return o

    return seen(function, {"x": torch.ones(4)})


@triton.jit
def raising_kernel(x_ptr, o_ptr):
    x = tl.load(x_ptr + tl.arange(0, 4))
    y = x + tl.arange(0, 8)
    tl.store(o_ptr, tl.sum(y))


@case
def an_exception_in_a_kernel():
    def function(x):
        raising_kernel[(1,)](x, torch.empty(1))

    return seen(function, {"x": torch.ones(4)})


@case
def nothing_is_launched_on_an_empty_grid():
    def function(x):
        o = torch.empty(0)
        masked_copy_kernel[(0,)](x, o, 0, 8)
        return o

    return seen(function, {"x": torch.ones(0)})


@case
def arguments_in_lists():
    def function(levels):
        return masked_copy(levels[0][1])

    return seen(function, {"levels": [(torch.ones(2), torch.ones(3))]})


@triton.jit
def table_kernel(table_ptr, o_ptr, at):
    x_ptr = tl.load(table_ptr + tl.program_id(0)).to(tl.pointer_type(tl.float32))
    tl.store(o_ptr + tl.program_id(0), tl.load(x_ptr + at))


def by_table(at):
    def function(x, y):
        o = torch.empty(2)
        table_kernel[(2,)](torch.tensor([x.data_ptr(), y.data_ptr()]), o, at)
        return o

    return function


@case
def pointers_from_a_table():
    return seen(by_table(1), {"x": torch.tensor([1.0, 2.0]), "y": torch.tensor([3.0, 4.0])})


@case
def a_pointer_from_a_table_past_the_end():
    return seen(by_table(2), {"x": torch.tensor([1.0, 2.0]), "y": torch.tensor([3.0, 4.0])}, order_seed=None)


ROOM = torch.empty(4)


@case
def a_buffer_from_before_the_call():
    def function(x):
        masked_copy_kernel[(1,)](x, ROOM, 4, 8)
        return ROOM

    return seen(function, {"x": torch.ones(4)})


@triton.autotune([triton.Config({"BLOCK": 8}, num_warps=2, num_stages=4), triton.Config({"BLOCK": 4})], key=[])
@triton.jit
def tuned_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + at, tl.load(x_ptr + at, mask=at < n), mask=at < n)


@case
def an_autotuned_launch_is_noted_once():
    def function(x):
        o = torch.empty_like(x)
        tuned_kernel[lambda meta: (triton.cdiv(4, meta["BLOCK"]),)](x, o, 4)
        return o

    return seen(function, {"x": torch.ones(4)})


@case
def an_empty_list_needs_no_launch():
    return seen(lambda q, levels: torch.zeros_like(q), {"q": torch.ones(3), "levels": []})


@case
def a_list_with_something_in_it_needs_a_launch():
    return seen(lambda q, levels: torch.zeros_like(q), {"q": torch.ones(3), "levels": [(torch.ones(1),)]})
