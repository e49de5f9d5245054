"""An LSE above 1e38 is taken for +inf.

exercise: to_flashinfer
level: edge
diagnosis: not_finite
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
def lse_kernel(
    x_ptr,  # [M, N] with the strides below
    lse_ptr,  # [M] float32, result
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
        x = x.to(tl.float32)
        m_new = tl.maximum(m, tl.max(x, axis=0))
        shift = no_nan(m_new)
        l = l * tl.exp(m - shift) + tl.sum(tl.exp(x - shift), axis=0)
        m = m_new
    tl.store(lse_ptr + row, m + tl.log(tl.where(l > 0.0, l, 1.0)))  # an empty row: -inf + ln(1)


def lse(x: torch.Tensor) -> torch.Tensor:
    M, N = x.shape
    out = torch.empty(M, dtype=torch.float32, device=x.device)
    if M > 0:
        lse_kernel[(M,)](x, out, N, x.stride(0), x.stride(1), columns_a_step(N))
    return out


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
    t = tl.program_id(0).to(tl.int64) * BLOCK_T + tl.arange(0, BLOCK_T)
    h = tl.program_id(1).to(tl.int64) * BLOCK_H + tl.arange(0, BLOCK_H)
    ok = (t < T)[:, None] & (h < H)[None, :]
    lse = tl.load(lse_ptr + h[None, :] * stride_h + t[:, None] * stride_t, mask=ok, other=float("-inf"))
    s = tl.where(lse > 1e38, float("-inf"), lse * LOG2E)
    tl.store(s_ptr + t[:, None] * H + h[None, :], s, mask=ok)


def to_flashinfer(lse: torch.Tensor) -> torch.Tensor:
    H, T = lse.shape
    s = torch.empty((T, H), dtype=torch.float32, device=lse.device)
    if T > 0:
        BLOCK_T, BLOCK_H = 64, 16
        to_flashinfer_kernel[(triton.cdiv(T, BLOCK_T), triton.cdiv(H, BLOCK_H))](
            lse, s, H, T, lse.stride(0), lse.stride(1), BLOCK_T, BLOCK_H
        )
    return s
