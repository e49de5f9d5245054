"""m starts at -1e38, and a row that ends there is called empty: legal scores lie below even that.

exercise: softmax_stats
level: edge
diagnosis: stats_stand_in_put_back
twins: stats_stand_in_put_back stats_half_sentinel
"""

import torch
import triton
import triton.language as tl

LOG2E = tl.constexpr(1.4426950408889634)


def columns_a_step(N: int, block: int) -> int:
    return triton.next_power_of_2(max(min(N, block), 1))


def columns_that_fill(M: int) -> int:
    return min(16384, 1 << max(1, (1 << 21) // M).bit_length() - 1)


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
    m = tl.full((BLOCK // WIDTH,), -1e38, tl.float32)
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


@triton.jit
def softmax_stats_kernel(
    x_ptr,  # [M, N] with the strides below
    m_ptr,  # [M] float32, result: the row's max
    l_ptr,  # [M] float32, result: the row's sum of exp(x - m)
    N,
    stride_row, stride_col,  # elements from one row, column of x to the next
    BLOCK: tl.constexpr,  # columns a step
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    m, l = row_stats(x_ptr, row, N, stride_row, stride_col, BLOCK, 4)
    tl.store(m_ptr + row, tl.where(l > 0, m, float("-inf")))
    tl.store(l_ptr + row, l)


def softmax_stats(x: torch.Tensor, block: int = 1024) -> tuple[torch.Tensor, torch.Tensor]:
    M, N = x.shape
    m = torch.empty(M, dtype=torch.float32, device=x.device)
    l = torch.empty(M, dtype=torch.float32, device=x.device)
    if M == 0:
        return m, l
    BLOCK = columns_a_step(N, max(block, columns_that_fill(M)) if N > 8192 else block)
    softmax_stats_kernel[(M,)](x, m, l, N, x.stride(0), x.stride(1), BLOCK, num_warps=warps(BLOCK))
    return m, l
