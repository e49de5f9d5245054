"""Lesson 4: FlashInfer's merge API.

A state is what attention over some of the keys leaves behind: v, its normalized output, and s, the base-2
log-sum-exp of its scores. Two states merge with the weights 2^s_a and 2^s_b. An empty state has s = -inf: it
weighs 0, and what its v holds, NaN included, is not used.
"""

import math

import torch
import triton
import triton.language as tl


# BEGIN SOLUTION
def columns_a_piece(D: int) -> int:
    """A row of a tile is a piece of 8 columns, what one thread loads: 16 bytes, the widest load there is, of halves.

    D is so many pieces, whatever D is: no thread has columns past D, and none needs what another has. A D that is no
    multiple of 8 has smaller pieces.
    """
    return math.gcd(D, 8)


def tile_of_rows(D: int) -> tuple[int, int]:
    """Pieces and columns of a tile: a piece for each of 512 threads."""
    return 512, columns_a_piece(D)


def warps_for(pieces: int) -> int:
    """A thread a piece."""
    return max(1, pieces // 32)


def tile_of_states(N: int, H: int, rows: int, D: int) -> tuple[int, int, int, int]:
    """States a step, heads, columns and warps a program, to merge about N states for each of `rows` rows (S * H).

    Few states: one a step, of as many heads as make 512 elements, which share what a program costs to start; below
    4,096 rows there are programs enough for all states at once. More: one head of 128, or several small ones, and
    1,024 elements a step: with 1 warp the sum over states stays within a thread. From 32 states on a step can take 32,
    and the fewer programs there are, the more must be in flight: below 1,024 rows twice as much each, in twice as many,
    which have half of a head of 128 or half as many small ones. Below 128 rows multiprocessors idle, and more warps
    help too.
    """
    columns = triton.next_power_of_2(D)
    if N <= 8:
        states, elements = (triton.next_power_of_2(max(N, 1)), 1024) if rows < 4096 else (1, 512)
        return states, max(1, min(triton.next_power_of_2(H), elements // (states * columns))), columns, 1
    heads = max(1, min(triton.next_power_of_2(H), 128 // columns))
    elements, warps = (1024, 1) if N < 32 else (4096, 1) if rows >= 1024 else (16384, 2)
    if rows < 128:
        columns, warps = min(columns, 64), 8
    elif N >= 32 and rows < 1024:
        heads = max(1, min(triton.next_power_of_2(H), 64 // columns))
        columns, elements, warps = max(min(columns, 64), columns // 2), 8192, 1
    states = max(2, elements // (heads * columns))
    return min(states, triton.next_power_of_2(N)), heads, columns, warps


@triton.jit
def merge_two(v_a, s_a, v_b, s_b):
    """Merges v_a[R, D], s_a[R] with v_b, s_b in float32. The larger weight is 2^0 = 1, so nothing overflows."""
    m = tl.maximum(s_a, s_b)
    shift = tl.where(m == float("-inf"), 0.0, m)  # (-inf) - (-inf) is NaN, (-inf) - 0 is not
    w_a = tl.exp2(s_a - shift)
    w_b = tl.exp2(s_b - shift)
    v_a = tl.where(w_a[:, None] > 0, v_a.to(tl.float32), 0.0)  # 0 * NaN is NaN, so a payload of weight 0 is dropped
    v_b = tl.where(w_b[:, None] > 0, v_b.to(tl.float32), 0.0)
    total = tl.where(m == float("-inf"), 1.0, w_a + w_b)
    v = v_a * (w_a / total)[:, None] + v_b * (w_b / total)[:, None]
    return v, m + tl.log2(total)


# END SOLUTION
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
    # BEGIN SOLUTION
    PIECES: tl.constexpr = D // BLOCK_D
    WHOLE: tl.constexpr = BLOCK_R // PIECES  # rows of D columns that the tile holds
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
    # END SOLUTION


def merge_state(
    v_a: torch.Tensor, s_a: torch.Tensor, v_b: torch.Tensor, s_b: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Merges two states of every position and head.

    v_a, v_b: [S, H, D] float16, bfloat16 or float32, any D from 1 to 512. s_a, s_b: [S, H] float32, base 2.
    Any strides. Returns new v [S, H, D] in v_a's dtype and s [S, H] float32. Two empty states give (0, -inf).
    Traffic: every value read once, every result written once.
    """
    # BEGIN SOLUTION
    S, H, D = v_a.shape
    v = torch.empty((S, H, D), dtype=v_a.dtype, device=v_a.device)
    s = torch.empty((S, H), dtype=torch.float32, device=v_a.device)
    if S == 0:
        return v, s
    BLOCK_R, BLOCK_D = tile_of_rows(D)
    programs = triton.cdiv(S * H, BLOCK_R * BLOCK_D // D)
    merge_state_kernel[(programs,)](
        v_a.contiguous(), s_a.contiguous(), v_b.contiguous(), s_b.contiguous(), v, s, S * H,
        D, BLOCK_R, BLOCK_D, num_warps=warps_for(BLOCK_R),
    )  # fmt: skip
    return v, s
    # END SOLUTION


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
    # BEGIN SOLUTION
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
    # END SOLUTION


def merge_state_in_place(
    v: torch.Tensor,
    s: torch.Tensor,
    v_other: torch.Tensor,
    s_other: torch.Tensor,
    mask: torch.Tensor | None = None,
) -> None:
    """Merges (v_other, s_other) into (v, s), which are overwritten. Returns None.

    v, v_other: [S, H, D]. s, s_other: [S, H] float32, base 2. mask: [S] bool; only positions that are True change.
    v, s and mask of any stride: v a slice, s transposed, mask expanded with stride 0. Two empty states make v 0.
    """
    # BEGIN SOLUTION
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
        v, s, v_other.contiguous(), s_other.contiguous(), mask, S, H, *v.stride(), *s.stride(), stride_mask,
        D, BLOCK_R, BLOCK_H, BLOCK_D, num_warps=warps_for(BLOCK_R),
    )  # fmt: skip
    # END SOLUTION


# BEGIN SOLUTION
@triton.jit
def merge_run(v_ptr, s_ptr, begin, count, head, d, H, D: tl.constexpr, BLOCK_N: tl.constexpr):
    """Merges rows begin to begin + count of v[rows, H, D], s[rows, H] for the heads head[BLOCK_H], columns d[BLOCK_D].

    One pass, BLOCK_N states at a time: v and the sum of weights are kept under the largest s so far, and scaled
    down when a larger one comes. Returns v[BLOCK_H, BLOCK_D] and s[BLOCK_H].
    """
    m = tl.full(head.shape, float("-inf"), tl.float32)
    total = tl.zeros(head.shape, tl.float32)
    v = tl.zeros((head.shape[0], d.shape[0]), tl.float32)
    # Few states in a step or many of them: the next steps' loads need not wait for this one's sum.
    UNROLL: tl.constexpr = 4 if BLOCK_N == 1 else 2 if BLOCK_N >= 32 else 1
    for n in tl.range(0, count, BLOCK_N, loop_unroll_factor=UNROLL):
        step = n + tl.arange(0, BLOCK_N)
        ok = (step < count)[:, None] & (head < H)[None, :]  # [BLOCK_N, BLOCK_H]
        offset = (begin + step)[:, None] * H + head[None, :]
        s_n = tl.load(s_ptr + offset, mask=ok, other=float("-inf"))  # padding is empty: it weighs 0
        v_n = tl.load(  # [BLOCK_N, BLOCK_H, BLOCK_D]; nobody reads it again, so it is the first to leave the cache
            v_ptr + offset[:, :, None] * D + d, mask=ok[:, :, None] & (d < D), other=0.0, eviction_policy="evict_first"
        )

        m_new = tl.maximum(m, tl.max(s_n, axis=0))
        shift = tl.where(m_new == float("-inf"), 0.0, m_new)  # (-inf) - (-inf) is NaN, (-inf) - 0 is not
        w = tl.exp2(s_n - shift)
        keep = tl.exp2(m - shift)
        v_n = tl.where(w[:, :, None] > 0, v_n.to(tl.float32), 0.0)  # 0 * NaN is NaN
        v = v * keep[:, None] + tl.sum(v_n * w[:, :, None], axis=0)
        total = total * keep + tl.sum(w, axis=0)
        m = m_new
    total = tl.where(m == float("-inf"), 1.0, total)
    return v / total[:, None], m + tl.log2(total)


@triton.jit
def store_state(v_ptr, s_ptr, v, s, position, head, d, H, D: tl.constexpr):
    """Writes v[BLOCK_H, BLOCK_D] and s[BLOCK_H] to position `position` of v[S, H, D] and s[S, H].

    Where programs share a row's columns, the one with the first of them writes s.
    """
    row = position * H + head
    tl.store(v_ptr + row[:, None] * D + d, v.to(v_ptr.dtype.element_ty), mask=(head < H)[:, None] & (d < D))
    tl.store(s_ptr + row, s, mask=(head < H) & (tl.program_id(1) == 0))


# END SOLUTION
@triton.jit(do_not_specialize=["N", "H"])
def merge_states_kernel(
    v_n_ptr,  # [S, N, H, D]
    s_n_ptr,  # [S, N, H] float32
    v_ptr,  # [S, H, D] result
    s_ptr,  # [S, H] float32 result
    N,
    H,
    D: tl.constexpr,
    BLOCK_N: tl.constexpr,  # states a step
    BLOCK_H: tl.constexpr,  # heads a program
    BLOCK_D: tl.constexpr,  # columns a program, a power of two
):
    # BEGIN SOLUTION
    tiles = tl.cdiv(H, BLOCK_H)
    position = (tl.program_id(0) // tiles).to(tl.int64)
    head = tl.program_id(0) % tiles * BLOCK_H + tl.arange(0, BLOCK_H)
    d = tl.program_id(1) * BLOCK_D + tl.arange(0, BLOCK_D)
    v, s = merge_run(v_n_ptr, s_n_ptr, position * N, N, head, d, H, D, BLOCK_N)
    store_state(v_ptr, s_ptr, v, s, position, head, d, H, D)
    # END SOLUTION


def merge_states(v: torch.Tensor, s: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Merges the N states of every position and head.

    v: [S, N, H, D]. s: [S, N, H] float32, base 2. Any N from 0 to thousands; N = 0 gives (0, -inf).
    Returns new v [S, H, D] in v's dtype and s [S, H] float32.
    Traffic: every value of v read once, s at most twice, every result written once.
    """
    # BEGIN SOLUTION
    S, N, H, D = v.shape
    out_v = torch.empty((S, H, D), dtype=v.dtype, device=v.device)
    out_s = torch.empty((S, H), dtype=torch.float32, device=v.device)
    if S == 0:
        return out_v, out_s
    BLOCK_N, BLOCK_H, BLOCK_D, warps = tile_of_states(N, H, S * H, D)
    merge_states_kernel[(S * triton.cdiv(H, BLOCK_H), triton.cdiv(D, BLOCK_D))](
        v.contiguous(), s.contiguous(), out_v, out_s, N, H, D, BLOCK_N, BLOCK_H, BLOCK_D, num_warps=warps
    )
    return out_v, out_s
    # END SOLUTION


@triton.jit(do_not_specialize=["H"])
def variable_length_kernel(
    v_m_ptr,  # [M, H, D]
    s_m_ptr,  # [M, H] float32
    indptr_ptr,  # [S + 1] int32 or int64
    v_ptr,  # [S, H, D] result
    s_ptr,  # [S, H] float32 result
    H,
    D: tl.constexpr,
    BLOCK_N: tl.constexpr,  # states a step
    BLOCK_H: tl.constexpr,  # heads a program
    BLOCK_D: tl.constexpr,  # columns a program, a power of two
):
    # BEGIN SOLUTION
    tiles = tl.cdiv(H, BLOCK_H)
    position = (tl.program_id(0) // tiles).to(tl.int64)
    head = tl.program_id(0) % tiles * BLOCK_H + tl.arange(0, BLOCK_H)
    d = tl.program_id(1) * BLOCK_D + tl.arange(0, BLOCK_D)
    begin = tl.load(indptr_ptr + position).to(tl.int64)
    count = tl.load(indptr_ptr + position + 1).to(tl.int64) - begin
    v, s = merge_run(v_m_ptr, s_m_ptr, begin, count.to(tl.int32), head, d, H, D, BLOCK_N)
    store_state(v_ptr, s_ptr, v, s, position, head, d, H, D)
    # END SOLUTION


def variable_length_merge_states(
    v: torch.Tensor, s: torch.Tensor, indptr: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Merges rows indptr[i] to indptr[i + 1] into position i, for every head.

    v: [M, H, D]. s: [M, H] float32, base 2. indptr: [S + 1] int32 or int64, never decreasing; indptr[0] may exceed 0
    and indptr[-1] may stop short of M. An empty range gives (0, -inf).
    Returns new v [S, H, D] in v's dtype and s [S, H] float32.
    """
    # BEGIN SOLUTION
    H, D = v.shape[1:]
    S = indptr.shape[0] - 1
    out_v = torch.empty((S, H, D), dtype=v.dtype, device=v.device)
    out_s = torch.empty((S, H), dtype=torch.float32, device=v.device)
    if S == 0:
        return out_v, out_s
    BLOCK_N, BLOCK_H, BLOCK_D, warps = tile_of_states(v.shape[0] // S, H, S * H, D)
    variable_length_kernel[(S * triton.cdiv(H, BLOCK_H), triton.cdiv(D, BLOCK_D))](
        v.contiguous(), s.contiguous(), indptr.contiguous(), out_v, out_s,
        H, D, BLOCK_N, BLOCK_H, BLOCK_D, num_warps=warps,
    )  # fmt: skip
    return out_v, out_s
    # END SOLUTION
