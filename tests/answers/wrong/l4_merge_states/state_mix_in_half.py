"""Weights are rounded to v's dtype; products and sum are in it too.

exercise: merge_state
level: edge
diagnosis: mixed_in_half
"""

import torch
import triton
import triton.language as tl


@triton.jit
def pow2_sum(a, b):
    top = tl.maximum(a, b)
    gap = tl.where(a == b, 0.0, tl.abs(a - b))
    return tl.where(top > float("-inf"), top + tl.log2(1.0 + tl.exp2(-gap)), float("-inf"))


@triton.heuristics({"COLS": lambda a: triton.next_power_of_2(a["D"]), "num_warps": lambda a: 1 if a["D"] <= 128 else 4})
@triton.jit
def one_row_kernel(va, sa, vb, sb, vo, so, D, COLS: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, COLS)
    at = row.to(tl.int64) * D + c
    a = tl.load(sa + row)
    b = tl.load(sb + row)
    s = pow2_sum(a, b)
    wa = tl.where(a > float("-inf"), tl.exp2(a - s), 0.0)
    wb = tl.where(b > float("-inf"), tl.exp2(b - s), 0.0)
    norm = wa + wb
    norm = tl.where(norm > 0.0, norm, 1.0)
    x = tl.load(va + at, mask=(c < D) & (a > float("-inf")), other=0.0)
    y = tl.load(vb + at, mask=(c < D) & (b > float("-inf")), other=0.0)
    tl.store(vo + at, ((wa / norm).to(x.dtype) * x + (wb / norm).to(y.dtype) * y).to(vo.dtype.element_ty), mask=c < D)
    tl.store(so + row, s)


def merge_state(v_a, s_a, v_b, s_b):
    S, H, D = v_a.shape
    v = torch.empty((S, H, D), dtype=v_a.dtype, device=v_a.device)
    s = torch.empty((S, H), dtype=torch.float32, device=v_a.device)
    if v.numel():
        one_row_kernel[(S * H,)](v_a.contiguous(), s_a.contiguous(), v_b.contiguous(), s_b.contiguous(), v, s, D)
    return v, s
