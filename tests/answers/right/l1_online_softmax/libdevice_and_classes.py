"""libdevice functions, a launcher class, functools.partial, a data class of arguments, results as a NamedTuple's."""

import functools
from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

NEG: tl.constexpr = tl.constexpr(float("-inf"))
CONST = tl.constexpr(1.4426950408889634)


@dataclass(frozen=True)
class Strided:
    data: torch.Tensor

    @property
    def args(self):
        return (self.data, *self.data.stride())


class Launcher:
    def __init__(self, kernel, **options):
        self.kernel, self.options = kernel, options

    def __call__(self, grid, *args, **meta):
        if all(grid):
            self.kernel[grid](*args, **meta, **self.options)


@triton.jit
def shifted(m):
    return tl.where(libdevice.isinf(m).to(tl.int1), 0.0, m)


@triton.jit
def fold(m, l, x):
    new = tl.maximum(m, tl.max(x, axis=0))
    k = shifted(new)
    return new, l * libdevice.exp2((m - k) * CONST) + tl.sum(libdevice.exp(x - k), axis=0)


@triton.jit
def walk(x_ptr, sr, sc, m_ptr, l_ptr, N, BLOCK: tl.constexpr):
    x_ptr = x_ptr + tl.cast(tl.program_id(axis=0), tl.int64) * sr
    m = tl.full((), NEG, tl.float32)
    l = tl.full((), 0.0, tl.float32)
    n = 0
    while n < N:
        j = n + tl.arange(0, BLOCK)
        m, l = fold(m, l, tl.load(x_ptr + j.to(tl.int64) * sc, j < N, NEG).to(tl.float32))
        n += BLOCK
    tl.store(m_ptr + tl.program_id(0), m)
    tl.store(l_ptr + tl.program_id(0), l)


@triton.jit
def scale(x_ptr, sr, sc, y_ptr, m_ptr, l_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(axis=1).to(tl.int64)
    j = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * sr + j.to(tl.int64) * sc, mask=j < N, other=0).to(tl.float32)
    m = tl.load(m_ptr + row)
    l = tl.load(l_ptr + row)
    y = tl.where(l > 0, libdevice.exp(x - shifted(m)) * libdevice.rcp_rn(tl.where(l > 0, l, 1.0)), 0.0)
    tl.store(y_ptr + row * N + j, y.to(y_ptr.type.element_ty), mask=j < N)


_walk = Launcher(walk, num_warps=2)
_scale = Launcher(scale, num_warps=8, num_stages=1)


def softmax_stats(x, block=1024):
    rows, N = x.size()
    m, l = (torch.empty(rows, dtype=torch.float32, device=x.device) for _ in "ml")
    _walk((rows,), *Strided(x).args, m, l, N, BLOCK=min(block, 4096))
    return [m, l]


def softmax(x, block=1024):
    m, l = softmax_stats(x, block)
    y = torch.empty_like(x, memory_format=torch.contiguous_format)
    rows, N = x.shape
    size = max(16, min(block, triton.next_power_of_2(N) if N else 16))
    _scale((triton.cdiv(N, size), rows), *Strided(x).args, y, m, l, N, BLOCK=size)
    return y


@triton.jit
def att(s_ptr, s0, s1, v_ptr, v0, v1, o_ptr, N, D: tl.constexpr, BLOCK: tl.constexpr, PAD: tl.constexpr):
    tl.static_assert(PAD >= D, "PAD too small")
    i = tl.program_id(0).to(tl.int64)
    d = tl.arange(0, PAD)
    m = tl.full((), NEG, tl.float32)
    l = tl.full((), 0.0, tl.float32)
    acc = tl.zeros((PAD,), tl.float32)
    for n in range(0, N, BLOCK):
        j = n + tl.arange(0, BLOCK)
        s = tl.load(s_ptr + i * s0 + j.to(tl.int64) * s1, mask=j < N, other=NEG).to(tl.float32)
        v = tl.load(
            v_ptr + j[:, None].to(tl.int64) * v0 + d[None, :] * v1, mask=(j[:, None] < N) & (d[None, :] < D), other=0
        )
        new = tl.maximum(m, tl.max(s, 0))
        k = shifted(new)
        p = libdevice.exp(s - k)
        a = libdevice.exp(m - k)
        l = libdevice.fma(l, a, tl.sum(p, 0))
        acc = acc * a + tl.sum(p[:, None] * v.to(tl.float32), 0)
        m = new
    o = libdevice.div_rn(acc, tl.where(l > 0, l, 1.0))
    tl.store(o_ptr + i * D + d, o.to(o_ptr.dtype.element_ty), mask=d < D)


def attend(scores, v, block=64):
    o = torch.empty((scores.shape[0], v.shape[1]), dtype=v.dtype, device=v.device)
    if scores.shape[0] == 0:
        return o
    launch = functools.partial(att[(len(scores),)], num_warps=4)
    launch(
        *Strided(scores).args,
        *Strided(v).args,
        o,
        scores.shape[1],
        D=v.shape[1],
        BLOCK=block,
        PAD=triton.next_power_of_2(v.shape[1]),
    )
    return o
