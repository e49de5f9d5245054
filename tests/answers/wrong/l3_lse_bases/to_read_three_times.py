"""Every program looks at the whole row for its largest entry first.

exercise: to_flashinfer
level: traffic
diagnosis: traffic
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
    top = float("-inf")
    for start in range(0, T, BLOCK):
        at = start + tl.arange(0, BLOCK)
        top = tl.maximum(top, tl.max(tl.load(lse_ptr + head * T + at, mask=at < T, other=float("-inf")), axis=0))
    for start in range(0, T, BLOCK):
        at = start + tl.arange(0, BLOCK)
        again = tl.load(lse_ptr + head * T + at, mask=at < T, other=float("-inf"))
        top = tl.maximum(top, tl.max(again, axis=0))
    for start in range(0, T, BLOCK):
        at = start + tl.arange(0, BLOCK)
        again = tl.load(lse_ptr + head * T + at, mask=at < T, other=float("-inf"))
        top = tl.maximum(top, tl.max(again, axis=0))
    lse = tl.where(lse > top, top, lse)
    s = lse * 1.4426950408889634
    s = tl.where(lse == float("inf"), float("-inf"), s)
    tl.store(s_ptr + t * H + head, s, mask=t < T)


def to_flashinfer(lse):
    H, T = lse.shape
    lse = lse.contiguous()
    s = torch.empty((T, H), dtype=torch.float32, device=lse.device)
    if T > 0:
        convert_kernel[(H, triton.cdiv(T, 64))](lse, s, H, T, 64)
    return s
