"""Functions that are called twice, with other values each time. Run by `case_runner`; returns both calls' notes.

`secret` stands for what a function has read of its inputs unseen.
"""

import math
import struct

import torch
import triton
import triton.language as tl
from recorder_cases import masked_copy, seen

CASES = {}
TABLE = torch.arange(100.0)
KEPT = {}
CONSTANT = tl.constexpr(0)


def case(function):
    """Have the runner call it with two secrets."""
    CASES[function.__name__] = lambda: [both(function, secret) for secret in (3, 5)]
    return function


def both(function, secret):
    """Its notes with this secret."""
    x = torch.full((4,), float(secret))
    return seen(lambda x, index: function(x, index, secret), {"x": x, "index": torch.tensor([1, 2])}, ["x"])


@triton.jit
def told_kernel(x_ptr, o_ptr, told):
    at = tl.arange(0, 4)
    tl.store(o_ptr + at, tl.load(x_ptr + at) + told)


@triton.jit
def tuple_kernel(x_ptr, o_ptr, told):
    at = tl.arange(0, 4)
    tl.store(o_ptr + at, tl.load(x_ptr + at) + told[0] + told[1][0])


@triton.jit
def constant_kernel(x_ptr, o_ptr, TOLD: tl.constexpr):
    at = tl.arange(0, 4)
    tl.store(o_ptr + at, tl.load(x_ptr + at) + TOLD)


@triton.jit
def global_kernel(x_ptr, o_ptr):
    at = tl.arange(0, 4)
    tl.store(o_ptr + at, tl.load(x_ptr + at) + CONSTANT)


@triton.jit
def object_kernel(x_ptr, o_ptr, TOLD: tl.constexpr):
    at = tl.arange(0, 4)
    tl.store(o_ptr + at, tl.load(x_ptr + at) + TOLD.secret)


@triton.jit
def counting_kernel(x_ptr, o_ptr):
    at = tl.arange(0, 4)
    if tl.program_id(0) == 0:
        tl.store(o_ptr + at, tl.load(x_ptr + at) + tl.num_programs(0))


@triton.jit
def table_kernel(x_ptr, o_ptr, table_ptr):
    at = tl.arange(0, 4)
    tl.store(o_ptr + at, tl.load(x_ptr + at) + tl.load(table_ptr).to(tl.float32))


@triton.jit
def address_kernel(x_ptr, o_ptr, table_ptr):
    at = tl.arange(0, 4)
    tl.store(o_ptr + at, tl.load(x_ptr + at) + table_ptr.to(tl.int64).to(tl.float32))


@triton.jit
def pointers_kernel(x_ptr, o_ptr, pointers_ptr):
    at = tl.arange(0, 4)
    other = tl.load(pointers_ptr).to(tl.pointer_type(tl.float32))
    tl.store(o_ptr + at, tl.load(x_ptr + at) + tl.load(other))


@triton.jit
def chosen_kernel(x_ptr, o_ptr, pointers_ptr):
    at = tl.arange(0, 4)
    chosen = (tl.load(x_ptr) > 4.0).to(tl.int32)
    other = tl.load(pointers_ptr + chosen).to(tl.pointer_type(tl.float32))
    tl.store(o_ptr + at, tl.load(x_ptr + at) + tl.load(other))


@triton.jit
def some_kernel(x_ptr, o_ptr):
    at = tl.arange(0, 4)
    x = tl.load(x_ptr + at)
    tl.store(o_ptr + at, x, mask=(at < 2) | (x > 4.0))


@triton.jit
def workspace_kernel(x_ptr, o_ptr, space_ptr, count_ptr):
    at = tl.arange(0, 4)
    tl.store(space_ptr + at, tl.load(x_ptr + at))
    tl.store(o_ptr + at, tl.load(space_ptr + at) + tl.load(count_ptr))
    tl.store(count_ptr, 0.0)


def told(kernel, x, *more, grid=(1,), **keywords):
    o = torch.empty(4)
    kernel[grid](x, o, *more, **keywords)
    return o


