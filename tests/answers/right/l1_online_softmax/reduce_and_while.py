"""(m, l) pairs merged by tl.reduce with a combine function, while loops, one loop for statistics and output alike."""

import torch
import triton
import triton.language as tl


@triton.jit
def merge(m_a, l_a, m_b, l_b):
    """Two pairs (m, l) as one; (-inf, 0) is neutral."""
    m = tl.maximum(m_a, m_b)
    a = tl.where(m_a == m, l_a, l_a * tl.exp(m_a - m))
    b = tl.where(m_b == m, l_b, l_b * tl.exp(m_b - m))
    return m, a + b


@triton.jit
def row_stats(x_ptr, N, stride, BLOCK: tl.constexpr):
    """m and l of one row."""
    m = tl.full((), float("-inf"), tl.float32)
    l = tl.full((), 0.0, tl.float32)
    start = 0
    while start < N:
        n = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + n.to(tl.int64) * stride, mask=n < N, other=float("-inf")).to(tl.float32)
        one = tl.where(x == float("-inf"), 0.0, 1.0)
        m_block, l_block = tl.reduce((x, one), 0, merge)
        m, l = merge(m, l, m_block, l_block)
        start += BLOCK
    return m, l


@triton.jit
def stats_kernel(x_ptr, m_ptr, l_ptr, N, stride_row, stride_col, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    m, l = row_stats(x_ptr + row * stride_row, N, stride_col, BLOCK)
    tl.store(m_ptr + row, m)
    tl.store(l_ptr + row, l)


def softmax_stats(x, block=1024):
    m = torch.zeros(len(x), device=x.device)
    l = torch.zeros(len(x), device=x.device)
    if len(x):
        stats_kernel[(len(x),)](x, m, l, x.shape[1], x.stride(0), x.stride(1), BLOCK=max(2, min(256, block)))
    return m, l


@triton.jit
def softmax_kernel(x_ptr, y_ptr, N, stride_row, stride_col, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * stride_row
    y_ptr += row * N
    m, l = row_stats(x_ptr, N, stride_col, BLOCK)
    start = 0
    while start < N:
        n = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + n.to(tl.int64) * stride_col, mask=n < N, other=0.0).to(tl.float32)
        y = tl.where(x == float("-inf"), 0.0, tl.exp(x - m)) / tl.maximum(l, 1.0)  # l is at least 1 unless it is 0
        tl.store(y_ptr + n, y.to(y_ptr.dtype.element_ty), mask=n < N)
        start += BLOCK


def softmax(x, block=1024):
    y = torch.zeros(x.shape, dtype=x.dtype, device=x.device)
    if y.numel():
        softmax_kernel[(len(x),)](x, y, x.shape[1], x.stride(0), x.stride(1), BLOCK=max(2, min(256, block)))
    return y


@triton.jit
def attend_kernel(s_ptr, v_ptr, o_ptr, N, D, s_row, s_col, v_row, v_col, BLOCK_D: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    d = tl.arange(0, BLOCK_D)
    m = tl.full((), float("-inf"), tl.float32)
    l = tl.full((), 0.0, tl.float32)
    o = tl.zeros((BLOCK_D,), tl.float32)
    n = tl.full((), 0, tl.int64)
    while n < N:  # one score a step: the recurrence as it is on paper
        s = tl.load(s_ptr + row * s_row + n * s_col).to(tl.float32)
        if s > float("-inf"):
            v = tl.load(v_ptr + n * v_row + d * v_col, mask=d < D, other=0.0).to(tl.float32)
            m_new = tl.maximum(m, s)
            keep = tl.exp(m - m_new)
            w = tl.exp(s - m_new)
            l = l * keep + w
            o = o * keep + v * w
            m = m_new
        n += 1
    tl.store(o_ptr + row * D + d, (o / tl.maximum(l, 1.0)).to(o_ptr.dtype.element_ty), mask=d < D)


def attend(scores, v, block=64):
    M, N = scores.shape
    D = v.shape[1]
    o = torch.zeros((M, D), dtype=v.dtype, device=v.device)
    if M:
        attend_kernel[(M,)](scores, v, o, N, D, *scores.stride(), *v.stride(), BLOCK_D=triton.next_power_of_2(D))
    return o
