"""v is read as if it were contiguous.

exercise: attend
level: memory
diagnosis: attend_strides_ignored
told: v.stride() is (1, 40), and (16, 1) was taken
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
    BLOCK: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    d = tl.arange(0, BLOCK_D)
    m = float("-inf")
    l = 0.0
    o = tl.zeros([BLOCK_D], dtype=tl.float32)
    for start in range(0, N, BLOCK):
        n = start + tl.arange(0, BLOCK)
        score = tl.load(scores_ptr + row * N + n, mask=n < N, other=float("-inf")).to(tl.float32)
        ok = (n < N)[:, None] & (d < D)[None, :]
        v = tl.load(v_ptr + n[:, None] * D + d[None, :], mask=ok, other=0.0).to(tl.float32)
        m_new = tl.maximum(m, tl.max(score, axis=0))
        shift = tl.where(m_new == float("-inf"), 0.0, m_new)
        keep = tl.exp(m - shift)
        w = tl.exp(score - shift)
        o = o * keep + tl.sum(w[:, None] * v, axis=0)
        l = l * keep + tl.sum(w, axis=0)
        m = m_new
    o = o / tl.where(l > 0, l, 1.0)
    tl.store(o_ptr + row * D + d, o, mask=d < D)


def attend(scores, v, block=64):
    M, N = scores.shape
    D = v.shape[1]
    scores = scores.contiguous()
    o = torch.empty((M, D), dtype=v.dtype, device=v.device)
    if M > 0:
        BLOCK_D = triton.next_power_of_2(D)
        attend_kernel[(M,)](scores, v, o, N, D, min(block, max(1, 8192 // BLOCK_D)), BLOCK_D)
    return o