@case
def a_number(x, index, secret):
    return told(told_kernel, x, secret + 0.5)


@case
def an_integer(x, index, secret):
    return told(told_kernel, x, 10 * secret)


@case
def a_truth(x, index, secret):
    return told(told_kernel, x, secret > 4)


@case
def the_bits_of_a_nan(x, index, secret):
    return told(told_kernel, x, struct.unpack("<d", struct.pack("<Q", (0x7FF8 << 48) + (secret << 30)))[0])


@case
def a_tuple(x, index, secret):
    return told(tuple_kernel, x, (1.0, (float(secret), 2.0)))


@case
def a_constant(x, index, secret):
    return told(constant_kernel, x, TOLD=secret)


@case
def a_constant_of_a_module(x, index, secret):
    global CONSTANT
    CONSTANT = tl.constexpr(secret)
    return told(global_kernel, x)


@case
def what_a_kernel_captured(x, index, secret):
    number = tl.constexpr(secret)

    @triton.jit
    def captured_kernel(x_ptr, o_ptr):
        at = tl.arange(0, 4)
        tl.store(o_ptr + at, tl.load(x_ptr + at) + number)

    return told(captured_kernel, x)


@case
def an_object(x, index, secret):
    holder = type("Holder", (), {})()
    holder.secret = secret
    return told(object_kernel, x, TOLD=holder)


@case
def the_size_of_a_grid(x, index, secret):
    return told(counting_kernel, x, grid=(secret,))


@case
def the_number_of_launches(x, index, secret):
    return [told(told_kernel, x, 1.0) for _ in range(secret)][-1]


@case
def one_of_two_kernels(x, index, secret):
    return told(counting_kernel, x) if secret > 4 else told(global_kernel, x)


@case
def a_place_in_a_table(x, index, secret):
    return told(table_kernel, x, torch.arange(10.0)[secret:])


@case
def a_place_in_a_table_of_the_module(x, index, secret):
    return told(table_kernel, x, TABLE[secret:])


@case
def a_place_in_an_input(x, index, secret):
    return told(table_kernel, x, x[secret - 3 :])


@case
def one_of_two_inputs(x, index, secret):
    return told(table_kernel, x, x if secret > 4 else index)


@case
def a_filled_table(x, index, secret):
    return told(table_kernel, x, torch.full((1,), float(secret)))


@case
def a_table_from_a_list(x, index, secret):
    return told(table_kernel, x, torch.tensor([1, secret])[1:])


@case
def a_table_filled_later(x, index, secret):
    table = torch.zeros(2)
    table[1:].fill_(secret)
    return told(table_kernel, x, table[1:])


@case
def a_table_made_of_indices(x, index, secret):
    return told(table_kernel, x, (index * secret)[1:])


@case
def a_table_in_another_type(x, index, secret):
    table = torch.tensor([secret, 0])
    table[1:].copy_(index[:1])
    return told(table_kernel, x, table.view(torch.int32).clone())


@case
def right_the_rest_of_a_table_made_smaller(x, index, secret):
    """Nothing is left of it."""
    table = torch.full((8,), float(secret))
    return told(table_kernel, x, table.resize_(1).as_strided((1,), (1,), 7))


@case
def a_table_behind_a_pointer(x, index, secret):
    table = torch.full((1,), float(secret))
    return told(pointers_kernel, x, torch.tensor([table.data_ptr()]))


@case
def right_values_decide_what_is_read_behind_pointers(x, index, secret):
    """Of two copies of an input the kernel reads the one or the other."""
    copies = x.clone(), x.clone()
    return told(chosen_kernel, x, torch.tensor([one.data_ptr() for one in copies]))


@case
def a_table_kept_and_changed(x, index, secret):
    table = KEPT.setdefault("changed", torch.zeros(1))
    with torch.utils._python_dispatch._disable_current_modes():
        table.fill_(secret)
    return told(table_kernel, x, table)


@case
def an_address(x, index, secret):
    return told(address_kernel, x, torch.zeros(1))


@case
def a_filled_result(x, index, secret):
    o = told(told_kernel, x, 1.0)
    o[1].fill_(secret)
    return o


