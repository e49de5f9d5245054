"""Kernels that Triton refuses, each in its own way; the interpreter runs most of them. Read by test_gate_advice.

The line that a report must name ends in "# here: " and words that the advice must hold.
"""

import math

import numpy as np
import torch
import triton
import triton.language as tl

WIDTH = 64
ANNOTATED: tl.constexpr = 64


@triton.jit
def leaves_a_loop(x, n, B: tl.constexpr):
    for i in range(0, n):
        if tl.load(x + i) > 3.0:
            break  # here: cannot leave a loop early: compute the loop's bound
        tl.store(x + i, 0.0)


@triton.jit
def skips_a_turn(x, n, B: tl.constexpr):
    for i in range(0, n):
        if i == 2:
            continue  # here: under an if, or mask
        tl.store(x + i, 0.0)


@triton.jit
def has_it_in_one_branch(x, n, B: tl.constexpr):
    if n > 3:
        w = tl.load(x)
    tl.store(x, w)  # here: w gets its value inside an if or a loop only


@triton.jit
def branches_differ_in_type(x, n, B: tl.constexpr):
    w = 0
    if n > 3:  # here: give w different types
        w = tl.load(x)
    tl.store(x, w)


@triton.jit
def prints_a_value(x, n, B: tl.constexpr):
    print(tl.load(x))  # here: tl.device_print


@triton.jit
def prints_an_f_string(x, n, B: tl.constexpr):
    v = tl.load(x)
    print(f"value {v}")  # here: no f-strings


@triton.jit
def makes_a_lambda(x, n, B: tl.constexpr):
    f = lambda a: a + 1  # noqa: E731  # here: write the expression where it is used
    tl.store(x, f(tl.load(x)))


@triton.jit
def makes_a_dict(x, n, B: tl.constexpr):
    d = {"a": tl.load(x)}  # here: no dictionaries
    tl.store(x, d["a"])


@triton.jit
def builds_a_list(x, n, B: tl.constexpr):
    d = [tl.load(x + i) for i in range(4)]  # here: one block with tl.arange
    tl.store(x, d[0])


@triton.jit
def comprehends_a_dict(x, n, B: tl.constexpr):
    d = {i: i for i in range(4)}  # here: no comprehensions
    tl.store(x, d[0])


@triton.jit
def appends(x, n, B: tl.constexpr):
    d = []
    for i in range(4):
        d.append(tl.load(x + i))  # here: no lists that grow
    tl.store(x, d[0])


@triton.jit
def multiplies_too_little(x, n, B: tl.constexpr):
    i = tl.arange(0, 16)
    k = tl.arange(0, 8)
    a = tl.load(x + i[:, None] * 8 + k[None, :])
    b = tl.load(x + k[:, None] * 16 + i[None, :])
    c = tl.dot(a, b)  # here: at least 16 along K
    tl.store(x + i[:, None] * 16 + i[None, :], c)


@triton.jit
def turns_int_into_float(x, n, B: tl.constexpr):
    acc = 0
    for i in range(0, n):  # here: acc starts as an integer
        acc += tl.load(x + i)
    tl.store(x, acc)


@triton.jit
def turns_one_element_into_a_block(x, n, B: tl.constexpr):
    acc = tl.zeros([1], tl.float32)
    for _i in range(0, n):  # here: acc starts with the shape [1] and becomes [64]
        acc = acc + tl.load(x + tl.arange(0, B))
    tl.store(x + tl.arange(0, 1), acc)


@triton.jit
def stores_more_than_it_has_addresses(x, n, B: tl.constexpr):
    block = tl.load(x + tl.arange(0, B))
    tl.store(x + tl.arange(0, 1), block)  # here: larger than the block of addresses


@triton.jit
def turns_scalar_into_block(x, n, B: tl.constexpr):
    acc = 0.0
    for i in range(0, n):  # here: a block of the final shape
        acc += tl.load(x + i + tl.arange(0, B))
    tl.store(x, tl.sum(acc))


@triton.jit
def turns_half_into_float(x, n, B: tl.constexpr):
    sums = tl.zeros([B], tl.float16)
    for i in range(0, n):  # here: sums starts as fp16 and becomes fp32
        sums = sums + tl.load(x + i)
    tl.store(x + tl.arange(0, B), sums)


@triton.jit
def casts_a_constant(x, n, B: tl.constexpr):
    v = tl.load(x + B.to(tl.int64))  # here: an argument that is 1 are plain integers
    tl.store(x, v)


