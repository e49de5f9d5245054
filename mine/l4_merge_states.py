"""Lesson 4: FlashInfer's merge API.

A state is what attention over some of the keys leaves behind: v, its normalized output, and s, the base-2
log-sum-exp of its scores. Two states merge with the weights 2^s_a and 2^s_b. An empty state has s = -inf: it
weighs 0, and what its v holds, NaN included, is not used.
"""

import math

import torch
import triton
import triton.language as tl


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
    pass


def merge_state(
    v_a: torch.Tensor, s_a: torch.Tensor, v_b: torch.Tensor, s_b: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Merges two states of every position and head.

    v_a, v_b: [S, H, D] float16, bfloat16 or float32, any D from 1 to 512. s_a, s_b: [S, H] float32, base 2.
    Any strides. Returns new v [S, H, D] in v_a's dtype and s [S, H] float32. Two empty states give (0, -inf).
    Traffic: every value read once, every result written once.
    """
    raise NotImplementedError("merge_state: your turn")


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
    pass


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
    raise NotImplementedError("merge_state_in_place: your turn")


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
    pass


def merge_states(v: torch.Tensor, s: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Merges the N states of every position and head.

    v: [S, N, H, D]. s: [S, N, H] float32, base 2. Any N from 0 to thousands; N = 0 gives (0, -inf).
    Returns new v [S, H, D] in v's dtype and s [S, H] float32.
    Traffic: every value of v read once, s at most twice, every result written once.
    """
    raise NotImplementedError("merge_states: your turn")


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
    pass


def variable_length_merge_states(
    v: torch.Tensor, s: torch.Tensor, indptr: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Merges rows indptr[i] to indptr[i + 1] into position i, for every head.

    v: [M, H, D]. s: [M, H] float32, base 2. indptr: [S + 1] int32 or int64, never decreasing; indptr[0] may exceed 0
    and indptr[-1] may stop short of M. An empty range gives (0, -inf).
    Returns new v [S, H, D] in v's dtype and s [S, H] float32.
    """
    raise NotImplementedError("variable_length_merge_states: your turn")
