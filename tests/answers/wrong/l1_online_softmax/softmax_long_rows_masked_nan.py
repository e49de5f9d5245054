"""Rows of more than 1,024 columns have no guard against a first block without a score.

exercise: softmax
level: edge
diagnosis: softmax_nan
twins: softmax_inf_minus_inf softmax_masked_beginning
"""

import torch
import triton
import triton.language as tl


@triton.jit
def short_kernel(x_ptr, y_ptr, N, stride_m, stride_n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    col = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride_m + col.to(tl.int64) * stride_n, mask=col < N, other=float("-inf")).to(tl.float32)
    m = tl.max(x, axis=0)
    e = tl.exp(x - tl.where(m == float("-inf"), 0.0, m))
    l = tl.sum(e, axis=0)
    tl.store(y_ptr + row * N + col, e / tl.where(l > 0, l, 1.0), mask=col < N)


@triton.jit
def long_kernel(x_ptr, y_ptr, N, stride_m, stride_n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    m = float("-inf")
    l = 0.0
    for start in range(0, N, BLOCK):
        col = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * stride_m + col.to(tl.int64) * stride_n, mask=col < N, other=float("-inf"))
        x = x.to(tl.float32)
        m_new = tl.maximum(m, tl.max(x, axis=0))
        l = l * tl.exp(m - m_new) + tl.sum(tl.exp(x - m_new), axis=0)
        m = m_new
    shift = tl.where(m == float("-inf"), 0.0, m)
    l = tl.where(l > 0, l, 1.0)
    for start in range(0, N, BLOCK):
        col = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * stride_m + col.to(tl.int64) * stride_n, mask=col < N, other=float("-inf"))
        tl.store(y_ptr + row * N + col, tl.exp(x.to(tl.float32) - shift) / l, mask=col < N)


def softmax(x, block=1024):
    M, N = x.shape
    y = torch.empty((M, N), dtype=x.dtype, device=x.device)
    if M == 0 or N == 0:
        return y
    if N <= 1024:
        short_kernel[(M,)](x, y, N, x.stride(0), x.stride(1), triton.next_power_of_2(N))
    else:
        long_kernel[(M,)](x, y, N, x.stride(0), x.stride(1), block)
    return y
