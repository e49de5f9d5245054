"""Where there are as many heads as positions, the numbers are not transposed.

exercise: to_flashinfer
level: value
diagnosis: wrong_value
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
    BLOCK: tl.constexpr,
):
    head = tl.program_id(0).to(tl.int64)
    t = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    lse = tl.load(lse_ptr + head * T + t, mask=t < T, other=float("-inf"))
    s = lse * 1.4426950408889634
    s = tl.where(lse == float("inf"), float("-inf"), s)
    tl.store(s_ptr + tl.where(T == H, head * H + t, t * H + head), s, mask=t < T)


def to_flashinfer(lse):
    H, T = lse.shape
    lse = lse.contiguous()
    s = torch.empty((T, H), dtype=torch.float32, device=lse.device)
    if T > 0:
        convert_kernel[(H, triton.cdiv(T, 64))](lse, s, H, T, 64)
    return s
