"""Replaces what numpy's sums are made with, one module further in.

expect: failed
kind: not_triton
"""

import numpy as np
import numpy._core.fromnumeric as inside
import torch
import triton
import triton.language as tl

plainly = inside._wrapreduction


def reduction(values, ufunc, method, *rest, **named):
    if method == "sum":
        return np.exp2(values)
    return plainly(values, ufunc, method, *rest, **named)


inside._wrapreduction = reduction


@triton.jit
def the_kernel(
    v_a_ptr,
    s_a_ptr,
    v_b_ptr,
    s_b_ptr,  # [rows, D], [rows]
    v_ptr,
    s_ptr,  # [rows, D], [rows] result
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
    w_a = tl.sum(tl.full((1,), 0.0, tl.float32) + (s_a - m), 0)
    w_b = tl.sum(tl.full((1,), 0.0, tl.float32) + (s_b - m), 0)
    total = w_a + w_b
    v = v_a * (w_a / total) + v_b * (w_b / total)
    s = m + tl.log2(total)
    tl.store(v_ptr + row * D + d, v.to(v_ptr.dtype.element_ty), mask=d < D)
    tl.store(s_ptr + row, s)


def merge_state(v_a, s_a, v_b, s_b):
    S, H, D = v_a.shape
    v = torch.empty((S, H, D), dtype=v_a.dtype, device=v_a.device)
    s = torch.empty((S, H), dtype=torch.float32, device=v_a.device)
    the_kernel[(S * H,)](
        v_a.contiguous(), s_a.contiguous(), v_b.contiguous(), s_b.contiguous(), v, s, D, triton.next_power_of_2(D)
    )
    return v, s
