"""A control: how many rows a program takes, how many there are and which kernel runs depend on shapes and dtypes.

expect: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def rows_kernel(
    v_a_ptr, s_a_ptr, v_b_ptr, s_b_ptr,  # [rows, D], [rows]
    v_ptr, s_ptr,  # [rows, D], [rows] result
    rows, D,
    ROWS: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    here = row < rows
    s_a = tl.load(s_a_ptr + row, mask=here, other=0.0)
    s_b = tl.load(s_b_ptr + row, mask=here, other=0.0)
    m = tl.maximum(s_a, s_b)
    shift = tl.where(m == float("-inf"), 0.0, m)
    w_a = tl.exp2(s_a - shift)
    w_b = tl.exp2(s_b - shift)
    total = tl.where(m == float("-inf"), 1.0, w_a + w_b)
    tl.store(s_ptr + row, m + tl.log2(total), mask=here)
    d = tl.arange(0, BLOCK_D)
    at = row[:, None] * D + d[None, :]
    inside = here[:, None] & (d < D)[None, :]
    v_a = tl.load(v_a_ptr + at, mask=inside, other=0.0).to(tl.float32)
    v_b = tl.load(v_b_ptr + at, mask=inside, other=0.0).to(tl.float32)
    v_a = tl.where((w_a > 0)[:, None], v_a, 0.0)
    v_b = tl.where((w_b > 0)[:, None], v_b, 0.0)
    v = v_a * (w_a / total)[:, None] + v_b * (w_b / total)[:, None]
    tl.store(v_ptr + at, v.to(v_ptr.dtype.element_ty), mask=inside)


def merge_state(v_a, s_a, v_b, s_b):
    S, H, D = v_a.shape
    v = torch.empty((S, H, D), dtype=v_a.dtype, device=v_a.device)
    s = torch.empty((S, H), dtype=torch.float32, device=v_a.device)
    rows, block = S * H, triton.next_power_of_2(D)
    tile = max(1, min(4096 // (block * v_a.element_size()), triton.next_power_of_2(max(rows, 1))))
    parts = (v_a, s_a, v_b, s_b)
    given = parts if all(one.is_contiguous() for one in parts) else tuple(one.contiguous() for one in parts)
    for first in range(0, rows, 64 * tile):
        here = [one.reshape(rows, *one.shape[2:])[first:] for one in (*given, v, s)]
        programs = triton.cdiv(min(rows - first, 64 * tile), tile)
        rows_kernel[(programs,)](*here, min(rows - first, 64 * tile), D, tile, block, num_warps=2 if block < 128 else 4)
    return v, s
