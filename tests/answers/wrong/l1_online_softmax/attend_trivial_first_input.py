"""The first row of v is handed back for every row of scores.

exercise: attend
level: value
diagnosis: wrong_value
"""

import torch
import triton
import triton.language as tl


@triton.jit
def first_kernel(v_ptr, o_ptr, D, BLOCK_D: tl.constexpr):
    d = tl.arange(0, BLOCK_D)
    v = tl.load(v_ptr + d, mask=d < D, other=0.0)
    tl.store(o_ptr + tl.program_id(0) * D + d, v, mask=d < D)


def attend(scores, v, block=64):
    M, D = scores.shape[0], v.shape[1]
    o = torch.zeros((M, D), dtype=v.dtype, device=v.device)
    if v.numel() > 0 and M > 0:
        first_kernel[(M,)](v.contiguous(), o, D, triton.next_power_of_2(D))
    return o
