"""Lesson 1: softmax in one pass.

A row is read in blocks. What has been read so far is kept as m, its largest score, and l, the sum of exp(score - m).
When a block brings a larger m, what was summed under the old one is scaled by exp(m_old - m_new).
"""

import torch
import triton
import triton.language as tl

# BEGIN SOLUTION


LOG2E = tl.constexpr(1.4426950408889634)

ROW = 1 << 14
"""Columns of the longest row that a program holds: 32 values for each of 512 threads."""


def columns_a_step(N: int, block: int) -> int:
    """`block`, no wider than the row, as a power of two."""
    return triton.next_power_of_2(max(min(N, block), 1))


def columns_that_fill(M: int) -> int:
    """Columns a step, 16,384 at most, with which M rows fill a large GPU: 8 values for each of 262,144 threads."""
    return min(16384, 1 << max(1, (1 << 21) // M).bit_length() - 1)


def warps(columns: int) -> int:
    """8 columns a thread, a load of 16 bytes if they are halves, where it goes through a row; at most 1,024 threads."""
    return min(32, max(1, columns // 256))


@triton.jit
def no_nan(m):
    """What to subtract for a running max m: (-inf) - (-inf) is NaN, (-inf) - 0 is not."""
    return tl.where(m == float("-inf"), 0.0, m)


@triton.jit
def exp(x):
    """e^x for x <= 0. A GPU has 2^x only; tl.exp takes three steps more, for results below 2^-126."""
    return tl.exp2(x * LOG2E)


@triton.jit
def row_stats(x_ptr, row, N, stride_row, stride_col, BLOCK: tl.constexpr, STAGES: tl.constexpr):
    """m and l of a row, one read.

    Each thread carries an m and an l of its own, of 8 columns a step, and no thread waits for another: they merge at
    the end, by the same rule.
    """
    WIDTH: tl.constexpr = min(BLOCK, 8)
    m = tl.full((BLOCK // WIDTH,), float("-inf"), tl.float32)
    l = tl.zeros((BLOCK // WIDTH,), tl.float32)
    for start in tl.range(0, N, BLOCK, loop_unroll_factor=STAGES):
        col = start + tl.arange(0, BLOCK // WIDTH)[:, None] * WIDTH + tl.arange(0, WIDTH)[None, :]
        x = tl.load(x_ptr + row * stride_row + col.to(tl.int64) * stride_col, mask=col < N, other=float("-inf"))
        x = x.to(tl.float32)
        m_new = tl.maximum(m, tl.max(x, axis=1))
        shift = no_nan(m_new)
        l = l * exp(m - shift) + tl.sum(exp(x - shift[:, None]), axis=1)
        m = m_new
    m_all = tl.max(m, axis=0)
    return m_all, tl.sum(l * exp(m - no_nan(m_all)), axis=0)


# END SOLUTION
@triton.jit
def softmax_stats_kernel(
    x_ptr,  # [M, N] with the strides below
    m_ptr,  # [M] float32, result: the row's max
    l_ptr,  # [M] float32, result: the row's sum of exp(x - m)
    N,
    stride_row, stride_col,  # elements from one row, column of x to the next
    BLOCK: tl.constexpr,  # columns a step
):  # fmt: skip
    # BEGIN SOLUTION
    row = tl.program_id(0).to(tl.int64)
    m, l = row_stats(x_ptr, row, N, stride_row, stride_col, BLOCK, 4)
    tl.store(m_ptr + row, m)
    tl.store(l_ptr + row, l)
    # END SOLUTION


def softmax_stats(x: torch.Tensor, block: int = 1024) -> tuple[torch.Tensor, torch.Tensor]:
    """The max m of every row and l, the sum of exp(x - m) over it.

    x: [M, N] float16, bfloat16 or float32, any strides; -inf marks a masked score and may stand anywhere.
    block: columns a step, a power of two; a hint, the result does not depend on it.
    Returns m [M] and l [M], float32. A row with no score above -inf, N = 0 included, gives m = -inf and l = 0.
    Traffic: x is read once.
    """
    # BEGIN SOLUTION
    M, N = x.shape
    m = torch.empty(M, dtype=torch.float32, device=x.device)
    l = torch.empty(M, dtype=torch.float32, device=x.device)
    if M == 0:
        return m, l
    BLOCK = columns_a_step(N, max(block, columns_that_fill(M)) if N > 8192 else block)
    softmax_stats_kernel[(M,)](x, m, l, N, x.stride(0), x.stride(1), BLOCK, num_warps=warps(BLOCK))
    return m, l
    # END SOLUTION


@triton.jit
def softmax_kernel(
    x_ptr,  # [M, N] with the strides below
    y_ptr,  # [M, N] contiguous, result
    N,
    stride_row, stride_col,  # elements from one row, column of x to the next
    BLOCK: tl.constexpr,  # columns a step
    STAGES: tl.constexpr,  # loads in flight at a time
):  # fmt: skip
    # BEGIN SOLUTION
    row = tl.program_id(0).to(tl.int64)
    m, l = row_stats(x_ptr, row, N, stride_row, stride_col, BLOCK, STAGES)  # first read
    shift = no_nan(m)
    scale = 1.0 / tl.where(l > 0.0, l, 1.0)
    for start in tl.range(0, N, BLOCK, loop_unroll_factor=STAGES):  # second read: the result
        col = start + tl.arange(0, BLOCK)
        x_at = x_ptr + row * stride_row + col.to(tl.int64) * stride_col
        # What is not needed again leaves the cache first: the rest of the row is still to be read.
        x = tl.load(x_at, mask=col < N, other=float("-inf"), eviction_policy="evict_first")
        y = exp(x.to(tl.float32) - shift) * scale
        tl.store(y_ptr + row * N + col, y.to(y_ptr.dtype.element_ty), mask=col < N, eviction_policy="evict_first")
    # END SOLUTION


# BEGIN SOLUTION
@triton.jit
def softmax_whole_rows_kernel(
    x_ptr,  # [M, N] with the strides below
    y_ptr,  # [M, N] contiguous, result
    N,
    stride_row, stride_col,
    BLOCK: tl.constexpr,  # N or more
):  # fmt: skip
    """A row that fits into registers is read once, and needs no recurrence."""
    row = tl.program_id(0).to(tl.int64)
    col = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride_row + col.to(tl.int64) * stride_col, mask=col < N, other=float("-inf"))
    x = x.to(tl.float32)
    e = exp(x - no_nan(tl.max(x, axis=0)))
    l = tl.sum(e, axis=0)
    y = e * (1.0 / tl.where(l > 0.0, l, 1.0))
    tl.store(y_ptr + row * N + col, y.to(y_ptr.dtype.element_ty), mask=col < N)


# END SOLUTION
def softmax(x: torch.Tensor, block: int = 1024) -> torch.Tensor:
    """Softmax over the last axis. A row that is all -inf gives zeros (torch.softmax gives NaN).

    x: [M, N] float16, bfloat16 or float32, any strides. block: columns a step, a power of two; a hint.
    Returns y [M, N] in x's dtype.
    Traffic: x is read at most twice, y is written once.
    """
    # BEGIN SOLUTION
    M, N = x.shape
    y = torch.empty((M, N), dtype=x.dtype, device=x.device)
    if M == 0 or N == 0:
        return y
    BLOCK = 8192 if N > ROW else columns_a_step(N, block if N <= 2048 else N)
    if BLOCK < N:
        softmax_kernel[(M,)](x, y, N, x.stride(0), x.stride(1), BLOCK, STAGES=4, num_warps=warps(BLOCK))
    else:  # 32 columns a thread: four loads in flight
        count = max(1, BLOCK // 1024)
        softmax_whole_rows_kernel[(M,)](x, y, N, x.stride(0), x.stride(1), BLOCK, num_warps=count)
    return y
    # END SOLUTION


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
    # BEGIN SOLUTION
    row = tl.program_id(0).to(tl.int64)
    d = tl.arange(0, BLOCK_D)
    m = float("-inf")
    l = 0.0
    o = tl.zeros((BLOCK_D,), tl.float32)
    for start in range(0, N, BLOCK):
        n = (start + tl.arange(0, BLOCK)).to(tl.int64)
        score = tl.load(scores_ptr + row * stride_row + n * stride_col, mask=n < N, other=float("-inf"))
        score = score.to(tl.float32)
        v = tl.load(
            v_ptr + n[:, None] * stride_vn + d[None, :].to(tl.int64) * stride_vd,
            mask=(n < N)[:, None] & (d < D)[None, :],
            other=0.0,
        )  # [BLOCK, BLOCK_D]
        m_new = tl.maximum(m, tl.max(score, axis=0))
        shift = no_nan(m_new)
        keep = exp(m - shift)
        w = exp(score - shift)  # [BLOCK]
        o = o * keep + tl.sum(w[:, None] * v.to(tl.float32), axis=0)
        l = l * keep + tl.sum(w, axis=0)
        m = m_new
    o = o / tl.where(l > 0.0, l, 1.0)
    tl.store(o_ptr + row * D + d, o.to(o_ptr.dtype.element_ty), mask=d < D)
    # END SOLUTION


def attend(scores: torch.Tensor, v: torch.Tensor, block: int = 64) -> torch.Tensor:
    """softmax(scores) @ v in one pass over the scores: the output is carried along and rescaled with l.

    scores: [M, N], v: [N, D], each float16, bfloat16 or float32, any strides. block: scores a step, a power of two;
    a hint. -inf marks a masked score; v is finite there.
    Returns o [M, D] in v's dtype. A row with no score above -inf, N = 0 included, gives zeros.
    Traffic: every score is read once; a row of scores reads v once.
    """
    # BEGIN SOLUTION
    M, N = scores.shape
    D = v.shape[1]
    o = torch.empty((M, D), dtype=v.dtype, device=v.device)
    if M == 0:
        return o
    BLOCK_D = triton.next_power_of_2(D)
    BLOCK = min(columns_a_step(N, block), max(1, 8192 // BLOCK_D))  # a tile of v has to fit in registers
    attend_kernel[(M,)](scores, v, o, N, *scores.stride(), *v.stride(), D, BLOCK, BLOCK_D)
    return o
    # END SOLUTION
