"""Without rows o is float32, whatever its dtype.

exercise: merge_natural
level: edge
diagnosis: wrong_form
"""

import torch
import triton
import triton.language as tl


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
    row = tl.program_id(0).to(tl.int64) * BLOCK_R + tl.arange(0, BLOCK_R)
    d = tl.arange(0, BLOCK_D)
    row_ok = row < rows
    ok = row_ok[:, None] & (d < D)[None, :]
    offset = row[:, None] * D + d[None, :]

    lse_a = tl.load(lse_a_ptr + row, mask=row_ok, other=float("-inf"))
    lse_b = tl.load(lse_b_ptr + row, mask=row_ok, other=float("-inf"))
    m = tl.maximum(lse_a, lse_b)
    # exp(lse - m) over the sum of the two. exp(lse - merged) is the same in exact arithmetic, but at lse = 50,000
    # float32 steps by 1/256, so that merged is off by up to 1/512 and the weights by 0.2 %.
    shift = no_nan(m)
    w_a = tl.exp(lse_a - shift)
    w_b = tl.exp(lse_b - shift)
    total = tl.where(m == float("-inf"), 1.0, w_a + w_b)
    o_a = tl.load(o_a_ptr + offset, mask=ok, other=0.0).to(tl.float32)
    o_b = tl.load(o_b_ptr + offset, mask=ok, other=0.0).to(tl.float32)
    o_a = tl.where((w_a > 0.0)[:, None], o_a, 0.0)  # 0 * NaN is NaN: a payload of weight 0 is dropped
    o_b = tl.where((w_b > 0.0)[:, None], o_b, 0.0)
    o = o_a * (w_a / total)[:, None] + o_b * (w_b / total)[:, None]
    tl.store(o_ptr + offset, o.to(o_ptr.dtype.element_ty), mask=ok)
    tl.store(lse_ptr + row, m + tl.log(total), mask=row_ok)


def merge_natural(
    o_a: torch.Tensor, lse_a: torch.Tensor, o_b: torch.Tensor, lse_b: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    S, H, D = o_a.shape
    o = torch.empty((S, H, D), dtype=o_a.dtype, device=o_a.device)
    lse = torch.empty((S, H), dtype=torch.float32, device=o_a.device)
    if S == 0:
        return torch.empty((S, H, D), device=o.device), lse
    BLOCK_D = triton.next_power_of_2(D)
    BLOCK_R = max(1, 1024 // BLOCK_D)  # 4 warps: 128 threads load 8 halves each, which is 16 bytes
    merge_natural_kernel[(triton.cdiv(S * H, BLOCK_R),)](
        o_a.contiguous(), lse_a.contiguous(), o_b.contiguous(), lse_b.contiguous(), o, lse, S * H, D, BLOCK_R, BLOCK_D
    )
    return o, lse
