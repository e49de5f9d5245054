"""A state that lies 16 or more below the other is left out of v.

exercise: merge_state
level: edge
diagnosis: wrong_value
"""

import torch
import triton
import triton.language as tl


@triton.jit
def merge_state_kernel(
    v_a_ptr,  # [S, H, D]
    s_a_ptr,  # [S, H]
    v_b_ptr,  # [S, H, D]
    s_b_ptr,  # [S, H]
    v_ptr,  # [S, H, D]
    s_ptr,  # [S, H]
    D,
    BLOCK_D: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK_D)
    inside = cols < D
    s_a = tl.load(s_a_ptr + row)
    s_b = tl.load(s_b_ptr + row)
    s_max = tl.maximum(s_a, s_b)
    shift = tl.where(s_max == float("-inf"), 0.0, s_max)
    w_a = tl.exp2(s_a - shift)
    w_b = tl.exp2(s_b - shift)
    total = w_a + w_b
    denom = tl.where(total > 0, total, 1.0)
    v_a = tl.load(v_a_ptr + row * D + cols, mask=inside & (w_a > 0), other=0.0).to(tl.float32)
    v_b = tl.load(v_b_ptr + row * D + cols, mask=inside & (w_b > 0), other=0.0).to(tl.float32)
    v = (tl.where(s_a > shift - 16, w_a, 0.0) * v_a + tl.where(s_b > shift - 16, w_b, 0.0) * v_b) / denom
    s = tl.where(total > 0, shift + tl.log2(denom), float("-inf"))
    tl.store(v_ptr + row * D + cols, v, mask=inside)
    tl.store(s_ptr + row, s)


def merge_state(v_a, s_a, v_b, s_b):
    S, H, D = v_a.shape
    v_a, s_a, v_b, s_b = v_a.contiguous(), s_a.contiguous(), v_b.contiguous(), s_b.contiguous()
    v = torch.empty((S, H, D), dtype=v_a.dtype, device=v_a.device)
    s = torch.empty((S, H), dtype=torch.float32, device=v_a.device)
    if S > 0:
        BLOCK_D = triton.next_power_of_2(D)
        merge_state_kernel[(S * H,)](v_a, s_a, v_b, s_b, v, s, D, BLOCK_D)
    return v, s
