"""A control: arguments that are 1 in sums, products, conditions, loops and choices.

expect: passed
"""

import torch
import triton
import triton.language as tl
from triton.language.target_info import is_cuda


@triton.jit
def the_kernel(
    v_a_ptr,
    s_a_ptr,
    v_b_ptr,
    s_b_ptr,  # [rows, D], [rows]
    v_ptr,
    s_ptr,  # [rows, D], [rows] result
    one,
    D: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    d = tl.arange(0, BLOCK_D)
    s_a = tl.load(s_a_ptr + row)
    s_b = tl.load(s_b_ptr + row)
    v_a = tl.load(v_a_ptr + row * D + d, mask=d < D, other=0.0).to(tl.float32)
    v_b = tl.load(v_b_ptr + row * D + d, mask=d < D, other=0.0).to(tl.float32)
    tl.static_assert(isinstance(d.shape[0], int))
    m = tl.maximum(s_a, s_b)
    shift = tl.where(m == float("-inf"), 0.0, m)
    if one == 1 and is_cuda():
        shift += one - 1
    w_a = tl.exp2((s_a - shift) * one)
    w_b = tl.exp2((s_b - shift) / one)
    for i in range(one):
        w_a = w_a * max(one, 1) + i
    total = tl.where(m == float("-inf"), one, w_a + w_b) + (one - 1) * 2
    count = one if m > 0 else 1
    wide = -one + 2
    v = (v_a * (w_a / total) + v_b * (w_b / total)) * count * wide
    s = (m + tl.log2(total)) * (one if one > 0 else 2)
    row = row * one + (one - 1)
    d = d * one + (1 - one)
    tl.store(v_ptr + row * D + d, v.to(v_ptr.dtype.element_ty), mask=d < D)
    tl.store(s_ptr + row, s)


def merge_state(v_a, s_a, v_b, s_b):
    S, H, D = v_a.shape
    v = torch.empty((S, H, D), dtype=v_a.dtype, device=v_a.device)
    s = torch.empty((S, H), dtype=torch.float32, device=v_a.device)
    the_kernel[(S * H,)](
        v_a.contiguous(), s_a.contiguous(), v_b.contiguous(), s_b.contiguous(), v, s, 1, D, triton.next_power_of_2(D)
    )
    return v, s
