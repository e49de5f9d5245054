"""v_other is made contiguous only if s_other is not.

exercise: merge_state_in_place
level: edge
diagnosis: wrong_value
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


@triton.jit(do_not_specialize=["S", "H"])
def merge_in_place_kernel(
    v_ptr,  # [S, H, D] with the strides below, read and overwritten
    s_ptr,  # [S, H] float32 with the strides below, read and overwritten
    v_other_ptr,  # [S, H, D] contiguous
    s_other_ptr,  # [S, H] float32, contiguous
    mask_ptr,  # [S] bool with the stride below, or None
    S,
    H,
    stride_vs, stride_vh, stride_vd,  # elements from one position, head, column of v to the next
    stride_ss, stride_sh,  # the same for s
    stride_mask,  # 0 for a mask of one value that was expanded
    D: tl.constexpr,
    BLOCK_R: tl.constexpr,  # rows of the tile, a power of two
    BLOCK_H: tl.constexpr,  # heads of one position among them
    BLOCK_D: tl.constexpr,  # columns of the tile, a power of two
):  # fmt: skip
    PIECES: tl.constexpr = D // BLOCK_D
    POSITIONS: tl.constexpr = BLOCK_R // PIECES // BLOCK_H
    r = tl.arange(0, BLOCK_R)
    n = r // PIECES  # which of the program's rows
    d = (r % PIECES * BLOCK_D)[:, None] + tl.arange(0, BLOCK_D)[None, :]
    # Rows by position and head: one division for the program, where row // H would be one for every row.
    tiles = tl.cdiv(H, BLOCK_H)
    position = (tl.program_id(0) // tiles).to(tl.int64) * POSITIONS + n // BLOCK_H
    head = tl.program_id(0) % tiles * BLOCK_H + n % BLOCK_H
    row = position * H + head
    row_ok = (n < POSITIONS * BLOCK_H) & (position < S) & (head < H)
    if mask_ptr is not None:
        row_ok = row_ok & (tl.load(mask_ptr + position * stride_mask, mask=row_ok, other=0) != 0)
    ok = row_ok[:, None]
    s_at = s_ptr + position * stride_ss + head.to(tl.int64) * stride_sh
    v_at = v_ptr + (position * stride_vs + head.to(tl.int64) * stride_vh)[:, None] + d.to(tl.int64) * stride_vd

    s_own = tl.load(s_at, mask=row_ok, other=float("-inf"))
    s_other = tl.load(s_other_ptr + row, mask=row_ok, other=float("-inf"))
    v_own = tl.load(v_at, mask=ok, other=0.0)
    v_other = tl.load(v_other_ptr + row[:, None] * D + d, mask=ok, other=0.0)
    v, s = merge_two(v_own, s_own, v_other, s_other)
    # A row can be spread over several warps, and each of them reads s. None may overwrite it before all have.
    tl.debug_barrier()
    tl.store(v_at, v.to(v_ptr.dtype.element_ty), mask=ok)
    tl.store(s_at, s, mask=row_ok & (r % PIECES == 0))


def merge_state_in_place(
    v: torch.Tensor,
    s: torch.Tensor,
    v_other: torch.Tensor,
    s_other: torch.Tensor,
    mask: torch.Tensor | None = None,
) -> None:
    S, H, D = v.shape
    if S == 0:
        return
    if mask is None and v.is_contiguous() and s.is_contiguous():  # a row is a row, whatever its position and head
        S, H = S * H, 1
        v, s = v.view(S, H, D), s.view(S, H)
    BLOCK_R, BLOCK_D = tile_of_rows(D)
    whole = BLOCK_R * BLOCK_D // D
    # Some heads of some positions, few heads each: then they fill a tile too whose rows are no power of two.
    BLOCK_H = min(triton.next_power_of_2(H), 1 << (max(1, whole // 4).bit_length() - 1))
    programs = triton.cdiv(S, whole // BLOCK_H) * triton.cdiv(H, BLOCK_H)
    stride_mask = 0 if mask is None else mask.stride(0)
    merge_in_place_kernel[(programs,)](
        v, s, v_other if s_other.is_contiguous() else v_other.contiguous(), s_other.contiguous(), mask, S, H, *v.stride(), *s.stride(), stride_mask,
        D, BLOCK_R, BLOCK_H, BLOCK_D, num_warps=warps_for(BLOCK_R),
    )  # fmt: skip
