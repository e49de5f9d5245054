"""Kernels that compile, in the many ways in which a learner may write them. Read by test_gate_kernels."""

from typing import NamedTuple

import triton
import triton.language as tl

BLOCK = tl.constexpr(64)


@triton.jit
def squared(v):
    return v * v


@triton.jit
def calls_a_helper(x, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(x + i, squared(tl.load(x + i, mask=i < n, other=0.0)), mask=i < n)


@triton.jit
def reads_a_constant(x, n, B: tl.constexpr):
    tl.store(x + tl.arange(0, BLOCK), 0.0)


@triton.autotune(configs=[triton.Config({"B": 64}, num_warps=2)], key=["n"])
@triton.heuristics({"EVEN": lambda args: args["n"] % 64 == 0})
@triton.jit
def is_tuned(x, n, B: tl.constexpr, EVEN: tl.constexpr):
    i = tl.arange(0, B)
    if EVEN:
        tl.store(x + i, 1.0)
    else:
        tl.store(x + i, 1.0, mask=i < n)


@triton.jit
def returns_early(x, n, B: tl.constexpr):
    if n == 0:
        return
    tl.store(x + tl.arange(0, B), 0.0)


@triton.jit
def takes_a_mask_or_none(x, mask, n, B: tl.constexpr):
    i = tl.arange(0, B)
    keep = i < n
    if mask is not None:
        keep = keep & (tl.load(mask + i, mask=keep, other=0) != 0)
    tl.store(x + i, 0.0, mask=keep)


@triton.jit
def takes_tuples(pair, shape, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(pair[1] + i, tl.load(pair[0] + i, mask=i < shape[0], other=0.0) * shape[1], mask=i < shape[0])


class Strides(NamedTuple):
    row: int
    column: int


class Table(NamedTuple):
    data: object
    by: Strides


@triton.jit
def takes_named_tuples(x, table, fixed: tl.constexpr, B: tl.constexpr):
    at = tl.arange(0, B) * table.by.row + table.by.column * fixed.column
    tl.store(x + at, tl.load(table.data + at) + table.by[0] + fixed.row)


@triton.jit
def takes_a_dtype(x, n, B: tl.constexpr, ACC: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(x + i, tl.zeros([B], ACC).to(x.dtype.element_ty))


@triton.jit
def takes_a_function(x, n, B: tl.constexpr, F: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(x + i, F(tl.load(x + i)))


@triton.jit
def takes_scalars(x, n, scale, on, B: tl.constexpr):
    i = tl.arange(0, B)
    if on:
        tl.store(x + i, tl.load(x + i) * scale, mask=i < n)


@triton.jit
def takes_a_descriptor(x, n, B: tl.constexpr):
    x.store([0, 0], x.load([0, 0]) + 1.0)


@triton.jit
def has_a_default(x, n, B: tl.constexpr = 64):
    tl.store(x + tl.arange(0, B), 0.0)


@triton.constexpr_function
def half_of(size):
    return size // 2


@triton.jit
def computes_a_size(x, n, B: tl.constexpr):
    tl.store(x + tl.arange(0, half_of(B)), 0.0)


@triton.jit
def multiplies(x, y, n, B: tl.constexpr):
    i = tl.arange(0, B)
    at = i[:, None] * B + i[None, :]
    tl.store(y + at, tl.dot(tl.load(x + at), tl.load(x + at)))


@triton.jit
def multiplies_exactly(x, y, n, B: tl.constexpr):
    i = tl.arange(0, B)
    at = i[:, None] * B + i[None, :]
    tl.store(y + at, tl.dot(tl.load(x + at), tl.load(x + at), input_precision="ieee"))


@triton.jit
def keeps_much(x, y, n, B: tl.constexpr):
    i = tl.arange(0, B)
    k = tl.arange(0, 64)
    acc = tl.zeros([B, B], tl.float32)
    for start in range(0, n, 64):
        a = tl.load(x + i[:, None] * n + (start + k)[None, :])
        b = tl.load(x + (start + k)[:, None] * n + i[None, :])
        acc += tl.dot(a, b)
    tl.store(y + i[:, None] * B + i[None, :], acc)


@triton.jit
def copies_rows(x, y, rows, D, R: tl.constexpr, B: tl.constexpr):
    r = tl.program_id(0) * R + tl.arange(0, R)
    d = tl.arange(0, B)
    at = r[:, None] * D + d[None, :]
    ok = (r < rows)[:, None] & (d < D)[None, :]
    tl.store(y + at, tl.load(x + at, mask=ok, other=0.0), mask=ok)


def made_in(width):
    size = tl.constexpr(width)

    @triton.jit
    def add_one(v):
        return v + 1.0

    @triton.jit
    def is_nested(x, n):
        i = tl.arange(0, size)
        tl.store(x + i, add_one(tl.load(x + i)))

    return is_nested


def captures(width):
    @triton.jit
    def captures_an_int(x, n):
        tl.store(x + tl.arange(0, width), 0.0)

    return captures_an_int


class Kernels:
    @staticmethod
    @triton.jit
    def is_in_a_class(x, n, B: tl.constexpr):
        tl.store(x + tl.arange(0, B), 0.0)


@triton.constexpr_function
def never_done(size):
    while True:
        size += 1


@triton.jit
def takes_forever(x, n, B: tl.constexpr):
    tl.store(x + tl.arange(0, never_done(B)), 0.0)
