"""The running max is not moved on at the end of a step.

exercise: softmax_stats
level: value
diagnosis: stats_stays
"""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_stats_kernel(x_ptr, m_ptr, l_ptr, N, stride_row, stride_col, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    m = float("-inf")
    l = 0.0
    for start in range(0, N, BLOCK):
        col = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * stride_row + col * stride_col, mask=col < N, other=float("-inf")).to(tl.float32)
        m_new = tl.maximum(m, tl.max(x, axis=0))
        shift = tl.where(m_new == float("-inf"), 0.0, m_new)
        l = l * tl.exp(m - shift) + tl.sum(tl.exp(x - shift), axis=0)
    tl.store(m_ptr + row, m)
    tl.store(l_ptr + row, l)


def softmax_stats(x: torch.Tensor, block: int = 1024) -> tuple[torch.Tensor, torch.Tensor]:
    M, N = x.shape
    m = torch.empty(M)
    l = torch.empty(M)
    softmax_stats_kernel[(M,)](x, m, l, N, x.stride(0), x.stride(1), block)
    return m, l
