"""Kernels that compiled Triton runs in one way and its plain interpreter in another. Run by `case_runner`, twice.

Each case returns numbers, chosen to be exact; what is right stands in `test_instruments_interpreter`.
"""

import linecache
import traceback

import torch
import triton
import triton.language as tl
from triton.language import arange, load, store
from triton.language.extra import libdevice

HALF = tl.constexpr(0.5)
NAN = float("nan")
CASES = {}


def case(function):
    """Have the runner run it."""
    CASES[function.__name__] = function
    return function


@triton.jit
def scalar_compare_kernel(s_ptr, o_ptr, D: tl.constexpr, B: tl.constexpr):
    d = tl.arange(0, B)
    s = tl.load(s_ptr)
    tl.store(o_ptr + d, d.to(tl.float32) + 1, mask=(d < D) & (s > -float("inf")))


@case
def block_mask_and_scalar_comparison():
    o = torch.zeros(4)
    scalar_compare_kernel[(1,)](torch.tensor([1.0]), o, 3, 4)
    return o.tolist()


@triton.jit
def loop_cast_kernel(o_ptr, n):
    total = tl.zeros([1], tl.float32)
    for i in range(n):
        total += i.to(tl.float32)
    tl.store(o_ptr + tl.arange(0, 1), total)


@case
def cast_of_a_loop_variable():
    o = torch.zeros(1)
    loop_cast_kernel[(1,)](o, 4)
    return o.tolist()


@triton.jit
def flag_kernel(o_ptr, flag):
    if flag:
        tl.store(o_ptr, 1.0)
    else:
        tl.store(o_ptr, 2.0)


@case
def run_time_bool():
    o = torch.zeros(2)
    flag_kernel[(1,)](o, True)
    flag_kernel[(1,)](o[1:], False)
    return o.tolist()


