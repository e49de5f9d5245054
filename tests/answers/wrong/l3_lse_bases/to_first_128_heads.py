"""At most 128 heads.

exercise: to_flashinfer
level: memory
diagnosis: unwritten
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
    tl.store(s_ptr + t * H + head, s, mask=t < T)


def to_flashinfer(lse):
    H, T = lse.shape
    lse = lse.contiguous()
    s = torch.empty((T, H), dtype=torch.float32, device=lse.device)
    if T > 0:
        convert_kernel[(min(H, 128), triton.cdiv(T, 64))](lse, s, H, T, 64)
    return s
