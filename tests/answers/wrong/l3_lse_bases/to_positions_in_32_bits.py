"""The offset of a position is computed in 32 bits.

exercise: to_flashinfer
level: memory
diagnosis: out_of_bounds
"""

import math

import torch
import triton
import triton.language as tl


@triton.jit
def convert_kernel(lse_ptr, s_ptr, H, T, stride_h, stride_t, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    t = i // H
    h = i % H
    x = tl.load(lse_ptr + h * stride_h + t.to(tl.int32) * stride_t, mask=i < T * H, other=float("-inf"))
    s = tl.where(x == float("inf"), float("-inf"), x * 1.4426950408889634)
    tl.store(s_ptr + i, s, mask=i < T * H)


def to_flashinfer(lse):
    H, T = lse.shape
    s = torch.empty((T, H), dtype=torch.float32, device=lse.device)
    if T > 0:
        convert_kernel[(triton.cdiv(T * H, 1024),)](lse, s, H, T, *lse.stride(), 1024)
    return s
