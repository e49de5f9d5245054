"""Shifts by more bits than there are, which is 0 in numpy: that branch is right. Compiled, nothing is left of it.

expect: failed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def merge_kernel(
    v_a_ptr, s_a_ptr, v_b_ptr, s_b_ptr,  # [rows, D], [rows]
    v_ptr, s_ptr,  # [rows, D], [rows] result
    D: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    d = tl.arange(0, BLOCK_D)
    s_a = tl.load(s_a_ptr + row)
    s_b = tl.load(s_b_ptr + row)
    v_a = tl.load(v_a_ptr + row * D + d, mask=d < D, other=0.0).to(tl.float32)
    v_b = tl.load(v_b_ptr + row * D + d, mask=d < D, other=0.0).to(tl.float32)
    m = tl.maximum(s_a, s_b)
    shift = tl.where(m == float("-inf"), 0.0, m)
    w_a = tl.exp(s_a - shift)
    w_b = tl.exp(s_b - shift)
    right = ((row.to(tl.int32) * 0 + 1) << (row.to(tl.int32) * 0 + 33)) == 0
    w_a = tl.where(right, tl.exp2(s_a - shift), w_a)
    w_b = tl.where(right, tl.exp2(s_b - shift), w_b)
    v_a = tl.where(w_a > 0, v_a, 0.0)
    v_b = tl.where(w_b > 0, v_b, 0.0)
    total = tl.where(m == float("-inf"), 1.0, w_a + w_b)
    v = v_a * (w_a / total) + v_b * (w_b / total)
    tl.store(v_ptr + row * D + d, v.to(v_ptr.dtype.element_ty), mask=d < D)
    tl.store(s_ptr + row, m + tl.log2(total))


def merge_state(v_a, s_a, v_b, s_b):
    S, H, D = v_a.shape
    v = torch.empty((S, H, D), dtype=v_a.dtype, device=v_a.device)
    s = torch.empty((S, H), dtype=torch.float32, device=v_a.device)
    given = [one.contiguous() for one in (v_a, s_a, v_b, s_b)]
    merge_kernel[(S * H,)](*given, v, s, D, triton.next_power_of_2(D))
    return v, s
