"""A program for each multiprocessor of an H100, and no loop over the rows that are left.

exercise: merge_state
level: memory
diagnosis: unwritten
"""

import math

import torch
import triton
import triton.language as tl


def columns_a_piece(D: int) -> int:
    return math.gcd(D, 8)


def tile_of_rows(D: int) -> tuple[int, int]:
    return 512, columns_a_piece(D)


def warps_for(pieces: int) -> int:
    return max(1, pieces // 32)


@triton.jit
def merge_two(v_a, s_a, v_b, s_b):
    m = tl.maximum(s_a, s_b)
    shift = tl.where(m == float("-inf"), 0.0, m)  # (-inf) - (-inf) is NaN, (-inf) - 0 is not
    w_a = tl.exp2(s_a - shift)
    w_b = tl.exp2(s_b - shift)
    v_a = tl.where(w_a[:, None] > 0, v_a.to(tl.float32), 0.0)  # 0 * NaN is NaN, so a payload of weight 0 is dropped
    v_b = tl.where(w_b[:, None] > 0, v_b.to(tl.float32), 0.0)
    total = tl.where(m == float("-inf"), 1.0, w_a + w_b)
    v = v_a * (w_a / total)[:, None] + v_b * (w_b / total)[:, None]
    return v, m + tl.log2(total)


@triton.jit(do_not_specialize=["rows"])  # not compiled anew when the batch grows
def merge_state_kernel(
    v_a_ptr,  # [rows, D], rows = S * H
    s_a_ptr,  # [rows] float32
    v_b_ptr,  # [rows, D]
    s_b_ptr,  # [rows] float32
    v_ptr,  # [rows, D] result
    s_ptr,  # [rows] float32 result
    rows,
    D: tl.constexpr,
    BLOCK_R: tl.constexpr,  # rows of the tile, a power of two
    BLOCK_D: tl.constexpr,  # columns of the tile, a power of two
):
    PIECES: tl.constexpr = D // BLOCK_D
    WHOLE: tl.constexpr = 1  # rows of D columns that the tile holds
    r = tl.arange(0, BLOCK_R)
    row = tl.program_id(0).to(tl.int64) * WHOLE + r // PIECES
    d = (r % PIECES * BLOCK_D)[:, None] + tl.arange(0, BLOCK_D)[None, :]
    row_ok = (row < rows) & (r < WHOLE * PIECES)
    ok = row_ok[:, None]
    offset = row[:, None] * D + d

    s_a = tl.load(s_a_ptr + row, mask=row_ok, other=float("-inf"))
    s_b = tl.load(s_b_ptr + row, mask=row_ok, other=float("-inf"))
    v_a = tl.load(v_a_ptr + offset, mask=ok, other=0.0)
    v_b = tl.load(v_b_ptr + offset, mask=ok, other=0.0)
    v, s = merge_two(v_a, s_a, v_b, s_b)
    tl.store(v_ptr + offset, v.to(v_ptr.dtype.element_ty), mask=ok)
    tl.store(s_ptr + row, s, mask=row_ok & (r % PIECES == 0))


def merge_state(
    v_a: torch.Tensor, s_a: torch.Tensor, v_b: torch.Tensor, s_b: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    S, H, D = v_a.shape
    v = torch.empty((S, H, D), dtype=v_a.dtype, device=v_a.device)
    s = torch.empty((S, H), dtype=torch.float32, device=v_a.device)
    if S == 0:
        return v, s
    BLOCK_R, BLOCK_D = tile_of_rows(D)
    BLOCK_R = BLOCK_R
    programs = min(132, triton.cdiv(S * H, 1))
    merge_state_kernel[(programs,)](
        v_a.contiguous(), s_a.contiguous(), v_b.contiguous(), s_b.contiguous(), v, s, S * H,
        D, BLOCK_R, BLOCK_D, num_warps=warps_for(BLOCK_R),
    )  # fmt: skip
    return v, s
