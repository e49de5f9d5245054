"""Kernels of the kinds that lessons use, to time the interpreter with; free of what plain Triton crashes on."""

import torch
import triton
import triton.language as tl


@triton.jit
def merge_rows(v_a, s_a, v_b, s_b, v, s, rows, D: tl.constexpr, BLOCK_R: tl.constexpr, BLOCK_D: tl.constexpr):
    row = tl.program_id(0) * BLOCK_R + tl.arange(0, BLOCK_R)
    d = tl.arange(0, BLOCK_D)
    ok = (row < rows)[:, None] & (d < D)[None, :]
    at = row[:, None] * D + d[None, :]
    left = tl.load(s_a + row, mask=row < rows, other=0.0)
    right = tl.load(s_b + row, mask=row < rows, other=0.0)
    m = tl.maximum(left, right)
    w_a = tl.exp2(left - m)
    w_b = tl.exp2(right - m)
    a = tl.load(v_a + at, mask=ok, other=0.0).to(tl.float32)
    b = tl.load(v_b + at, mask=ok, other=0.0).to(tl.float32)
    merged = (a * w_a[:, None] + b * w_b[:, None]) / (w_a + w_b)[:, None]
    tl.store(v + at, merged.to(tl.float16), mask=ok)
    tl.store(s + row, m + tl.log2(w_a + w_b), mask=row < rows)


@triton.jit
def softmax_rows(x, y, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    m = -float("inf")
    total = 0.0
    for start in range(0, N, BLOCK):
        at = start + tl.arange(0, BLOCK)
        part = tl.load(x + row * N + at, mask=at < N, other=-float("inf"))
        m_new = tl.maximum(m, tl.max(part, axis=0))
        total = total * tl.exp(m - m_new) + tl.sum(tl.exp(part - m_new), axis=0)
        m = m_new
    for start in range(0, N, BLOCK):
        at = start + tl.arange(0, BLOCK)
        part = tl.load(x + row * N + at, mask=at < N, other=-float("inf"))
        tl.store(y + row * N + at, tl.exp(part - m) / total, mask=at < N)


@triton.jit
def attend_block(q, k, v, o, L, D: tl.constexpr, BLOCK_Q: tl.constexpr, BLOCK_K: tl.constexpr):
    rows = tl.program_id(0) * BLOCK_Q + tl.arange(0, BLOCK_Q)
    d = tl.arange(0, D)
    queries = tl.load(q + rows[:, None] * D + d[None, :])
    m = tl.full([BLOCK_Q], -float("inf"), tl.float32)
    total = tl.zeros([BLOCK_Q], tl.float32)
    acc = tl.zeros([BLOCK_Q, D], tl.float32)
    for start in range(0, L, BLOCK_K):
        keys = start + tl.arange(0, BLOCK_K)
        block_k = tl.load(k + keys[None, :] * D + d[:, None], mask=(keys < L)[None, :], other=0.0)
        scores = tl.dot(queries, block_k)
        scores = tl.where((keys < L)[None, :], scores, -float("inf"))
        m_new = tl.maximum(m, tl.max(scores, axis=1))
        p = tl.exp2(scores - m_new[:, None])
        alpha = tl.exp2(m - m_new)
        block_v = tl.load(v + keys[:, None] * D + d[None, :], mask=(keys < L)[:, None], other=0.0)
        acc = acc * alpha[:, None] + tl.dot(p.to(tl.float16), block_v)
        total = total * alpha + tl.sum(p, axis=1)
        m = m_new
    tl.store(o + rows[:, None] * D + d[None, :], acc / total[:, None])


def merge():
    """64 rows of 80, in tiles of 8."""
    v = torch.ones(64, 80, dtype=torch.float16)
    s, out, out_s = torch.ones(64), torch.empty_like(v), torch.empty(64)
    merge_rows[(8,)](v, s, v, s, out, out_s, 64, 80, 8, 128)


def softmax():
    """8 rows of 1,000, in blocks of 256."""
    x = torch.ones(8, 1000)
    softmax_rows[(8,)](x, torch.empty_like(x), 1000, 256)


def attend():
    """64 queries over 200 keys, D = 64, in blocks of 16 and 64."""
    q, k = torch.ones(64, 64, dtype=torch.float16), torch.ones(200, 64, dtype=torch.float16)
    attend_block[(4,)](q, k, k, torch.empty(64, 64), 200, 64, 16, 64)


CASES = {"merge": merge, "softmax": softmax, "attend": attend}
