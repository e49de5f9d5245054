"""The offset of a score in its row is computed in 32 bits: in a transposed view, scores lie rows apart.

exercise: attend
level: memory
diagnosis: out_of_bounds
"""

import torch
import triton
import triton.language as tl

LOG2E = tl.constexpr(1.4426950408889634)


def columns_a_step(N: int, block: int) -> int:
    return triton.next_power_of_2(max(min(N, block), 1))


@triton.jit
def no_nan(m):
    return tl.where(m == float("-inf"), 0.0, m)


@triton.jit
def exp(x):
    return tl.exp2(x * LOG2E)


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
    row = tl.program_id(0).to(tl.int64)
    d = tl.arange(0, BLOCK_D)
    m = float("-inf")
    l = 0.0
    o = tl.zeros((BLOCK_D,), tl.float32)
    for start in range(0, N, BLOCK):
        n = (start + tl.arange(0, BLOCK)).to(tl.int64)
        score = tl.load(scores_ptr + row * stride_row + n.to(tl.int32) * stride_col, mask=n < N, other=float("-inf"))
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


def attend(scores: torch.Tensor, v: torch.Tensor, block: int = 64) -> torch.Tensor:
    M, N = scores.shape
    D = v.shape[1]
    o = torch.empty((M, D), dtype=v.dtype, device=v.device)
    if M == 0:
        return o
    BLOCK_D = triton.next_power_of_2(D)
    BLOCK = min(columns_a_step(N, block), max(1, 8192 // BLOCK_D))  # a tile of v has to fit in registers
    attend_kernel[(M,)](scores, v, o, N, *scores.stride(), *v.stride(), D, BLOCK, BLOCK_D)
    return o
