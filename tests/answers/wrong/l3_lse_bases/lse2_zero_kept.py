"""The 0 that is subtracted while the max is -inf stays the max, so that scores far below 0 are lost.

exercise: lse2
level: edge
diagnosis: lse2_zero_kept
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, N, sr, sc, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    m = float("-inf")
    l = 0.0
    for start in range(0, N, BLOCK):
        col = (start + tl.arange(0, BLOCK)).to(tl.int64)
        x = tl.load(x_ptr + row * sr + col * sc, mask=col < N, other=float("-inf")).to(tl.float32) * 1.4426950408889634
        m_new = tl.maximum(m, tl.max(x, axis=0))
        m_new = tl.where(m_new == float("-inf"), 0.0, m_new)
        l = l * tl.exp2(m - m_new) + tl.sum(tl.exp2(x - m_new), axis=0)
        m = m_new
    tl.store(out_ptr + row, m + tl.log2(l))


def lse2(x):
    M, N = x.shape
    out = torch.empty(M, dtype=torch.float32, device=x.device)
    if M:
        kernel[(M,)](x, out, N, x.stride(0), x.stride(1), BLOCK=256)
    return out
