"""Blocks sorted, gathered and flipped, tl.softmax for a whole row, a cumulative sum in place of a sum."""

import torch
import triton
import triton.language as tl


@triton.jit
def pick(x, i, B: tl.constexpr):
    return tl.sum(tl.where(tl.arange(0, B) == i, x, 0), axis=0)


@triton.jit
def sorted_stats(x_ptr, m_ptr, l_ptr, N, sr, sc, B: tl.constexpr = 64, KIND: tl.constexpr = tl.float32):
    """Every block is looked at the roundabout way."""
    tl.static_print("block", B)
    tl.static_assert(B >= 2, f"a block of {B} is too small")
    row = tl.program_id(0).to(tl.int64)
    m = tl.full([], -float("inf"), KIND)
    l = tl.full([], 0, KIND)
    i = 0
    while i * B < N:
        c = i * B + tl.arange(0, B)
        c64 = c.to(tl.int64)
        x = tl.load(x_ptr + row * sr + c64 * sc, c < N, -float("inf")).to(KIND)
        order = tl.sort(x, 0, True)
        best = tl.topk(x, 2)
        top = tl.max(best, 0)
        top2 = tl.max(tl.gather(order, tl.zeros([B], tl.int32), 0), 0)
        top = tl.maximum(top, top2)
        new = tl.maximum(m, top)
        shift = tl.where(new == -float("inf"), 0.0, new)
        e = tl.exp(order - shift)
        total = pick(tl.cumsum(e, 0), B - 1, B)
        l = l * tl.exp(m - shift) + total
        m = new
        i += 1
    tl.store(m_ptr + row, m)
    tl.store(l_ptr + row, l)


def softmax_stats(x, block=1024):
    M, N = x.shape
    m = torch.empty(M, dtype=torch.float32, device=x.device)
    l = m.new_empty(M)
    if M:
        sorted_stats[(M,)](x, m, l, N, x.stride(0), x.stride(1), B=max(2, min(128, triton.next_power_of_2(max(N, 1)))), KIND=tl.float32)
    return m, l


@triton.jit
def whole_row(x_ptr, y_ptr, N, sr, sc, BLOCK: tl.constexpr):
    row = tl.program_id(axis=0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row.to(tl.int64) * sr + cols.to(tl.int64) * sc, mask=cols < N, other=-float("inf")).to(tl.float32)
    dead = tl.max(x, 0) == -float("inf")
    x = tl.where(dead, 0.0, x)
    x = tl.where(cols < N, x, -float("inf"))
    y = tl.softmax(x, dim=0)
    y = tl.where(dead, 0.0, y)
    tl.store(y_ptr + row.to(tl.int64) * N + cols, y.to(y_ptr.type.element_ty), mask=cols < N)


def softmax(x, block=1024):
    M, N = x.shape
    y = torch.empty_like(x, memory_format=torch.contiguous_format)
    if x.numel() == 0:
        return y
    whole_row[(M,)](x, y, N, *x.stride(), BLOCK=triton.next_power_of_2(N))
    return y


@triton.jit
def weights(x, m):
    return tl.where(x > float("-inf"), tl.math.exp(x - m), tl.zeros_like(x))


@triton.jit
def from_the_last_block(s, v, o, N: tl.int32, ss: tl.int64, st: tl.int64, vs: tl.int64, vt: tl.int64, D: tl.constexpr, B: tl.constexpr, BD: tl.constexpr):
    i = tl.program_id(0)
    d = tl.arange(0, BD)
    top = tl.full((1,), float("-inf"), tl.float32)
    den = tl.zeros((1,), tl.float32)
    acc = tl.zeros((1, BD), tl.float32)
    for b in range(tl.cdiv(N, B) - 1, -1, -1):
        n = b * B + tl.arange(0, B)
        n = tl.flip(n, 0)
        x = tl.load(s + i * ss + n * st, n < N, float("-inf")).to(tl.float32)
        y = tl.load(v + n[:, None] * vs + d[None, :] * vt, (n[:, None] < N) & (d[None, :] < D), 0.0).to(tl.float32)
        new = tl.maximum(top, tl.max(x, 0, keep_dims=True))
        old = weights(top, new)
        w = weights(x, new)
        den = den * old + tl.sum(w, axis=0, keep_dims=True)
        acc = tl.fma(acc, tl.broadcast_to(old[:, None], (1, BD)), tl.sum(w[:, None] * y, 0, keep_dims=True))
        top = new
    out = tl.where(den[:, None] > 0, tl.math.fdiv(acc, den[:, None]), 0.0)
    tl.store(o + i * D + d[None, :], out.to(o.dtype.element_ty), d[None, :] < D)


def attend(scores, v, block=64):
    M, N = scores.shape
    N, D = v.shape
    o = torch.zeros((M, D), dtype=v.dtype, device=v.device)
    if M == 0:
        return o
    from_the_last_block[M, 1](scores, v, o, N, scores.stride(0), scores.stride(1), v.stride(0), v.stride(1), D, max(2, min(block, 64)), triton.next_power_of_2(D))
    return o
