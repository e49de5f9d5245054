"""Without columns the result has x's dtype.

exercise: lse2
level: edge
diagnosis: wrong_form
"""

import torch
import triton
import triton.language as tl


LOG2E = tl.constexpr(1.4426950408889634)  # log2(e): e^x = 2^(x * LOG2E), and s = lse * LOG2E


def columns_a_step(N: int) -> int:
    return min(4096, triton.next_power_of_2(max(N, 1)))


@triton.jit
def no_nan(m):
    return tl.where(m == float("-inf"), 0.0, m)


@triton.jit
def lse2_kernel(
    x_ptr,  # [M, N] with the strides below
    s_ptr,  # [M] float32, result
    N,
    stride_row, stride_col,  # elements from one row, column of x to the next
    BLOCK: tl.constexpr,  # columns a step
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    m = float("-inf")
    l = 0.0
    for start in range(0, N, BLOCK):
        col = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * stride_row + col.to(tl.int64) * stride_col, mask=col < N, other=float("-inf"))
        x = x.to(tl.float32) * LOG2E  # from here on everything, m included, is in base 2
        m_new = tl.maximum(m, tl.max(x, axis=0))
        shift = no_nan(m_new)
        l = l * tl.exp2(m - shift) + tl.sum(tl.exp2(x - shift), axis=0)
        m = m_new
    tl.store(s_ptr + row, m + tl.log2(tl.where(l > 0.0, l, 1.0)))  # an empty row: -inf + log2(1)


def lse2(x: torch.Tensor) -> torch.Tensor:
    M, N = x.shape
    out = torch.empty(M, dtype=torch.float32, device=x.device)
    if N == 0:
        return x.new_full((M,), float("-inf"))
    if M > 0:
        lse2_kernel[(M,)](x, out, N, x.stride(0), x.stride(1), columns_a_step(N))
    return out
