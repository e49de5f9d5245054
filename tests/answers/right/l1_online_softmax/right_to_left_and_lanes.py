"""Blocks from right to left; lanes of neighboring columns in three-dimensional tiles; a program walks over rows."""

import torch
import triton
import triton.language as tl


@triton.jit
def guarded_exp(x, m):
    """exp(x - m), and 0 where m is -inf."""
    return tl.where(m == float("-inf"), 0.0, tl.exp(x - tl.where(m == float("-inf"), 0.0, m)))


@triton.jit
def stats_kernel(x, m_out, l_out, M, N, x_m, x_n, ROWS: tl.constexpr, LANES: tl.constexpr, EACH: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None, None]
    lane = tl.arange(0, LANES)[None, :, None]
    place = tl.arange(0, EACH)[None, None, :]
    m = tl.full([ROWS, LANES], float("-inf"), tl.float32)
    l = tl.zeros([ROWS, LANES], tl.float32)
    start = tl.cdiv(N, LANES * EACH) * LANES * EACH
    while start > 0:
        start -= LANES * EACH
        col = (start + lane * EACH + place).to(tl.int64)
        tile = tl.load(x + row * x_m + col * x_n, mask=(row < M) & (col < N), other=float("-inf")).to(tl.float32)
        m_new = tl.maximum(m, tl.max(tile, 2))
        l = l * guarded_exp(m, m_new) + tl.sum(guarded_exp(tile, m_new[:, :, None]), 2)
        m = m_new
    top = tl.max(m, 1)
    total = tl.sum(l * guarded_exp(m, top[:, None]), 1)
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    tl.store(m_out + row, top, mask=row < M)
    tl.store(l_out + row, total, mask=row < M)


def softmax_stats(x, block=1024):
    M, N = x.shape
    m = torch.empty(M, dtype=torch.float32, device=x.device)
    l = torch.empty_like(m)
    if M:
        each = max(1, min(block, 256) // 8)
        stats_kernel[(triton.cdiv(M, 4),)](x, m, l, M, N, *x.stride(), ROWS=4, LANES=8, EACH=each)
    return m, l


@triton.jit
def softmax_kernel(x, y, M, N, x_m, x_n, BLOCK: tl.constexpr):
    blocks = tl.cdiv(N, BLOCK)
    for row in range(tl.program_id(0), M, tl.num_programs(0)):
        x_row = x + row.to(tl.int64) * x_m
        m = float("-inf")
        l = 0.0
        for back in range(1, blocks + 1):
            col = ((blocks - back) * BLOCK + tl.arange(0, BLOCK)).to(tl.int64)
            tile = tl.load(x_row + col * x_n, mask=col < N, other=float("-inf")).to(tl.float32)
            top = tl.max(tile, 0)
            if top > m:
                l = l * tl.exp(m - top)
                m = top
            l += tl.sum(guarded_exp(tile, m), 0)
        ln = tl.log(tl.where(l > 0, l, 1.0))
        for at in range(0, blocks):
            col = (at * BLOCK + tl.arange(0, BLOCK)).to(tl.int64)
            tile = tl.load(x_row + col * x_n, mask=col < N, other=float("-inf")).to(tl.float32)
            difference = tile - tl.where(l > 0, m, 0.0)
            tl.store(y + row.to(tl.int64) * N + col, tl.exp(difference - ln).to(y.dtype.element_ty), mask=col < N)


def softmax(x, block=1024):
    M, N = x.shape
    y = torch.empty((M, N), dtype=x.dtype, device=x.device)
    if x.numel():
        softmax_kernel[(min(M, 32),)](x, y, M, N, *x.stride(), BLOCK=min(block, 512))
    return y


@triton.jit
def attend_kernel(s, v, o, M, N, D, s_m, s_n, v_n, v_d, BLOCK: tl.constexpr, WIDE: tl.constexpr):
    d = tl.program_id(1).to(tl.int64) * WIDE + tl.arange(0, WIDE)
    row = tl.program_id(0)
    while row < M:
        m = tl.full([1], float("-inf"), tl.float32)
        l = tl.zeros([1], tl.float32)
        acc = tl.zeros([WIDE], tl.float32)
        n = (N - BLOCK + tl.arange(0, BLOCK)).to(tl.int64)
        left = N
        while left > 0:
            score = tl.load(s + row.to(tl.int64) * s_m + n * s_n, mask=n >= 0, other=float("-inf")).to(tl.float32)
            turned = tl.load(
                v + n[None, :] * v_n + d[:, None] * v_d, mask=(n >= 0)[None, :] & (d < D)[:, None], other=0.0
            )
            m_new = tl.maximum(m, tl.max(score, 0))
            w = guarded_exp(score, m_new)
            keep = guarded_exp(m, m_new)
            l = l * keep + tl.sum(w, 0)
            acc = acc * keep + tl.sum(turned.to(tl.float32) * w[None, :], 1)
            m = m_new
            n -= BLOCK
            left -= BLOCK
        acc = acc / tl.where(l > 0, l, 1.0)
        tl.store(o + row.to(tl.int64) * D + d, acc.to(o.dtype.element_ty), mask=d < D)
        row += tl.num_programs(0)


def attend(scores, v, block=64):
    M, N = scores.shape
    D = v.shape[1]
    o = torch.empty((M, D), dtype=v.dtype, device=v.device)
    if M:
        wide = min(128, triton.next_power_of_2(D))
        grid = (min(M, 48), triton.cdiv(D, wide))
        attend_kernel[grid](scores, v, o, M, N, D, *scores.stride(), *v.stride(), BLOCK=min(block, 32), WIDE=wide)
    return o
