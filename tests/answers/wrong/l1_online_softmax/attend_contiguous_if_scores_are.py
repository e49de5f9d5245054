"""v is made contiguous only if the scores are not.

exercise: attend
level: memory
diagnosis: out_of_bounds
"""

import torch
import triton
import triton.language as tl


@triton.jit
def attend_kernel(
    scores_ptr,  # [M, N]
    v_ptr,  # [N, D]
    o_ptr,  # [M, D]
    N,
    D,
    stride_m, stride_n,
    stride_vn, stride_vd,
    BLOCK: tl.constexpr,
    BLOCK_D: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    d = tl.program_id(1) * BLOCK_D + tl.arange(0, BLOCK_D)
    m = float("-inf")
    l = 0.0
    o = tl.zeros((BLOCK_D,), tl.float32)
    for start in range(0, N, BLOCK):
        n = start + tl.arange(0, BLOCK)
        s = tl.load(scores_ptr + row * stride_m + n.to(tl.int64) * stride_n, mask=n < N, other=float("-inf"))
        s = s.to(tl.float32)
        m_new = tl.maximum(m, tl.max(s, axis=0))
        shift = tl.where(m_new == float("-inf"), 0.0, m_new)
        keep = tl.exp(m - shift)
        w = tl.exp(s - shift)
        at = n.to(tl.int64)[:, None] * stride_vn + d.to(tl.int64)[None, :] * stride_vd
        v = tl.load(v_ptr + at, mask=(n < N)[:, None] & (d < D)[None, :], other=0.0)
        o = o * keep + tl.sum(w[:, None] * v.to(tl.float32), axis=0)
        l = l * keep + tl.sum(w, axis=0)
        m = m_new
    o = o / tl.where(l > 0, l, 1.0)
    tl.store(o_ptr + row * D + d, o, mask=d < D)


def attend(scores, v, block=64):
    M, N = scores.shape
    D = v.shape[1]
    o = torch.empty((M, D), dtype=v.dtype, device=v.device)
    if not scores.is_contiguous():
        scores, v = scores.contiguous(), v.contiguous()
    if M > 0:
        BLOCK_D = triton.next_power_of_2(D)
        BLOCK = min(block, triton.next_power_of_2(max(1, N)), max(1, 8192 // BLOCK_D))
        attend_kernel[(M, 1)](scores, v, o, N, D, *scores.stride(), D, 1, BLOCK, BLOCK_D)
    return o
