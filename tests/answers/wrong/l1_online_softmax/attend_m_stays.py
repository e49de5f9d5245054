"""The running max is not moved on at the end of a step.

exercise: attend
level: value
diagnosis: attend_stays
"""

import torch
import triton
import triton.language as tl


@triton.jit
def attend_kernel(
    scores_ptr,
    v_ptr,
    o_ptr,
    N,
    stride_row,
    stride_col,
    stride_vn,
    stride_vd,
    D: tl.constexpr,
    BLOCK: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    d = tl.arange(0, BLOCK_D)
    m = float("-inf")
    l = 0.0
    o = tl.zeros((BLOCK_D,), tl.float32)
    for start in range(0, N, BLOCK):
        n = (start + tl.arange(0, BLOCK)).to(tl.int64)
        x = tl.load(scores_ptr + row * stride_row + n * stride_col, mask=n < N, other=float("-inf")).to(tl.float32)
        v = tl.load(
            v_ptr + n[:, None] * stride_vn + d[None, :].to(tl.int64) * stride_vd,
            mask=(n < N)[:, None] & (d < D)[None, :],
            other=0.0,
        ).to(tl.float32)
        m_new = tl.maximum(m, tl.max(x, axis=0))
        shift = tl.where(m_new == float("-inf"), 0.0, m_new)
        f = tl.exp(m - shift)
        w = tl.exp(x - shift)
        l = l * f + tl.sum(w, axis=0)
        o = o * f + tl.sum(w[:, None] * v, axis=0)
    tl.store(o_ptr + row * D + d, o / tl.where(l > 0, l, 1.0), mask=d < D)


def attend(scores: torch.Tensor, v: torch.Tensor, block: int = 64) -> torch.Tensor:
    M, N = scores.shape
    D = v.shape[1]
    o = torch.empty((M, D), dtype=v.dtype, device=v.device)
    BLOCK_D = triton.next_power_of_2(D)
    if M:
        attend_kernel[(M,)](
            scores, v, o, N, *scores.stride(), *v.stride(), D, min(block, max(1, 8192 // BLOCK_D)), BLOCK_D
        )
    return o
