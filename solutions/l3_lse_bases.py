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

# BEGIN SOLUTION


def columns_a_step(N: int) -> int:
    """One step for rows of up to 4,096 columns."""
    return min(4096, triton.next_power_of_2(max(N, 1)))


@triton.jit
def no_nan(m):
    """What to subtract for a max m: (-inf) - (-inf) is NaN, (-inf) - 0 is not."""
    return tl.where(m == float("-inf"), 0.0, m)


# END SOLUTION
@triton.jit
def lse_kernel(
    x_ptr,  # [M, N] with the strides below
    lse_ptr,  # [M] float32, result
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
    tl.store(lse_ptr + row, m + tl.log(tl.where(l > 0.0, l, 1.0)))  # an empty row: -inf + ln(1)
    # END SOLUTION


def lse(x: torch.Tensor) -> torch.Tensor:
    """The natural log-sum-exp of every row, ln(sum of exp(x)).

    x: [M, N] float16, bfloat16 or float32, any strides; -inf marks a masked score.
    Returns [M] float32. A row with no score above -inf, N = 0 included, gives -inf.
    Traffic: one read of x will do; more than twice the least fails.
    """
    # BEGIN SOLUTION
    M, N = x.shape
    out = torch.empty(M, dtype=torch.float32, device=x.device)
    if M > 0:
        lse_kernel[(M,)](x, out, N, x.stride(0), x.stride(1), columns_a_step(N))
    return out
    # END SOLUTION


@triton.jit
def lse2_kernel(
    x_ptr,  # [M, N] with the strides below
    s_ptr,  # [M] float32, result
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
        x = x.to(tl.float32) * LOG2E  # from here on everything, m included, is in base 2
        m_new = tl.maximum(m, tl.max(x, axis=0))
        shift = no_nan(m_new)
        l = l * tl.exp2(m - shift) + tl.sum(tl.exp2(x - shift), axis=0)
        m = m_new
    tl.store(s_ptr + row, m + tl.log2(tl.where(l > 0.0, l, 1.0)))  # an empty row: -inf + log2(1)
    # END SOLUTION


def lse2(x: torch.Tensor) -> torch.Tensor:
    """The base-2 log-sum-exp of every row, log2(sum of exp(x)), computed with exp2 and log2.

    x: [M, N] float16, bfloat16 or float32, any strides; natural scores, -inf marks a masked one.
    Returns [M] float32. A row with no score above -inf, N = 0 included, gives -inf.
    Traffic: one read of x will do; more than twice the least fails.
    """
    # BEGIN SOLUTION
    M, N = x.shape
    out = torch.empty(M, dtype=torch.float32, device=x.device)
    if M > 0:
        lse2_kernel[(M,)](x, out, N, x.stride(0), x.stride(1), columns_a_step(N))
    return out
    # END SOLUTION


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
    # BEGIN SOLUTION
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
    # END SOLUTION


def merge_natural(
    o_a: torch.Tensor, lse_a: torch.Tensor, o_b: torch.Tensor, lse_b: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Merges two outputs with natural LSEs: merged = max + ln(1 + exp(min - max)).

    o_a, o_b: [S, H, D] float16, bfloat16 or float32. lse_a, lse_b: [S, H] float32, natural. Any strides.
    Returns o [S, H, D] in o_a's dtype and lse [S, H] float32. Two empty rows give (0, -inf).
    Traffic: one read of each will do; more than twice the least fails.
    """
    # BEGIN SOLUTION
    S, H, D = o_a.shape
    o = torch.empty((S, H, D), dtype=o_a.dtype, device=o_a.device)
    lse = torch.empty((S, H), dtype=torch.float32, device=o_a.device)
    if S == 0:
        return o, lse
    BLOCK_D = triton.next_power_of_2(D)
    BLOCK_R = max(1, 1024 // BLOCK_D)  # 4 warps: 128 threads load 8 halves each, which is 16 bytes
    merge_natural_kernel[(triton.cdiv(S * H, BLOCK_R),)](
        o_a.contiguous(), lse_a.contiguous(), o_b.contiguous(), lse_b.contiguous(), o, lse, S * H, D, BLOCK_R, BLOCK_D
    )
    return o, lse
    # END SOLUTION


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
    # BEGIN SOLUTION
    t = tl.program_id(0).to(tl.int64) * BLOCK_T + tl.arange(0, BLOCK_T)
    h = tl.program_id(1).to(tl.int64) * BLOCK_H + tl.arange(0, BLOCK_H)
    ok = (t < T)[:, None] & (h < H)[None, :]
    lse = tl.load(lse_ptr + h[None, :] * stride_h + t[:, None] * stride_t, mask=ok, other=float("-inf"))
    s = tl.where(lse == float("inf"), float("-inf"), lse * LOG2E)
    tl.store(s_ptr + t[:, None] * H + h[None, :], s, mask=ok)
    # END SOLUTION


def to_flashinfer(lse: torch.Tensor) -> torch.Tensor:
    """From FlashAttention's convention to FlashInfer's.

    lse: [H, T] float32, natural, any strides; an empty row is -inf or +inf.
    Returns s [T, H] float32, base 2, contiguous; an empty row is -inf.
    Traffic: one read and one write will do; more than twice the least fails.
    """
    # BEGIN SOLUTION
    H, T = lse.shape
    s = torch.empty((T, H), dtype=torch.float32, device=lse.device)
    if T > 0:
        BLOCK_T, BLOCK_H = 64, 16
        to_flashinfer_kernel[(triton.cdiv(T, BLOCK_T), triton.cdiv(H, BLOCK_H))](
            lse, s, H, T, lse.stride(0), lse.stride(1), BLOCK_T, BLOCK_H
        )
    return s
    # END SOLUTION


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
    # BEGIN SOLUTION
    position = (tl.program_id(0) % S).to(tl.int64)  # queries side by side find one another's keys in the cache
    head = (tl.program_id(0) // S % H).to(tl.int64)
    part = tl.program_id(0) // S // H
    d = tl.arange(0, BLOCK_D)
    q = tl.load(q_ptr + (position * H + head) * D + d, mask=d < D, other=0.0).to(tl.float32)
    q = q * (scale * LOG2E)  # once: every score below is in base 2

    m = float("-inf")
    l = 0.0
    acc = tl.zeros((BLOCK_D,), tl.float32)
    end = tl.minimum((part + 1) * T, L)
    for start in tl.range(part * T, end, BLOCK_L, num_stages=4):
        key = (start + tl.arange(0, BLOCK_L)).to(tl.int64)
        ok = (key < end)[:, None] & (d < D)[None, :]
        d_wide = d[None, :].to(tl.int64)
        k = tl.load(k_ptr + key[:, None] * stride_kl + head * stride_kh + d_wide * stride_kd, mask=ok, other=0.0)
        v = tl.load(v_ptr + key[:, None] * stride_vl + head * stride_vh + d_wide * stride_vd, mask=ok, other=0.0)
        score = tl.sum(q[None, :] * k.to(tl.float32), axis=1)  # [BLOCK_L]
        score = tl.where(key < end, score, float("-inf"))  # a key past the end would score 0

        m_new = tl.maximum(m, tl.max(score, axis=0))
        shift = no_nan(m_new)
        keep = tl.exp2(m - shift)
        w = tl.exp2(score - shift)
        acc = acc * keep + tl.sum(w[:, None] * v.to(tl.float32), axis=0)
        l = l * keep + tl.sum(w, axis=0)
        m = m_new

    row = (position * N + part) * H + head
    tl.store(out_s_ptr + row, m + tl.log2(tl.where(l > 0.0, l, 1.0)))
    tl.store(out_v_ptr + row * D + d, acc / tl.where(l > 0.0, l, 1.0), mask=d < D)
    # END SOLUTION


def partial_states(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, num_splits: int, scale: float | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Attention of S queries over num_splits parts of the keys, each part a state (v, s) in base 2.

    q: [S, H, D], k and v: [L, H, D], float16, bfloat16 or float32, any strides. scale: 1/sqrt(D) if None.
    Part n covers keys n * T to min((n + 1) * T, L), T = ceil(L / num_splits).
    Returns v [S, N, H, D] and s [S, N, H], both float32, N = num_splits. A part with no keys gives (0, -inf).
    Traffic with one query: one read of k and v will do; more than twice the least fails.
    """
    # BEGIN SOLUTION
    S, H, D = q.shape
    L = k.shape[0]
    out_v = torch.empty((S, num_splits, H, D), dtype=torch.float32, device=q.device)
    out_s = torch.empty((S, num_splits, H), dtype=torch.float32, device=q.device)
    if S == 0:
        return out_v, out_s
    scale = 1.0 / math.sqrt(D) if scale is None else scale
    BLOCK_D = triton.next_power_of_2(D)
    BLOCK_L = max(2, min(64, 512 // BLOCK_D))  # 512 elements a step, 1 warp: no sum crosses warps
    partial_states_kernel[(S * num_splits * H,)](
        q.contiguous(), k, v, out_v, out_s, S, num_splits, H, L, triton.cdiv(L, num_splits), scale,
        *k.stride(), *v.stride(), D, BLOCK_L, BLOCK_D, num_warps=1,
    )  # fmt: skip
    return out_v, out_s
    # END SOLUTION
