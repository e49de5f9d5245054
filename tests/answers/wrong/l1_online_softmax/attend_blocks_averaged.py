"""Each block's output is normalized by itself, and the blocks are averaged.

exercise: attend
level: value
diagnosis: attend_averaged
"""

import torch
import triton
import triton.language as tl


@triton.jit
def attend_kernel(scores_ptr, v_ptr, o_ptr, N, D, BLOCK: tl.constexpr, BLOCK_D: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    d = tl.arange(0, BLOCK_D)
    o = tl.zeros([BLOCK_D], dtype=tl.float32)
    blocks = 0.0
    for start in range(0, N, BLOCK):
        n = start + tl.arange(0, BLOCK)
        score = tl.load(scores_ptr + row * N + n, mask=n < N, other=float("-inf")).to(tl.float32)
        ok = (n < N)[:, None] & (d < D)[None, :]
        v = tl.load(v_ptr + n[:, None] * D + d[None, :], mask=ok, other=0.0).to(tl.float32)
        m = tl.max(score, axis=0)
        w = tl.exp(score - tl.where(m == float("-inf"), 0.0, m))
        l = tl.sum(w, axis=0)
        o += tl.sum(w[:, None] * v, axis=0) / tl.where(l > 0, l, 1.0)
        blocks += 1.0
    tl.store(o_ptr + row * D + d, o / tl.where(blocks > 0, blocks, 1.0), mask=d < D)


def attend(scores, v, block=64):
    M, N = scores.shape
    D = v.shape[1]
    scores, v = scores.contiguous(), v.contiguous()
    o = torch.empty((M, D), dtype=v.dtype, device=v.device)
    if M > 0:
        attend_kernel[(M,)](scores, v, o, N, D, block, triton.next_power_of_2(D))
    return o
