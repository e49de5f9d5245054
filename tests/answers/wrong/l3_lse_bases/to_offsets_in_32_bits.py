"""Offsets are computed from the strides in 32 bits.

exercise: to_flashinfer
level: memory
diagnosis: out_of_bounds
"""

import torch
import triton
import triton.language as tl


@triton.jit
def convert_kernel(
    lse_ptr,  # [H, T]
    s_ptr,  # [T, H]
    H,
    T,
    sh,
    st,
    BLOCK: tl.constexpr,
):
    head = tl.program_id(0)
    t = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    lse = tl.load(lse_ptr + head * sh + t * st, mask=t < T, other=float("-inf"))
    s = lse * 1.4426950408889634
    s = tl.where(lse == float("inf"), float("-inf"), s)
    tl.store(s_ptr + t * H + head, s, mask=t < T)


def to_flashinfer(lse):
    H, T = lse.shape
    s = torch.empty((T, H), dtype=torch.float32, device=lse.device)
    if T > 0:
        convert_kernel[(H, triton.cdiv(T, 64))](lse, s, H, T, *lse.stride(), 64)
    return s
