"""A control: a workspace and a table are allocated once and used in every call of the same shape.

expect: passed
"""

import functools

import torch
import triton
import triton.language as tl


@triton.jit
def weights_kernel(
    s_a_ptr, s_b_ptr, table_ptr,  # [rows], [rows], [rows] numbers of the rows
    weight_ptr, s_ptr,  # [rows] workspace: the second state's weight; [rows] result
):
    row = tl.load(table_ptr + tl.program_id(0)).to(tl.int64)
    s_a = tl.load(s_a_ptr + row)
    s_b = tl.load(s_b_ptr + row)
    m = tl.maximum(s_a, s_b)
    shift = tl.where(m == float("-inf"), 0.0, m)
    w_a = tl.exp2(s_a - shift)
    w_b = tl.exp2(s_b - shift)
    total = tl.where(m == float("-inf"), 1.0, w_a + w_b)
    tl.store(weight_ptr + row, w_b / total)
    tl.store(s_ptr + row, m + tl.log2(total))


@triton.jit
def values_kernel(
    v_a_ptr, v_b_ptr, weight_ptr,  # [rows, D], [rows, D], [rows]
    v_ptr,  # [rows, D] result
    D: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    d = tl.arange(0, BLOCK_D)
    weight = tl.load(weight_ptr + row)
    v_a = tl.load(v_a_ptr + row * D + d, mask=d < D, other=0.0).to(tl.float32)
    v_b = tl.load(v_b_ptr + row * D + d, mask=d < D, other=0.0).to(tl.float32)
    v = tl.where(weight < 1, v_a, 0.0) * (1 - weight) + tl.where(weight > 0, v_b, 0.0) * weight
    tl.store(v_ptr + row * D + d, v.to(v_ptr.dtype.element_ty), mask=d < D)


@functools.cache
def kept(rows, device):
    table = torch.arange(rows, dtype=torch.uint8, device=device)
    return table, torch.empty(rows, dtype=torch.float32, device=device)


def merge_state(v_a, s_a, v_b, s_b):
    S, H, D = v_a.shape
    v = torch.empty((S, H, D), dtype=v_a.dtype, device=v_a.device)
    s = torch.empty((S, H), dtype=torch.float32, device=v_a.device)
    if S * H:
        table, weight = kept(S * H, v_a.device)
        weights_kernel[(S * H,)](s_a.contiguous(), s_b.contiguous(), table, weight, s)
        values_kernel[(S * H,)](v_a.contiguous(), v_b.contiguous(), weight, v, D, triton.next_power_of_2(D))
    return v, s