@triton.jit
def bf16_atomic_kernel(o_ptr, x_ptr, B: tl.constexpr):
    tl.atomic_add(o_ptr + tl.arange(0, B) // 2, tl.load(x_ptr + tl.arange(0, B)))


@case
def bfloat16_atomic_add():
    o = torch.ones(2, dtype=torch.bfloat16)
    bf16_atomic_kernel[(1,)](o, torch.tensor([1.0, 2.0, 3.0, 4.5], dtype=torch.bfloat16), 4)
    return o.tolist()


@triton.jit
def wide_parameter_kernel(o_ptr, n: tl.int64, m):
    tl.store(o_ptr, n * m)


@case
def int64_annotation():
    o = torch.zeros(1, dtype=torch.int64)
    wide_parameter_kernel[(1,)](o, 1 << 20, 1 << 20)
    return o.tolist()


@triton.jit
def wide_loop_kernel(o_ptr, bounds_ptr, m):
    for i in range(tl.load(bounds_ptr), tl.load(bounds_ptr + 1)):
        tl.store(o_ptr, i * m)


@case
def loop_over_64_bit_bounds():
    o = torch.zeros(1, dtype=torch.int64)
    wide_loop_kernel[(1,)](o, torch.tensor([3 << 10, (3 << 10) + 1]), 1 << 20)
    return o.tolist()


@triton.jit
def cast_kernel(x_ptr, o_ptr, B: tl.constexpr):
    d = tl.arange(0, B)
    tl.store(o_ptr + d, tl.load(x_ptr + d).to(o_ptr.dtype.element_ty))


def cast(values, source, target):
    x = torch.tensor(values, dtype=source)
    o = torch.zeros(len(values), dtype=target)
    cast_kernel[(1,)](x, o, len(values))
    return o.tolist()


@case
def float32_to_bfloat16_rounds_to_even():
    return cast([1 + 2**-8, 1 + 3 * 2**-8, 1 + 2**-8 + 2**-20, -1 - 3 * 2**-8], torch.float32, torch.bfloat16)


@case
def int32_to_bfloat16():
    return cast([3, -5], torch.int32, torch.bfloat16)


@case
def float64_to_bfloat16():
    return cast([1.5, -2.0], torch.float64, torch.bfloat16)


@case
def float_to_int_saturates():
    return cast([3e9, -3e9, NAN, -1.7], torch.float32, torch.int32)


@triton.jit
def bf16_arithmetic_kernel(x_ptr, y_ptr, o_ptr, B: tl.constexpr):
    d = tl.arange(0, B)
    x = tl.load(x_ptr + d)
    y = tl.load(y_ptr + d)
    tl.store(o_ptr + d, x + y)
    tl.store(o_ptr + B + d, x * y)
    tl.store(o_ptr + 2 * B + d, x - y)
    tl.store(o_ptr + 3 * B + d, tl.maximum(x, y))
    tl.store(o_ptr + 4 * B + d, tl.where(x < y, x, y))
    tl.store(o_ptr + 5 * B + d, -x)
    tl.store(o_ptr + 6 * B + d, tl.abs(x))
    tl.store(o_ptr + 7 * B + d, x / y)
    tl.store(o_ptr + 8 * B + d, tl.fma(x, y, y))


@case
def bfloat16_arithmetic():
    x = torch.tensor([-1.0, 3.0], dtype=torch.bfloat16)
    y = torch.tensor([2.0, 1.5], dtype=torch.bfloat16)
    o = torch.zeros(18, dtype=torch.bfloat16)
    bf16_arithmetic_kernel[(1,)](x, y, o, 2)
    return o.tolist()


@triton.jit
def bf16_constant_kernel(x_ptr, o_ptr, B: tl.constexpr):
    d = tl.arange(0, B)
    x = tl.load(x_ptr + d)
    tl.store(o_ptr + d, x * 2.0 + tl.full([B], 0.5, tl.bfloat16))


@case
def bfloat16_constants():
    o = torch.zeros(2, dtype=torch.bfloat16)
    bf16_constant_kernel[(1,)](torch.tensor([1.0, 3.0], dtype=torch.bfloat16), o, 2)
    return o.tolist()


@triton.jit
def dot_kernel(a_ptr, b_ptr, o_ptr, B: tl.constexpr):
    d = tl.arange(0, B)
    at = d[:, None] * B + d[None, :]
    tl.store(o_ptr + at, tl.dot(tl.load(a_ptr + at), tl.load(b_ptr + at)))


@case
def bfloat16_dot():
    eye = torch.eye(16, dtype=torch.bfloat16)
    o = torch.zeros(16, 16)
    dot_kernel[(1,)](eye * 3, eye * 1.5, o, 16)
    return [o.sum().item(), o[3, 3].item()]


@triton.jit
def sum_kernel(x_ptr, o_ptr, B: tl.constexpr):
    tl.store(o_ptr, tl.sum(tl.load(x_ptr + tl.arange(0, B)), axis=0).to(tl.float32))


def total(values, dtype):
    o = torch.zeros(1)
    sum_kernel[(1,)](torch.tensor(values, dtype=dtype), o, len(values))
    return o.tolist()


@case
def float16_sum_overflows():
    return total([60000.0, -60000.0, 60000.0, -60000.0], torch.float16)


@case
def float16_sum_rounds():
    return total([2048.0, 1.0, 1.0, 0.0], torch.float16)


@case
def bfloat16_sum_rounds():
    return total([256.0, 1.0, 1.0, 0.0], torch.bfloat16)


@triton.jit
def logic_kernel(o_ptr, B: tl.constexpr):
    d = tl.arange(0, B)
    tl.store(o_ptr + d, 1.0, mask=d < 2 and d > 0)
    tl.store(o_ptr + B + d, 1.0, mask=d < 1 or d > 2)
    tl.store(o_ptr + 2 * B + d, 1.0, mask=not d < 2)


@case
def logic_on_blocks():
    o = torch.zeros(12)
    logic_kernel[(1,)](o, 4)
    return o.tolist()


@triton.jit
def extreme_kernel(x_ptr, y_ptr, o_ptr, B: tl.constexpr):
    d = tl.arange(0, B)
    x = tl.load(x_ptr + d)
    y = tl.load(y_ptr + d)
    tl.store(o_ptr + d, tl.maximum(x, y))
    tl.store(o_ptr + B + d, tl.minimum(x, y))
    tl.store(o_ptr + 2 * B + d, max(x, y))
    tl.store(o_ptr + 3 * B + d, tl.clamp(x, 1.0, 3.0))
    tl.store(o_ptr + 4 * B, tl.max(x, axis=0))
    tl.store(o_ptr + 4 * B + 1, tl.min(y, axis=0))


@case
def nan_operands_are_dropped():
    o = torch.zeros(10)
    extreme_kernel[(1,)](torch.tensor([NAN, 4.0]), torch.tensor([2.0, NAN]), o, 2)
    return o.tolist()


@triton.jit
def float_argument_kernel(o_ptr, scale, other):
    tl.store(o_ptr, scale.to(tl.float32) + 0.0)
    tl.store(o_ptr + 1, (scale * other - other) * 16777216.0)


@case
def float_arguments_are_float32():
    o = torch.zeros(2)
    float_argument_kernel[(1,)](o, 1.0 + 2**-30, 1.0)
    return o.tolist()


@triton.jit
def extremes_of_blocks_kernel(o_ptr, B: tl.constexpr):
    d = tl.arange(0, B)
    tl.store(o_ptr + d, min(d, 2) + max(d, 1))


@case
def python_max_and_min_on_blocks():
    o = torch.zeros(4, dtype=torch.int32)
    extremes_of_blocks_kernel[(1,)](o, 4)
    return o.tolist()


@triton.jit
def imported_names_kernel(x_ptr, o_ptr, B: tl.constexpr):
    d = arange(0, B)
    store(o_ptr + d, HALF * load(x_ptr + d) + HALF.value)


@case
def names_imported_from_triton():
    o = torch.zeros(2)
    imported_names_kernel[(1,)](torch.tensor([2.0, 4.0]), o, 2)
    return o.tolist()


@case
def kernel_in_a_function():
    offset = tl.constexpr(3.0)

    @triton.jit
    def nested_kernel(o_ptr):
        tl.store(o_ptr, offset + 1.0)

    o = torch.zeros(1)
    nested_kernel[(1,)](o)
    return o.tolist()


@triton.jit
def larger_then_sum(a, b, c, d):
    return tl.maximum(a, c), b + d


@triton.jit
def reduce_method_kernel(x_ptr, o_ptr, B: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, B)[:, None] * B + tl.arange(0, B)[None, :])
    top, total = tl.reduce((x, x), 1, larger_then_sum)
    tl.store(o_ptr + tl.arange(0, B), top)
    tl.store(o_ptr + B + tl.arange(0, B), total)
    tl.store(o_ptr + 2 * B + tl.arange(0, B), x.reduce(0, add))


