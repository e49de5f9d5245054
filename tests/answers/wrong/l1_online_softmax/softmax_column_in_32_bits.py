"""The offset of a column is computed in 32 bits: where x is a transposed view, columns lie rows apart.

exercise: softmax
level: memory
diagnosis: out_of_bounds
"""

import torch
import triton
import triton.language as tl

LOG2E = tl.constexpr(1.4426950408889634)

ROW = 1 << 14


def columns_a_step(N: int, block: int) -> int:
    return triton.next_power_of_2(max(min(N, block), 1))


def warps(columns: int) -> int:
    return min(32, max(1, columns // 256))


@triton.jit
def no_nan(m):
    return tl.where(m == float("-inf"), 0.0, m)


@triton.jit
def exp(x):
    return tl.exp2(x * LOG2E)


@triton.jit
def row_stats(x_ptr, row, N, stride_row, stride_col, BLOCK: tl.constexpr, STAGES: tl.constexpr):
    WIDTH: tl.constexpr = min(BLOCK, 8)
    m = tl.full((BLOCK // WIDTH,), float("-inf"), tl.float32)
    l = tl.zeros((BLOCK // WIDTH,), tl.float32)
    for start in tl.range(0, N, BLOCK, loop_unroll_factor=STAGES):
        col = start + tl.arange(0, BLOCK // WIDTH)[:, None] * WIDTH + tl.arange(0, WIDTH)[None, :]
        x = tl.load(x_ptr + row * stride_row + col * stride_col, mask=col < N, other=float("-inf"))
        x = x.to(tl.float32)
        m_new = tl.maximum(m, tl.max(x, axis=1))
        shift = no_nan(m_new)
        l = l * exp(m - shift) + tl.sum(exp(x - shift[:, None]), axis=1)
        m = m_new
    m_all = tl.max(m, axis=0)
    return m_all, tl.sum(l * exp(m - no_nan(m_all)), axis=0)


@triton.jit
def softmax_kernel(
    x_ptr,  # [M, N] with the strides below
    y_ptr,  # [M, N] contiguous, result
    N,
    stride_row, stride_col,  # elements from one row, column of x to the next
    BLOCK: tl.constexpr,  # columns a step
    STAGES: tl.constexpr,  # loads in flight at a time
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    m, l = row_stats(x_ptr, row, N, stride_row, stride_col, BLOCK, STAGES)  # first read
    shift = no_nan(m)
    scale = 1.0 / tl.where(l > 0.0, l, 1.0)
    for start in tl.range(0, N, BLOCK, loop_unroll_factor=STAGES):  # second read: the result
        col = start + tl.arange(0, BLOCK)
        x_at = x_ptr + row * stride_row + col * stride_col
        # What is not needed again leaves the cache first: the rest of the row is still to be read.
        x = tl.load(x_at, mask=col < N, other=float("-inf"), eviction_policy="evict_first")
        y = exp(x.to(tl.float32) - shift) * scale
        tl.store(y_ptr + row * N + col, y.to(y_ptr.dtype.element_ty), mask=col < N, eviction_policy="evict_first")


@triton.jit
def softmax_whole_rows_kernel(
    x_ptr,  # [M, N] with the strides below
    y_ptr,  # [M, N] contiguous, result
    N,
    stride_row, stride_col,
    BLOCK: tl.constexpr,  # N or more
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    col = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride_row + col * stride_col, mask=col < N, other=float("-inf"))
    x = x.to(tl.float32)
    e = exp(x - no_nan(tl.max(x, axis=0)))
    l = tl.sum(e, axis=0)
    y = e * (1.0 / tl.where(l > 0.0, l, 1.0))
    tl.store(y_ptr + row * N + col, y.to(y_ptr.dtype.element_ty), mask=col < N)


def softmax(x: torch.Tensor, block: int = 1024) -> torch.Tensor:
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
