"""Lesson 3: natural and base-2 LSE.

The LSE of some scores is the logarithm of the sum of their exponentials; m and l in one number: lse = m + ln(l).
FlashAttention keeps it natural and heads first, FlashInfer in base 2 and positions first, and calls it s.
With no score it is -inf. In a merge such a row weighs nothing, whatever its o holds, NaN included.
"""

import math

import torch
import triton
import triton.language as tl

LOG2E = tl.constexpr(1.4426950408889634)  # log2(e): e^x = 2^(x * LOG2E), and s = lse * LOG2E


@triton.jit
def lse_kernel(
    x_ptr,  # [M, N] with the strides below
    lse_ptr,  # [M] float32, result
    N,
    stride_row, stride_col,  # elements from one row, column of x to the next
    BLOCK: tl.constexpr,  # columns a step
):  # fmt: skip
    pass


def lse(x: torch.Tensor) -> torch.Tensor:
    """The natural log-sum-exp of every row, ln(sum of exp(x)).

    x: [M, N] float16, bfloat16 or float32, any strides; -inf marks a masked score.
    Returns [M] float32. A row with no score above -inf, N = 0 included, gives -inf.
    Traffic: one read of x will do; more than twice the least fails.
    """
    raise NotImplementedError("lse: your turn")


@triton.jit
def lse2_kernel(
    x_ptr,  # [M, N] with the strides below
    s_ptr,  # [M] float32, result
    N,
    stride_row, stride_col,  # elements from one row, column of x to the next
    BLOCK: tl.constexpr,  # columns a step
):  # fmt: skip
    pass


def lse2(x: torch.Tensor) -> torch.Tensor:
    """The base-2 log-sum-exp of every row, log2(sum of exp(x)), computed with exp2 and log2.

    x: [M, N] float16, bfloat16 or float32, any strides; natural scores, -inf marks a masked one.
    Returns [M] float32. A row with no score above -inf, N = 0 included, gives -inf.
    Traffic: one read of x will do; more than twice the least fails.
    """
    raise NotImplementedError("lse2: your turn")


@triton.jit(do_not_specialize=["rows"])
def merge_natural_kernel(
    o_a_ptr,  # [rows, D], rows = S * H
    lse_a_ptr,  # [rows] float32, natural
    o_b_ptr,  # [rows, D]
    lse_b_ptr,  # [rows] float32, natural
    o_ptr,  # [rows, D] result
    lse_ptr,  # [rows] float32, natural, result
    rows,
    D: tl.constexpr,
    BLOCK_R: tl.constexpr,  # rows a program
    BLOCK_D: tl.constexpr,  # D rounded up to a power of two
):
    pass


def merge_natural(
    o_a: torch.Tensor, lse_a: torch.Tensor, o_b: torch.Tensor, lse_b: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Merges two outputs with natural LSEs: merged = max + ln(1 + exp(min - max)).

    o_a, o_b: [S, H, D] float16, bfloat16 or float32. lse_a, lse_b: [S, H] float32, natural. Any strides.
    Returns o [S, H, D] in o_a's dtype and lse [S, H] float32. Two empty rows give (0, -inf).
    Traffic: one read of each will do; more than twice the least fails.
    """
    raise NotImplementedError("merge_natural: your turn")


@triton.jit(do_not_specialize=["T"])
def to_flashinfer_kernel(
    lse_ptr,  # [H, T] with the strides below
    s_ptr,  # [T, H] contiguous, result
    H,
    T,
    stride_h, stride_t,  # elements from one head, position of lse to the next
    BLOCK_T: tl.constexpr,  # positions a program
    BLOCK_H: tl.constexpr,  # heads a program
):  # fmt: skip
    pass


def to_flashinfer(lse: torch.Tensor) -> torch.Tensor:
    """From FlashAttention's convention to FlashInfer's.

    lse: [H, T] float32, natural, any strides; an empty row is -inf or +inf.
    Returns s [T, H] float32, base 2, contiguous; an empty row is -inf.
    Traffic: one read and one write will do; more than twice the least fails.
    """
    raise NotImplementedError("to_flashinfer: your turn")


@triton.jit(do_not_specialize=["S", "N", "H", "L", "T"])
def partial_states_kernel(
    q_ptr,  # [S, H, D] contiguous
    k_ptr,  # [L, H, D] with the strides below
    v_ptr,  # [L, H, D] with the strides below
    out_v_ptr,  # [S, N, H, D] float32, result
    out_s_ptr,  # [S, N, H] float32, base 2, result
    S,
    N,
    H,
    L,
    T,  # keys a part
    scale,  # the score's scale, natural
    stride_kl, stride_kh, stride_kd,  # elements from one key, head, column of k to the next
    stride_vl, stride_vh, stride_vd,  # the same for v
    D: tl.constexpr,
    BLOCK_L: tl.constexpr,  # keys a step
    BLOCK_D: tl.constexpr,  # D rounded up to a power of two
):  # fmt: skip
    pass


def partial_states(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, num_splits: int, scale: float | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Attention of S queries over num_splits parts of the keys, each part a state (v, s) in base 2.

    q: [S, H, D], k and v: [L, H, D], float16, bfloat16 or float32, any strides. scale: 1/sqrt(D) if None.
    Part n covers keys n * T to min((n + 1) * T, L), T = ceil(L / num_splits).
    Returns v [S, N, H, D] and s [S, N, H], both float32, N = num_splits. A part with no keys gives (0, -inf).
    Traffic with one query: one read of k and v will do; more than twice the least fails.
    """
    raise NotImplementedError("partial_states: your turn")
