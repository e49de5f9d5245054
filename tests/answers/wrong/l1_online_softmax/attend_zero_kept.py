"""The 0 that is subtracted while the max is -inf stays the max, so that scores far below 0 are lost.

exercise: attend
level: edge
diagnosis: attend_zero_kept
"""

import torch
import triton
import triton.language as tl


@triton.jit
def attend_kernel(s_ptr, v_ptr, o_ptr, N, sr, sc, vn, vd, D: tl.constexpr, BLOCK: tl.constexpr, BLOCK_D: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    d = tl.arange(0, BLOCK_D).to(tl.int64)
    m = float("-inf")
    l = 0.0
    o = tl.zeros((BLOCK_D,), tl.float32)
    for start in range(0, N, BLOCK):
        n = (start + tl.arange(0, BLOCK)).to(tl.int64)
        x = tl.load(s_ptr + row * sr + n * sc, mask=n < N, other=float("-inf")).to(tl.float32)
        v = tl.load(v_ptr + n[:, None] * vn + d[None, :] * vd, mask=(n < N)[:, None] & (d < D)[None, :], other=0.0)
        m_new = tl.maximum(m, tl.max(x, axis=0))
        m_new = tl.where(m_new == float("-inf"), 0.0, m_new)
        keep = tl.exp(m - m_new)
        w = tl.exp(x - m_new)
        l = l * keep + tl.sum(w, axis=0)
        o = o * keep + tl.sum(w[:, None] * v.to(tl.float32), axis=0)
        m = m_new
    o = o / tl.where(l > 0.0, l, 1.0)
    tl.store(o_ptr + row * D + d, o.to(o_ptr.dtype.element_ty), mask=d < D)


def attend(scores, v, block=64):
    M, N = scores.shape
    D = v.shape[1]
    o = torch.empty((M, D), dtype=v.dtype, device=v.device)
    BD = triton.next_power_of_2(D)
    if M:
        B = max(1, min(block, 8192 // BD, triton.next_power_of_2(max(N, 1))))
        attend_kernel[(M,)](scores, v, o, N, *scores.stride(), *v.stride(), D=D, BLOCK=B, BLOCK_D=BD)
    return o
