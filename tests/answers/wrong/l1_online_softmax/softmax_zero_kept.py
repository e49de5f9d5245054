"""The 0 that is subtracted while the max is -inf stays the max, so that scores far below 0 are lost.

exercise: softmax
level: edge
diagnosis: softmax_zero_kept
"""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, y_ptr, N, sr, sc, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    m = float("-inf")
    l = 0.0
    for start in range(0, N, BLOCK):
        col = (start + tl.arange(0, BLOCK)).to(tl.int64)
        x = tl.load(x_ptr + row * sr + col * sc, mask=col < N, other=float("-inf")).to(tl.float32)
        m_new = tl.maximum(m, tl.max(x, axis=0))
        m_new = tl.where(m_new == float("-inf"), 0.0, m_new)
        l = l * tl.exp(m - m_new) + tl.sum(tl.exp(x - m_new), axis=0)
        m = m_new
    scale = 1.0 / tl.where(l > 0.0, l, 1.0)
    for start in range(0, N, BLOCK):
        col = (start + tl.arange(0, BLOCK)).to(tl.int64)
        x = tl.load(x_ptr + row * sr + col * sc, mask=col < N, other=float("-inf")).to(tl.float32)
        y = tl.exp(x - m) * scale
        tl.store(y_ptr + row * N + col, y.to(y_ptr.dtype.element_ty), mask=col < N)


def softmax(x, block=1024):
    M, N = x.shape
    y = torch.empty((M, N), dtype=x.dtype, device=x.device)
    if M and N:
        softmax_kernel[(M,)](x, y, N, x.stride(0), x.stride(1), BLOCK=min(block, triton.next_power_of_2(N)))
    return y
