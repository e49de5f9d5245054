"""Lesson 1: softmax in one pass.

A row is read in blocks. What has been read so far is kept as m, its largest score, and l, the sum of exp(score - m).
When a block brings a larger m, what was summed under the old one is scaled by exp(m_old - m_new).
"""

import torch
import triton
import triton.language as tl

# BEGIN SOLUTION


ROW_BYTES = 1 << 16
"""The longest row that a program holds: 32 values for each of 1,024 threads, two bytes each."""


def columns_a_step(N: int, block: int) -> int:
    """`block`, no wider than the row, as a power of two."""
    return triton.next_power_of_2(max(min(N, block), 1))


def warps(BLOCK: int) -> int:
    """At 1,024 columns a warp, each of its 32 threads has four loads of 16 bytes (8 halves) in flight."""
    return min(32, max(1, BLOCK // 1024))


def few(M: int) -> bool:
    """Whether M rows are too few programs to hide one another's waiting: each must have more in flight."""
    return M < 1024


def multiprocessors_for(x: torch.Tensor, shared_bytes: int) -> int:
    """How many multiprocessors x's GPU has, 0 if one of them cannot hold `shared_bytes` in shared memory."""
    if not x.is_cuda:
        return 4  # what the interpreter is taken for
    gpu = torch.cuda.get_device_properties(x.device)
    return gpu.multi_processor_count if gpu.shared_memory_per_block_optin > shared_bytes else 0


@triton.jit
def no_nan(m):
    """What to subtract for a running max m: (-inf) - (-inf) is NaN, (-inf) - 0 is not."""
    return tl.where(m == float("-inf"), 0.0, m)


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
    m = float("-inf")
    l = 0.0
    for start in range(0, N, BLOCK):
        col = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * stride_row + col.to(tl.int64) * stride_col, mask=col < N, other=float("-inf"))
        x = x.to(tl.float32)
        m_new = tl.maximum(m, tl.max(x, axis=0))
        shift = no_nan(m_new)
        l = l * tl.exp(m - shift) + tl.sum(tl.exp(x - shift), axis=0)
        m = m_new
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
    BLOCK = columns_a_step(N, max(block, 16384) if few(M) and N > 16384 else block)
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
    m = float("-inf")
    l = 0.0
    for start in tl.range(0, N, BLOCK, num_stages=STAGES):  # first read: the statistics
        col = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * stride_row + col.to(tl.int64) * stride_col, mask=col < N, other=float("-inf"))
        x = x.to(tl.float32)
        m_new = tl.maximum(m, tl.max(x, axis=0))
        shift = no_nan(m_new)
        l = l * tl.exp(m - shift) + tl.sum(tl.exp(x - shift), axis=0)
        m = m_new

    shift = no_nan(m)
    scale = 1.0 / tl.where(l > 0.0, l, 1.0)
    for start in tl.range(0, N, BLOCK, num_stages=STAGES):  # second read: the result
        col = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * stride_row + col.to(tl.int64) * stride_col, mask=col < N, other=float("-inf"))
        y = tl.exp(x.to(tl.float32) - shift) * scale
        tl.store(y_ptr + row * N + col, y.to(y_ptr.dtype.element_ty), mask=col < N)
    # END SOLUTION


# BEGIN SOLUTION
@triton.jit(do_not_specialize=["M"])
def softmax_whole_rows_kernel(
    x_ptr,  # [M, N] with the strides below
    y_ptr,  # [M, N] contiguous, result
    M,
    N,
    stride_row, stride_col,
    BLOCK: tl.constexpr,  # N or more
    STAGES: tl.constexpr,  # loads in flight at a time
):  # fmt: skip
    """A row that fits into registers is read once, and needs no recurrence."""
    col = tl.arange(0, BLOCK)
    for number in tl.range(tl.program_id(0), M, tl.num_programs(0), num_stages=STAGES):
        row = tl.cast(number, tl.int64)
        x = tl.load(x_ptr + row * stride_row + col.to(tl.int64) * stride_col, mask=col < N, other=float("-inf"))
        x = x.to(tl.float32)
        e = tl.exp(x - no_nan(tl.max(x, axis=0)))
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
    row = triton.next_power_of_2(N) * x.element_size()  # bytes
    BLOCK = 16384 if row > ROW_BYTES else columns_a_step(N, block if N <= 2048 else N)
    if BLOCK < N:
        STAGES = 3 if few(M) else 1
        softmax_kernel[(M,)](x, y, N, x.stride(0), x.stride(1), BLOCK, STAGES, num_warps=warps(BLOCK))
        return y
    # A multiprocessor has registers for one of the longest rows only. Its program then stays and takes row after row:
    # the next two are on their way to shared memory while this one is worked on.
    stay = multiprocessors_for(x, 2 * row) if row == ROW_BYTES else 0
    programs, STAGES, count = (min(M, stay), 3, 32) if stay else (M, 1, warps(BLOCK))
    softmax_whole_rows_kernel[(programs,)](x, y, M, N, x.stride(0), x.stride(1), BLOCK, STAGES, num_warps=count)
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
        keep = tl.exp(m - shift)
        w = tl.exp(score - shift)  # [BLOCK]
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
