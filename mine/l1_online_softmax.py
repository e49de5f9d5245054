"""Lesson 1: softmax in one pass.

A row is read in blocks. What has been read so far is kept as m, its largest score, and l, the sum of exp(score - m).
When a block brings a larger m, what was summed under the old one is scaled by exp(m_old - m_new).
"""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_stats_kernel(
    x_ptr,  # [M, N] with the strides below
    m_ptr,  # [M] float32, result: the row's max
    l_ptr,  # [M] float32, result: the row's sum of exp(x - m)
    N,
    stride_row, stride_col,  # elements from one row, column of x to the next
    BLOCK: tl.constexpr,  # columns a step
):  # fmt: skip
    pass


def softmax_stats(x: torch.Tensor, block: int = 1024) -> tuple[torch.Tensor, torch.Tensor]:
    """The max m of every row and l, the sum of exp(x - m) over it.

    x: [M, N] float16, bfloat16 or float32, any strides; -inf marks a masked score and may stand anywhere.
    block: columns a step, a power of two; a hint, the result does not depend on it.
    Returns m [M] and l [M], float32. A row with no score above -inf, N = 0 included, gives m = -inf and l = 0.
    Traffic: x is read once.
    """
    raise NotImplementedError("softmax_stats: your turn")


@triton.jit
def softmax_kernel(
    x_ptr,  # [M, N] with the strides below
    y_ptr,  # [M, N] contiguous, result
    N,
    stride_row, stride_col,  # elements from one row, column of x to the next
    BLOCK: tl.constexpr,  # columns a step
    STAGES: tl.constexpr,  # loads in flight at a time
):  # fmt: skip
    pass


def softmax(x: torch.Tensor, block: int = 1024) -> torch.Tensor:
    """Softmax over the last axis. A row that is all -inf gives zeros (torch.softmax gives NaN).

    x: [M, N] float16, bfloat16 or float32, any strides. block: columns a step, a power of two; a hint.
    Returns y [M, N] in x's dtype.
    Traffic: x is read at most twice, y is written once.
    """
    raise NotImplementedError("softmax: your turn")


@triton.jit
def attend_kernel(
    scores_ptr,  # [M, N] with the strides below
    v_ptr,  # [N, D] with the strides below
    o_ptr,  # [M, D] contiguous, result
    N,
    stride_row, stride_col,  # elements from one row, column of scores to the next
    stride_vn, stride_vd,  # elements from one row, column of v to the next
    D: tl.constexpr,
    BLOCK: tl.constexpr,  # scores a step
    BLOCK_D: tl.constexpr,  # D rounded up to a power of two
):  # fmt: skip
    pass


def attend(scores: torch.Tensor, v: torch.Tensor, block: int = 64) -> torch.Tensor:
    """softmax(scores) @ v in one pass over the scores: the output is carried along and rescaled with l.

    scores: [M, N], v: [N, D], each float16, bfloat16 or float32, any strides. block: scores a step, a power of two;
    a hint. -inf marks a masked score; v is finite there.
    Returns o [M, D] in v's dtype. A row with no score above -inf, N = 0 included, gives zeros.
    Traffic: every score is read once; a row of scores reads v once.
    """
    raise NotImplementedError("attend: your turn")
