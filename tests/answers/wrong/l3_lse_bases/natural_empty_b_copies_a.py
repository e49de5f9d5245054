"""Where b is empty, a's output is copied, an empty a's included.

exercise: merge_natural
level: edge
diagnosis: not_finite
"""

import torch
import triton
import triton.language as tl


@triton.jit
def natural_kernel(
    o_a_ptr,  # [S, H, D]
    lse_a_ptr,  # [S, H]
    o_b_ptr,  # [S, H, D]
    lse_b_ptr,  # [S, H]
    o_ptr,  # [S, H, D]
    lse_ptr,  # [S, H]
    D,
    BLOCK_D: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    d = tl.arange(0, BLOCK_D)
    lse_a = tl.load(lse_a_ptr + row)
    lse_b = tl.load(lse_b_ptr + row)
    m = tl.maximum(lse_a, lse_b)
    shift = tl.where(m == float("-inf"), 0.0, m)
    w_a = tl.exp(lse_a - shift)
    w_b = tl.exp(lse_b - shift)
    total = tl.where(w_a + w_b > 0, w_a + w_b, 1.0)
    o_a = tl.load(o_a_ptr + row * D + d, mask=(d < D) & (w_a > 0), other=0.0).to(tl.float32)
    o_b = tl.load(o_b_ptr + row * D + d, mask=(d < D) & (w_b > 0), other=0.0).to(tl.float32)
    o = (w_a * o_a + w_b * o_b) / total
    lse = m + tl.log(total)
    if lse_b == float("-inf"):
        o = tl.load(o_a_ptr + row * D + d, mask=d < D, other=0.0).to(tl.float32)
    tl.store(o_ptr + row * D + d, o, mask=d < D)
    tl.store(lse_ptr + row, lse)


def merge_natural(o_a, lse_a, o_b, lse_b):
    S, H, D = o_a.shape
    o_a, lse_a, o_b, lse_b = o_a.contiguous(), lse_a.contiguous(), o_b.contiguous(), lse_b.contiguous()
    o = torch.empty((S, H, D), dtype=o_a.dtype, device=o_a.device)
    lse = torch.empty((S, H), dtype=torch.float32, device=o_a.device)
    if S > 0:
        natural_kernel[(S * H,)](o_a, lse_a, o_b, lse_b, o, lse, D, triton.next_power_of_2(D))
    return o, lse
