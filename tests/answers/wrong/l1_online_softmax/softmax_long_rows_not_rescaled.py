"""Rows of more than 4,096 columns go another way, where l is not rescaled.

exercise: softmax
level: edge
diagnosis: wrong_value
"""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(
    x_ptr,  # [M, N]
    y_ptr,  # [M, N]
    N,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    m = float("-inf")
    l = 0.0
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * N + cols, mask=cols < N, other=float("-inf")).to(tl.float32)
        m_new = tl.maximum(m, tl.max(x, axis=0))
        shift = tl.where(m_new == float("-inf"), 0.0, m_new)
        keep = tl.exp(m - shift) if N <= 4096 else 1.0
        l = l * keep + tl.sum(tl.exp(x - shift), axis=0)
        m = m_new
    shift = tl.where(m == float("-inf"), 0.0, m)
    total = tl.where(l > 0, l, 1.0)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * N + cols, mask=cols < N, other=float("-inf")).to(tl.float32)
        y = tl.exp(x - shift) / total
        tl.store(y_ptr + row * N + cols, y, mask=cols < N)


def softmax(x, block=1024):
    M, N = x.shape
    x = x.contiguous()
    y = torch.empty((M, N), dtype=x.dtype, device=x.device)
    if M > 0 and N > 0:
        softmax_kernel[(M,)](x, y, N, block)
    return y