@triton.jit
def add(a, b):
    return a + b


@case
def reduce_as_a_method():
    o = torch.zeros(6)
    reduce_method_kernel[(1,)](torch.tensor([[1.0, 2.0], [5.0, -1.0]]), o, 2)
    return o.tolist()


@triton.autotune([triton.Config({"B": 2}), triton.Config({"B": 4})], key=["n"])
@triton.jit
def tuned_kernel(o_ptr, n, B: tl.constexpr):
    d = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(o_ptr + d, d.to(tl.float32), mask=d < n)


@case
def autotuned_kernel():
    o = torch.zeros(5)
    tuned_kernel[lambda meta: (triton.cdiv(5, meta["B"]),)](o, 5)
    return o.tolist()


@triton.heuristics({"B": lambda args: triton.next_power_of_2(args["n"])})
@triton.jit
def heuristic_kernel(o_ptr, n, B: tl.constexpr):
    tl.store(o_ptr + tl.arange(0, B), 1.0, mask=tl.arange(0, B) < n)


@case
def kernel_with_heuristics():
    o = torch.zeros(3)
    heuristic_kernel[(1,)](o, 3)
    return o.tolist()


@triton.jit
def invert_kernel(o_ptr, x_ptr):
    tl.store(o_ptr, ~tl.load(x_ptr))


@case
def inverted_unsigned():
    o = torch.zeros(1, dtype=torch.uint8)
    invert_kernel[(1,)](o, torch.tensor([1], dtype=torch.uint8))
    return o.tolist()


