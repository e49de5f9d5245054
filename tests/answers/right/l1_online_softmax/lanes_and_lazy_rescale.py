"""Lanes that each keep m and l; the lowest float as a start, without guard; a reference that moves only if it must."""

import torch
import triton
import triton.language as tl


@triton.jit
def lanes_kernel(x_ptr, m_ptr, l_ptr, M, N, sr, sc, R: tl.constexpr, C: tl.constexpr):
    rows = tl.program_id(0) * R + tl.arange(0, R)
    lanes = tl.arange(0, C)
    m = tl.full((R, C), float("-inf"), tl.float32)
    l = tl.zeros((R, C), tl.float32)
    for i in range(tl.cdiv(N, C)):
        cols = i * C + lanes
        ok = (rows < M)[:, None] & (cols < N)[None, :]
        x = tl.load(
            x_ptr + rows.to(tl.int64)[:, None] * sr + cols.to(tl.int64)[None, :] * sc, mask=ok, other=float("-inf")
        ).to(tl.float32)
        # each lane keeps its own pair; the lanes are merged once, at the end
        mn = tl.maximum(m, x)
        empty = mn == float("-inf")
        l = tl.where(empty, 0.0, l * tl.exp(m - mn) + tl.exp(x - mn))
        m = mn
    top = tl.max(m, 1)
    w = tl.where(m == float("-inf"), 0.0, tl.exp(m - top[:, None]))
    total = tl.sum(l * w, 1)
    tl.store(m_ptr + rows, top, mask=rows < M)
    tl.store(l_ptr + rows, total, mask=rows < M)


def softmax_stats(x, block=1024):
    M, N = x.shape
    m = torch.empty((M,), dtype=torch.float32, device=x.device)
    l = torch.empty_like(m)
    if M:
        lanes_kernel[(triton.cdiv(M, 4),)](x, m, l, M, N, x.stride(0), x.stride(1), R=4, C=min(block, 128))
    return m, l


LOWEST = tl.constexpr(-3.4028234663852886e38)


@triton.jit
def lowest_kernel(x_ptr, y_ptr, M, N, sr, sc, C: tl.constexpr):
    for row in range(tl.program_id(0), M, tl.num_programs(0)):
        r = tl.cast(row, tl.int64)
        m = LOWEST  # of use here: x = -inf gives exp(-inf), never (-inf) - (-inf), and no finite score lies below it
        l = 0.0
        for c in range(0, N, C):
            j = c + tl.arange(0, C)
            x = tl.load(x_ptr + r * sr + j.to(tl.int64) * sc, mask=j < N, other=float("-inf")).to(tl.float32)
            mn = tl.maximum(m, tl.max(x, 0))
            l = l * tl.exp(m - mn) + tl.sum(tl.exp(x - mn), 0)
            m = mn
        d = tl.where(l > 0, l, 1.0)
        for c in range(0, N, C):
            j = c + tl.arange(0, C)
            x = tl.load(x_ptr + r * sr + j.to(tl.int64) * sc, mask=j < N, other=float("-inf")).to(tl.float32)
            tl.store(y_ptr + r * N + j, (tl.exp(x - m) / d).to(y_ptr.dtype.element_ty), mask=j < N)


def softmax(x, block=1024):
    M, N = x.shape
    y = torch.empty((M, N), dtype=x.dtype, device=x.device)
    if M and N:
        lowest_kernel[(min(M, 3),)](x, y, M, N, x.stride(0), x.stride(1), C=block)
    return y


@triton.jit
def lazy_kernel(s_ptr, v_ptr, o_ptr, N, ss0, ss1, sv0, sv1, D: tl.constexpr, C: tl.constexpr, W: tl.constexpr):
    """The reference moves only when the max runs more than 8 ahead of it: exp(8) is harmless in float32."""
    row = tl.program_id(0).to(tl.int64)
    d = tl.arange(0, W)
    ref = float("-inf")
    l = 0.0
    acc = tl.zeros((W,), tl.float32)
    for c in range(0, N, C):
        n = (c + tl.arange(0, C)).to(tl.int64)
        s = tl.load(s_ptr + row * ss0 + n * ss1, mask=n < N, other=float("-inf")).to(tl.float32)
        v = tl.load(
            v_ptr + n[:, None] * sv0 + d[None, :].to(tl.int64) * sv1,
            mask=(n < N)[:, None] & (d < D)[None, :],
            other=0.0,
        ).to(tl.float32)
        top = tl.max(s, 0)
        if top > ref + 8.0:
            keep = tl.exp(ref - top)
            l = l * keep
            acc = acc * keep
            ref = top
        p = tl.where(s == float("-inf"), 0.0, tl.exp(s - ref))
        l += tl.sum(p, 0)
        acc += tl.sum(p[:, None] * v, 0)
    tl.store(o_ptr + row * D + d, acc / tl.where(l > 0, l, 1.0), mask=d < D)


def attend(scores, v, block=64):
    M, N = scores.shape
    D = v.shape[1]
    o = torch.empty((M, D), dtype=v.dtype, device=v.device)
    if M:
        lazy_kernel[(M,)](scores, v, o, N, *scores.stride(), *v.stride(), D, min(block, 32), triton.next_power_of_2(D))
    return o