@triton.jit
def counts_to_80(x, n, B: tl.constexpr):
    i = tl.arange(0, 80)  # here: powers of two
    tl.store(x + i, 0.0)


@triton.jit
def counts_to_n(x, n, B: tl.constexpr):
    i = tl.arange(0, n)  # here: tl.constexpr
    tl.store(x + i, 0.0)


@triton.jit
def uses_math(x, n, B: tl.constexpr):
    tl.store(x, math.exp(tl.load(x)))  # here: use tl.exp


@triton.jit
def uses_numpy(x, n, B: tl.constexpr):
    tl.store(x, np.maximum(tl.load(x), 0.0))  # here: use tl.exp, tl.maximum


@triton.jit
def uses_torch(x, n, B: tl.constexpr):
    tl.store(x, torch.exp(tl.load(x)))  # here: use tl.exp


@triton.jit
def returns_from_a_loop(x, n, B: tl.constexpr):
    for i in range(0, n):
        if i > 2:  # here: cannot return from inside a loop
            return
        tl.store(x + i, 0.0)


@triton.jit
def carries_a_block_pointer(x, n, B: tl.constexpr):  # here: advance it in a for loop over range
    at = tl.make_block_ptr(x, (n,), (1,), (0,), (B,), (0,))
    i = 0
    while i < n:
        tl.store(at, tl.load(at, boundary_check=(0,)) + 1.0, boundary_check=(0,))
        at = tl.advance(at, (B,))
        i += B


@triton.jit
def decides_for_a_block(x, n, B: tl.constexpr):
    v = tl.load(x + tl.arange(0, B))
    if v > 0:  # here: use tl.where
        v = v + 1
    tl.store(x + tl.arange(0, B), v)


@triton.jit
def knows_no_such_name(x, n, B: tl.constexpr):
    tl.store(x, mising)  # noqa: F821  # here: a typing error, or an argument


@triton.jit
def reads_a_global(x, n, B: tl.constexpr):
    tl.store(x + tl.arange(0, WIDTH), 0.0)  # here: pass WIDTH as an argument


@triton.jit
def reads_an_annotated_global(x, n, B: tl.constexpr):
    tl.store(x + tl.arange(0, ANNOTATED), 0.0)  # here: ANNOTATED = tl.constexpr(


def python_function(a):
    return a + 1


@triton.jit
def calls_python(x, n, B: tl.constexpr):
    tl.store(x, python_function(tl.load(x)))  # here: @triton.jit above python_function