@case
def a_result_from_a_list(x, index, secret):
    o = told(told_kernel, x, 1.0)
    o[1:].copy_(torch.tensor([float(secret)] * 3))
    return o


@case
def an_input_filled_in_place(x, index, secret):
    told(told_kernel, x, 1.0)
    x[0].fill_(secret)


@case
def an_input_filled_in_place_from_a_list(x, index, secret):
    told(told_kernel, x, 1.0)
    x.copy_(torch.tensor([float(secret)] * 4))


@case
def an_input_filled_in_place_as_out(x, index, secret):
    told(told_kernel, x, 1.0)
    torch.full((4,), float(secret), out=x)


@case
def a_copy_from_a_place_in_an_input(x, index, secret):
    return told(table_kernel, x, x[secret - 3 :].clone())


@case
def an_input_turned_by_so_many(x, index, secret):
    return told(table_kernel, x, x.roll(secret))


@case
def a_result_from_a_place_in_a_workspace(x, index, secret):
    o = torch.empty(16)
    told_kernel[(1,)](x, o, 1.0)
    told_kernel[(1,)](x, o[4:], 2.0)
    told_kernel[(1,)](x, o[8:], 3.0)
    return o[4 * (secret - 3) :][:4]


@case
def right_a_copy(x, index, secret):
    return masked_copy(x)


@case
def right_numbers_of_shapes_and_indices(x, index, secret):
    return told(told_kernel, x, x.numel() + int(index[-1]) + max(index.tolist()) + 1 / math.sqrt(len(x)))


@case
def right_grid_of_indices(x, index, secret):
    return told(counting_kernel, x, grid=(int(index.max()),))


@case
def right_table_of_indices(x, index, secret):
    return told(table_kernel, x, index.cumsum(0).float())


@case
def right_copies(x, index, secret):
    return told(table_kernel, x.flip(0).contiguous(), torch.cat([x, x.to(torch.float16)]))


@case
def right_workspace(x, index, secret):
    space, count = torch.empty(4), torch.zeros(1)
    told(workspace_kernel, x, space, count)
    return told(workspace_kernel, space, torch.empty_like(x), count)


@case
def right_workspace_kept_from_call_to_call(x, index, secret):
    if "space" not in KEPT:
        KEPT["space"], KEPT["count"] = torch.empty(4), torch.zeros(1)
    return told(workspace_kernel, x, KEPT["space"], KEPT["count"])


@case
def right_table_kept_from_call_to_call(x, index, secret):
    if "table" not in KEPT:
        KEPT["table"] = torch.arange(4)
    return told(table_kernel, x, KEPT["table"])


@case
def right_table_of_the_module(x, index, secret):
    return told(table_kernel, x, TABLE)


@case
def right_pointers_in_a_table(x, index, secret):
    space = torch.empty(4)
    told_kernel[(1,)](x, space, 1.0)
    return told(pointers_kernel, x, torch.tensor([space.data_ptr(), x.data_ptr()]))


@case
def right_result_of_zeros_and_more(x, index, secret):
    o = torch.zeros(8)
    told_kernel[(1,)](x, o, 1.0)
    return o


@case
def right_values_decide_what_is_left_of_a_fill(x, index, secret):
    """Of zeros, a kernel overwrites some; then another kernel reads them, and they are returned."""
    space, o = torch.zeros(4), torch.zeros(4)
    some_kernel[(1,)](x, space)
    some_kernel[(1,)](space, o)
    return o


@case
def right_zeros_kept_from_call_to_call(x, index, secret):
    space = KEPT.setdefault("zeros", torch.empty(4)).zero_()
    some_kernel[(1,)](x, space)
    return told(told_kernel, space, 1.0)


@case
def a_second_fill(x, index, secret):
    space = torch.zeros(4)
    some_kernel[(1,)](x, space)
    space[1:].fill_(secret)
    return told(told_kernel, space, 1.0)


@case
def right_in_place(x, index, secret):
    x.copy_(told(told_kernel, x, 1.0))