@triton.jit
def injected_kernel(o_ptr):
    tl.store(o_ptr, np.float32(1.0))  # noqa: F821  the interpreter puts numpy into the module


@case
def numpy_is_not_put_into_the_module():
    try:
        injected_kernel[(1,)](torch.zeros(1))
    except Exception as error:
        return type(error).__name__
    return "ran"


@triton.jit
def misnamed_kernel(o_ptr):
    start = -maths.inf  # noqa: F821  here
    tl.store(o_ptr, start)


@case
def errors_stand_on_their_own_line():
    try:
        misnamed_kernel[(1,)](torch.zeros(1))
    except NameError as error:
        lines = [line for frame, line in traceback.walk_tb(error.__traceback__) if frame.f_code.co_filename == __file__]
        return linecache.getline(__file__, lines[-1]).endswith("here\n")
    return "ran"


@triton.jit
def failing_kernel(o_ptr, B: tl.constexpr):
    tl.store(o_ptr + tl.arange(0, B), tl.arange(0, 2 * B))


@case
def errors_keep_their_type():
    try:
        failing_kernel[(1,)](torch.zeros(4), 4)
    except Exception as error:
        return type(error).__name__
    return "ran"


@case
def launch_options_are_checked():
    try:
        loop_cast_kernel[(1,)](torch.zeros(1), 0, num_warp=4)
    except KeyError as error:
        return str(error)
    return "ran"


@case
def grid_is_checked():
    try:
        flag_kernel[(2.5,)](torch.zeros(1), True)
    except TypeError as error:
        return str(error).split(":")[0]
    return "ran"


@triton.jit
def block_pointer_kernel(x_ptr, o_ptr, n, B: tl.constexpr):
    block = tl.make_block_ptr(x_ptr, (n,), (1,), (0,), (B,), (0,))
    x = tl.load(block, boundary_check=(0,), padding_option="nan")
    tl.store(o_ptr + tl.arange(0, B), tl.where(x != x, 9.0, x))


@case
def bfloat16_block_pointer_padding():
    o = torch.zeros(4, dtype=torch.bfloat16)
    block_pointer_kernel[(1,)](torch.tensor([1.0, 2.0, 3.0], dtype=torch.bfloat16), o, 3, 4)
    return o.tolist()


@triton.jit
def running_kernel(x_ptr, o_ptr, B: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, B))
    tl.store(o_ptr + tl.arange(0, B), tl.cumsum(x, 0))
    tl.store(o_ptr + B + tl.arange(0, B), tl.cumsum(x, 0, reverse=True))
    tl.store(o_ptr + 2 * B + tl.arange(0, B), tl.associative_scan(x, 0, keep_second))


@triton.jit
def keep_second(a, b):
    return b


@case
def scans():
    o = torch.zeros(12)
    running_kernel[(1,)](torch.tensor([1.0, 2.0, 3.0, 4.0]), o, 4)
    return o.tolist()


@triton.jit
def precision_kernel(a_ptr, o_ptr, B: tl.constexpr):
    d = tl.arange(0, B)
    a = tl.load(a_ptr + d[:, None] * B + d[None, :])
    tl.store(o_ptr, tl.sum(tl.dot(a, a, input_precision="bf16x3")))


@case
def dot_precisions_of_the_gpu():
    o = torch.zeros(1)
    precision_kernel[(1,)](torch.eye(16), o, 16)
    return o.tolist()


@triton.jit
def index_of_max_kernel(x_ptr, o_ptr, B: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, B))
    tl.store(o_ptr, tl.argmax(x, 0))
    tl.store(o_ptr + 1, tl.argmin(x, 0))
    tl.store(o_ptr + 2, tl.argmax(x, 0, tie_break_left=False) % 2)


@case
def argmax_and_argmin():
    o = torch.zeros(3, dtype=torch.int32)
    index_of_max_kernel[(1,)](torch.tensor([1.0, 7.0, 0.5, 7.0]), o, 4)
    return o.tolist()


