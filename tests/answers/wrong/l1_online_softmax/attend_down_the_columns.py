"""The weights are normalized over the rows of a column.

exercise: attend
level: value
diagnosis: attend_down_the_columns
"""

import torch
import triton
import triton.language as tl


@triton.jit
def attend_kernel(scores_ptr, v_ptr, o_ptr, M, N, D, BLOCK_M: tl.constexpr, BLOCK_D: tl.constexpr):
    m = tl.arange(0, BLOCK_M)
    row = tl.program_id(0).to(tl.int64)
    d = tl.arange(0, BLOCK_D)
    o = tl.zeros([BLOCK_D], dtype=tl.float32)
    for n in range(0, N):
        score = tl.load(scores_ptr + m * N + n, mask=m < M, other=float("-inf")).to(tl.float32)
        top = tl.max(score, axis=0)
        w = tl.exp(score - tl.where(top == float("-inf"), 0.0, top))
        total = tl.sum(w, axis=0)
        mine = tl.sum(tl.where(m == row, w, 0.0), axis=0) / tl.where(total > 0, total, 1.0)
        v = tl.load(v_ptr + n * D + d, mask=d < D, other=0.0).to(tl.float32)
        o += mine * v
    tl.store(o_ptr + row * D + d, o, mask=d < D)


def attend(scores, v, block=64):
    M, N = scores.shape
    D = v.shape[1]
    scores, v = scores.contiguous(), v.contiguous()
    o = torch.empty((M, D), dtype=v.dtype, device=v.device)
    if M > 0:
        attend_kernel[(M,)](scores, v, o, M, N, D, triton.next_power_of_2(M), triton.next_power_of_2(D))
    return o
