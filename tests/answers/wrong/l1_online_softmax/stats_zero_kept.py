"""The 0 that is subtracted while the max is -inf stays the max; where l is 0, -inf is put back.

exercise: softmax_stats
level: edge
diagnosis: stats_zero_kept
"""

import torch
import triton
import triton.language as tl


@triton.jit
def stats_kernel(x_ptr, m_ptr, l_ptr, N, sr, sc, BLOCK: tl.constexpr):
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
    tl.store(m_ptr + row, tl.where(l == 0.0, float("-inf"), m))
    tl.store(l_ptr + row, l)


def softmax_stats(x, block=1024):
    M, N = x.shape
    m = torch.empty(M, dtype=torch.float32, device=x.device)
    l = torch.empty_like(m)
    if M:
        stats_kernel[(M,)](x, m, l, N, x.stride(0), x.stride(1), BLOCK=min(block, 1024))
    return m, l