@triton.jit
def method_kernel(x_ptr, o_ptr, B: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, B))
    rest = x.abs().sqrt() + x.rsqrt() + x.log2() + (x * 0.5).floor() + (x * 0.5).ceil()
    tl.store(o_ptr + tl.arange(0, B), x.exp2() + rest + (x - x).exp() + (x / x).log() + (x - x).cos() + (x - x).sin())


@case
def math_as_methods():
    o = torch.zeros(2)
    method_kernel[(1,)](torch.tensor([1.0, 4.0]), o, 2)
    return o.tolist()


@triton.jit
def libdevice_kernel(x_ptr, o_ptr, B: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, B))
    two = libdevice.rcp_rn(libdevice.sub_rn(x, x) + 0.5)
    tl.store(o_ptr + tl.arange(0, B), libdevice.exp2(x) + libdevice.pow(x, two))


@case
def libdevice_functions():
    o = torch.zeros(2)
    libdevice_kernel[(1,)](torch.tensor([1.0, 3.0]), o, 2)
    return o.tolist()


@triton.jit
def assembly_kernel(x_ptr):
    tl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [tl.load(x_ptr)], dtype=tl.int32, is_pure=True, pack=1)


@case
def assembly_is_announced():
    try:
        assembly_kernel[(1,)](torch.zeros(1, dtype=torch.int32))
    except Exception as error:
        return str(error)
    return "ran"


@triton.jit
def atomic_extremes_kernel(x_ptr, o_ptr):
    tl.atomic_max(o_ptr, tl.load(x_ptr + tl.program_id(0)))
    tl.atomic_min(o_ptr + 1, tl.load(x_ptr + tl.program_id(0)))


@case
def atomic_max_and_min_of_floats():
    o = torch.tensor([-2.0, 2.0])
    atomic_extremes_kernel[(3,)](torch.tensor([-1.5, 0.5, 1.0]), o)
    return o.tolist()


@triton.jit
def tuple_kernel(parts, o_ptr):
    for i in tl.static_range(len(parts)):
        tl.store(o_ptr + i, tl.load(parts[i]))


@case
def tuples_of_pointers():
    o = torch.zeros(2)
    tuple_kernel[(1,)]((torch.tensor([3.0]), torch.tensor([4.0])), o)
    return o.tolist()


@triton.jit
def flags_kernel(o_ptr, n, mask_ptr, EMPTY: tl.constexpr):
    ready = n > 3 and not n > 5
    if EMPTY is None or tl.load(EMPTY) > 0:
        if mask_ptr is not None and n > 100:
            tl.store(o_ptr, 7.0)
        n += 1
        tl.store(o_ptr, (1.0 if ready else 2.0) + n)


@case
def scalar_logic():
    o = torch.zeros(2)
    flags_kernel[(1,)](o, 4, None, None)
    flags_kernel[(1,)](o[1:], 8, None, None)
    return o.tolist()


@triton.jit
def sums_of_rows_kernel(x_ptr, o_ptr, B: tl.constexpr):
    d = tl.arange(0, B)
    x = tl.load(x_ptr + d[:, None] * B + d[None, :])
    tl.store(o_ptr + d, tl.sum(x, axis=0))
    tl.store(o_ptr + B + d, tl.max(x, axis=1))
    tl.store(o_ptr + 2 * B + d, tl.sum(x, axis=1, keep_dims=True).reshape([B]))
    tl.store(o_ptr + 3 * B, tl.sum(x))


@case
def sums_along_each_axis():
    o = torch.zeros(7)
    sums_of_rows_kernel[(1,)](torch.tensor([[1.0, 2.0], [3.0, 5.0]]), o, 2)
    return o.tolist()


@case
def types_are_those_of_the_jit():
    """Values for which our shortcut gives another (type, key) than the JIT itself: none."""
    from triton.backends.compiler import BaseBackend
    from triton.runtime.jit import native_specialize_impl

    from drills.instruments.interpreter.signature import natural

    x = torch.zeros(64)
    numbers = [0, 1, 2, 16, -1, -16, 2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2**63 - 1, 2**63, True, 1.5, None]
    kinds = [torch.float16, torch.bfloat16, torch.float64, torch.bool, torch.int8, torch.uint8, torch.int64]
    values = [*numbers, x, x[1:], x[4:], (1, x), *(torch.zeros(4, dtype=kind) for kind in kinds)]
    ways = [(const, special, align) for const in (False, True) for special in (False, True) for align in (False, True)]
    return [
        repr(value)
        for value in values
        for way in ways
        if natural(value, *way) != native_specialize_impl(BaseBackend, value, *way)
    ]