@triton.jit
def chains(x, n, B: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.load(x + i, mask=(0 <= i < n), other=0.0)  # here: (a <= i) & (i < b)
    tl.store(x + i, v)


@triton.jit
def sums_in_python(x, n, B: tl.constexpr):
    tl.store(x, sum(tl.load(x + tl.arange(0, B))))  # here: use tl.sum


@triton.jit
def adds_two_shapes(x, n, B: tl.constexpr):
    a = tl.load(x + tl.arange(0, 16))
    b = tl.load(x + tl.arange(0, 32))
    tl.store(x + tl.arange(0, 16), a + b)  # here: line them up


@triton.jit
def stores_a_block_at_one_place(x, n, B: tl.constexpr):
    a = tl.load(x + tl.arange(0, 16))
    tl.store(x, a)  # here: add offsets to it


@triton.jit
def assigns_an_element(x, n, B: tl.constexpr):
    a = tl.zeros([16], tl.float32)
    a[3] = 1.0  # here: with tl.where
    tl.store(x + tl.arange(0, 16), a)


@triton.jit
def picks_an_element(x, n, B: tl.constexpr):
    a = tl.load(x + tl.arange(0, 16))
    tl.store(x, a[0])  # here: cannot be indexed by number


@triton.jit
def slices(x, n, B: tl.constexpr):
    a = tl.load(x + tl.arange(0, 16))
    tl.store(x + tl.arange(0, 8), a[0:8])  # here: cannot be indexed by number or slice


@triton.jit
def tries(x, n, B: tl.constexpr):
    try:  # noqa: SIM105  # here: cannot catch exceptions
        tl.store(x, 0.0)
    except ValueError:
        pass


@triton.jit
def zips(x, n, B: tl.constexpr):
    for i, j in zip(range(4), range(4)):  # noqa: B905  # here: no Python zip()
        tl.store(x + i, j * 1.0)


@triton.jit
def goes_over_a_list(x, n, B: tl.constexpr):
    for i in [0, 1, 2]:  # here: range or tl.static_range only
        tl.store(x + i, 0.0)


@triton.jit
def thinks_it_is_torch(x, n, B: tl.constexpr):
    tl.store(x, tl.load(x + tl.arange(0, B)).mean())  # here: no torch tensor


@triton.jit
def casts_in_python(x, n, B: tl.constexpr):
    tl.store(x, float(tl.load(x)))  # here: .to(tl.float32)


@triton.jit
def holds_too_much(x, n, B: tl.constexpr):
    i = tl.arange(0, 2048)
    tl.store(x + i[:, None] * 2048 + i[None, :], 0.0)  # here: 2^20 elements


@triton.jit
def helper_with_a_break(x, n):
    for _ in range(0, n):
        break  # here: cannot leave a loop early
    return tl.load(x)


@triton.jit
def calls_a_helper_that_breaks(x, n, B: tl.constexpr):
    tl.store(x, helper_with_a_break(x, n))


@triton.jit
def reduces_an_axis_too_many(x, n, B: tl.constexpr):
    tl.store(x, tl.sum(tl.load(x + tl.arange(0, B)), axis=1))  # here: fewer axes


@triton.jit
def wants_log1p(x, n, B: tl.constexpr):
    tl.store(x, tl.log1p(tl.load(x)))  # here: tl.log(1 + x)


@triton.jit
def assigns_inside(x, n, B: tl.constexpr):
    if (v := tl.load(x)) > 0:  # here: on a line of its own
        tl.store(x, v + 1)


@triton.jit
def chooses_between_types(x, n, B: tl.constexpr):
    v = tl.load(x)
    tl.store(x, v if v > 0 else 0)  # here: 0.0 for 0


@triton.jit
def raises_to_a_power(x, n, B: tl.constexpr):
    tl.store(x, 2 ** tl.load(x))  # here: tl.exp2


@triton.jit
def assigns_two_names(x, n, B: tl.constexpr):
    a = b = tl.load(x)  # here: one name a line
    tl.store(x, a + b)


@triton.jit
def defines_a_function(x, n, B: tl.constexpr):
    def square(v):  # here: move it out
        return v * v

    tl.store(x, square(tl.load(x)))


@triton.jit
def divides_a_bound(x, n, B: tl.constexpr):
    for i in range(0, n / B):  # here: // or tl.cdiv
        tl.store(x + i, 0.0)


@triton.jit
def rounds_to_tf32(x, n, B: tl.constexpr):
    i = tl.arange(0, 16)
    a = tl.load(x + i[:, None] * 16 + i[None, :])
    c = tl.dot(a, a)  # here: input_precision="ieee"
    tl.store(x + i[:, None] * 16 + i[None, :], c)


@triton.jit
def sums_products_in_tf32(x, n, B: tl.constexpr):
    i = tl.arange(0, 16)
    a = tl.load(x + i[:, None] * 16 + i[None, :])
    c = tl.sum(a[:, :, None] * a[None, :, :], 1)  # here: call tl.dot with input_precision
    tl.store(x + i[:, None] * 16 + i[None, :], c)


@triton.jit
def collects_a_list_of_unknown_length(x, n, B: tl.constexpr):
    w = [tl.load(x + i) for i in range(n)]  # here: known only when the kernel runs
    tl.store(x, w[0])


@triton.jit
def parameter_behind_a_star(x, n, *, B: tl.constexpr):
    tl.store(x + tl.arange(0, B), 0.0)  # here: take the * out


@triton.jit
def helper_that_halves(n):
    r = n
    if n > 1:
        r = helper_that_halves(n // 2)  # here: no recursion
    return r


@triton.jit
def asks_a_helper_that_calls_itself(x, n, B: tl.constexpr):
    tl.store(x, helper_that_halves(n) * 1.0)


@triton.jit
def helper_that_goes_deeper(n, DEPTH: tl.constexpr):  # here: no recursion
    r = n
    if n > DEPTH:
        r = helper_that_goes_deeper(n, DEPTH + 1)
    return r


@triton.jit
def asks_a_helper_that_is_another_each_time(x, n, B: tl.constexpr):
    tl.store(x, helper_that_goes_deeper(n, 1) * 1.0)