@triton.jit
def scalar_weights(a, b):
    if a == b:
        return 0.5, a
    if a > b:
        return 1.0, a
    return 0.0, b


@triton.jit
def pairs_swapped(a, b):
    return b, a


@triton.jit
def one_by_one_kernel(x_ptr, w_ptr, m_ptr, t_ptr, B: tl.constexpr):
    at = tl.arange(0, B)[:, None] * 2 + tl.arange(0, 2)[None, :]
    x = tl.load(x_ptr + at)
    w, m = tl.map_elementwise(scalar_weights, x, tl.sum(x, axis=0)[None, :])
    tl.store(w_ptr + at, w)
    tl.store(m_ptr + at, m)
    tl.store(t_ptr + at, tl.map_elementwise(pairs_swapped, x, pack=2)[0])


@case
def a_scalar_function_of_every_element():
    w, m, t = torch.zeros(4), torch.zeros(4), torch.zeros(4)
    one_by_one_kernel[(1,)](torch.tensor([1.0, 2.0, -3.0, 0.0]), w, m, t, 2)
    return [*w.tolist(), *m.tolist(), *t.tolist()]


@triton.jit
def described_kernel(o_ptr, n_ptr, ROWS: tl.constexpr):
    here = tl.make_tensor_descriptor(o_ptr, shape=[3, 4], strides=[4, 1], block_shape=[ROWS, 4])
    here.atomic_add([tl.program_id(0) * 2, 0], tl.full([ROWS, 4], 1.5, tl.float32))
    number = tl.make_tensor_descriptor(n_ptr, shape=[4], strides=[1], block_shape=[4])
    number.atomic_max([0], tl.arange(0, 4).to(tl.uint32) * 0x50000000)


@case
def atomics_of_a_descriptor():
    o, n = torch.zeros(4, 4), torch.full((4,), 1, dtype=torch.int32).view(torch.uint32)
    described_kernel[(2,)](o, n, 4)
    return [o[:, 0].tolist(), n.tolist()]


@triton.jit
def scaled_kernel(x_ptr):
    x = tl.zeros([16, 32], tl.float8e5)
    scale = tl.full([16, 1], 127, tl.uint8)
    tl.dot_scaled(x, scale, "e5m2", tl.trans(x), scale, "e5m2")


@case
def a_scaled_product_is_announced():
    try:
        scaled_kernel[(1,)](torch.zeros(1))
    except Exception as error:
        return str(error)
    return "ran"


@triton.jit
def power_kernel(x_ptr, o_ptr, B: tl.constexpr):
    tl.store(o_ptr + tl.arange(0, B), tl.exp2(tl.load(x_ptr + tl.arange(0, B))))


@case
def powers_too_small_to_be_normal():
    o = torch.ones(4)
    power_kernel[(1,)](torch.tensor([-140.0, -126.0, float("-inf"), float("nan")]), o, 4)
    return o.tolist()


@triton.jit
def shift_kernel(o_ptr, by, B: tl.constexpr):
    tl.store(o_ptr + tl.arange(0, B), 3 << tl.arange(0, B) + by)


@case
def a_shift_past_the_width():
    o = torch.zeros(4, dtype=torch.int32)
    shift_kernel[(1,)](o, 26, 4)
    try:
        shift_kernel[(1,)](o, 30, 4)
    except Exception as error:
        return [*o.tolist(), str(error)]
    return "ran"


@tl.core._aggregate
class Sum:
    total: tl.tensor

    def __init__(self, total):
        self.total = total


@triton.jit
def class_kernel(o_ptr):
    tl.store(o_ptr, Sum(tl.load(o_ptr)).total)


@case
def a_class_of_values_is_announced():
    try:
        class_kernel[(1,)](torch.zeros(1))
    except Exception as error:
        return str(error)
    return "ran"
