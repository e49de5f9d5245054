"""Lesson 2: FlashDecoding's triple.

One query leaves most of a GPU idle, so its keys are split into parts that run side by side. A part leaves behind
m (its largest score), l (its sum of exp(score - m)) and o (its own attention output, normalized), and these merge.
A part with no keys has m = -inf, l = 0, o = 0. In a merge it weighs nothing, whatever its o holds, NaN included.
"""

import math

import torch
import triton
import triton.language as tl

# BEGIN SOLUTION


@triton.jit
def no_nan(m):
    """What to subtract for a max m: (-inf) - (-inf) is NaN, (-inf) - 0 is not."""
    return tl.where(m == float("-inf"), 0.0, m)


# END SOLUTION
@triton.jit(do_not_specialize=["H", "L", "T"])
def partial_attention_kernel(
    q_ptr,  # [H, D] contiguous
    k_ptr,  # [L, H, D] with the strides below
    v_ptr,  # [L, H, D] with the strides below
    m_ptr,  # [N, H] float32, result
    l_ptr,  # [N, H] float32, result
    o_ptr,  # [N, H, D] float32, result
    H,
    L,
    T,  # keys a part
    scale,
    stride_kl, stride_kh, stride_kd,  # elements from one key, head, column of k to the next
    stride_vl, stride_vh, stride_vd,  # the same for v
    D: tl.constexpr,
    BLOCK_L: tl.constexpr,  # keys a step
    BLOCK_D: tl.constexpr,  # D rounded up to a power of two
):  # fmt: skip
    # BEGIN SOLUTION
    head = (tl.program_id(0) % H).to(tl.int64)  # heads side by side: their keys are neighbors in memory
    part = tl.program_id(0) // H
    d = tl.arange(0, BLOCK_D)
    q = tl.load(q_ptr + head * D + d, mask=d < D, other=0.0).to(tl.float32) * scale

    # Each of the BLOCK_L places in a step is a recurrence of its own, and no thread waits for another: the places are
    # parts of the part, and merge at the end.
    m = tl.full((BLOCK_L,), float("-inf"), tl.float32)
    l = tl.zeros((BLOCK_L,), tl.float32)
    o = tl.zeros((BLOCK_L, BLOCK_D), tl.float32)
    end = tl.minimum((part + 1) * T, L)
    for start in tl.range(part * T, end, BLOCK_L, num_stages=4):
        key = (start + tl.arange(0, BLOCK_L)).to(tl.int64)
        ok = (key < end)[:, None] & (d < D)[None, :]
        d_wide = d[None, :].to(tl.int64)
        k = tl.load(k_ptr + key[:, None] * stride_kl + head * stride_kh + d_wide * stride_kd, mask=ok, other=0.0)
        v = tl.load(v_ptr + key[:, None] * stride_vl + head * stride_vh + d_wide * stride_vd, mask=ok, other=0.0)
        score = tl.sum(q[None, :] * k.to(tl.float32), axis=1)  # [BLOCK_L]
        score = tl.where(key < end, score, float("-inf"))  # a key past the end would score 0

        m_new = tl.maximum(m, score)
        shift = no_nan(m_new)
        keep = tl.exp(m - shift)
        w = tl.exp(score - shift)
        o = o * keep[:, None] + w[:, None] * v.to(tl.float32)
        l = l * keep + w
        m = m_new

    m_part = tl.max(m, axis=0)
    w = tl.exp(m - no_nan(m_part))
    l_part = tl.sum(l * w, axis=0)
    o_part = tl.sum(o * w[:, None], axis=0) / tl.where(l_part > 0.0, l_part, 1.0)
    row = part.to(tl.int64) * H + head  # [N, H]
    tl.store(m_ptr + row, m_part)
    tl.store(l_ptr + row, l_part)
    tl.store(o_ptr + row * D + d, o_part, mask=d < D)
    # END SOLUTION


def partial_attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, num_splits: int, scale: float | None = None
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Attention of one query over num_splits parts of the keys, each part by itself.

    q: [H, D], k and v: [L, H, D], float16, bfloat16 or float32, any strides. scale: 1/sqrt(D) if None.
    Part n covers keys n * T to min((n + 1) * T, L), T = ceil(L / num_splits). Scores are q . k * scale.
    Returns m [N, H], l [N, H], o [N, H, D], all float32, N = num_splits: the part's largest score, its sum of
    exp(score - m), its normalized output. A part with no keys gives (-inf, 0, 0).
    At least N * H programs run. Traffic: one read of k and v will do; more than twice the least fails.
    """
    # BEGIN SOLUTION
    H, D = q.shape
    L = k.shape[0]
    m = torch.empty((num_splits, H), dtype=torch.float32, device=q.device)
    l = torch.empty((num_splits, H), dtype=torch.float32, device=q.device)
    o = torch.empty((num_splits, H, D), dtype=torch.float32, device=q.device)
    scale = 1.0 / math.sqrt(D) if scale is None else scale
    BLOCK_D = triton.next_power_of_2(D)
    # 512 elements a step and warp. Where programs are few, each has the more warps: about 1,024 in all, to 8.
    warps = min(8, triton.next_power_of_2(triton.cdiv(1024, max(1, num_splits * H))))
    BLOCK_L = max(1, min(64, 512 // BLOCK_D)) * warps
    partial_attention_kernel[(num_splits * H,)](
        q.contiguous(), k, v, m, l, o, H, L, triton.cdiv(L, num_splits), scale,
        *k.stride(), *v.stride(), D, BLOCK_L, BLOCK_D, num_warps=warps,
    )  # fmt: skip
    return m, l, o
    # END SOLUTION


@triton.jit(do_not_specialize=["H"])
def merge_pair_kernel(
    m_a_ptr, l_a_ptr,  # [H] float32
    o_a_ptr,  # [H, D]
    m_b_ptr, l_b_ptr,  # [H] float32
    o_b_ptr,  # [H, D]
    m_ptr, l_ptr,  # [H] float32, results
    o_ptr,  # [H, D] result
    H,
    D: tl.constexpr,
    BLOCK_H: tl.constexpr,  # heads a program
    BLOCK_D: tl.constexpr,  # D rounded up to a power of two
):  # fmt: skip
    # BEGIN SOLUTION
    head = tl.program_id(0).to(tl.int64) * BLOCK_H + tl.arange(0, BLOCK_H)
    d = tl.arange(0, BLOCK_D)
    head_ok = head < H
    ok = head_ok[:, None] & (d < D)[None, :]
    offset = head[:, None] * D + d[None, :]

    m_a = tl.load(m_a_ptr + head, mask=head_ok, other=float("-inf"))
    m_b = tl.load(m_b_ptr + head, mask=head_ok, other=float("-inf"))
    l_a = tl.load(l_a_ptr + head, mask=head_ok, other=0.0)
    l_b = tl.load(l_b_ptr + head, mask=head_ok, other=0.0)
    o_a = tl.load(o_a_ptr + offset, mask=ok, other=0.0).to(tl.float32)
    o_b = tl.load(o_b_ptr + offset, mask=ok, other=0.0).to(tl.float32)

    m = tl.maximum(m_a, m_b)
    shift = no_nan(m)
    w_a = tl.exp(m_a - shift) * l_a  # an empty part: 0 * 0
    w_b = tl.exp(m_b - shift) * l_b
    o_a = tl.where((w_a > 0.0)[:, None], o_a, 0.0)  # 0 * NaN is NaN: the payload of an empty part is dropped
    o_b = tl.where((w_b > 0.0)[:, None], o_b, 0.0)

    l = w_a + w_b
    scale = 1.0 / tl.where(l > 0.0, l, 1.0)
    o = o_a * (w_a * scale)[:, None] + o_b * (w_b * scale)[:, None]
    tl.store(m_ptr + head, m, mask=head_ok)
    tl.store(l_ptr + head, l, mask=head_ok)
    tl.store(o_ptr + offset, o.to(o_ptr.dtype.element_ty), mask=ok)
    # END SOLUTION


def merge_pair(
    m_a: torch.Tensor, l_a: torch.Tensor, o_a: torch.Tensor, m_b: torch.Tensor, l_b: torch.Tensor, o_b: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Merges two parts of every head into one. A tree of these equals merge_mlo.

    m_a, l_a, m_b, l_b: [H] float32. o_a, o_b: [H, D] float16, bfloat16 or float32, normalized. Any strides.
    Returns m [H], l [H] float32 and o [H, D] in o_a's dtype, normalized. Two empty parts give (-inf, 0, 0).
    """
    # BEGIN SOLUTION
    H, D = o_a.shape
    m = torch.empty(H, dtype=torch.float32, device=o_a.device)
    l = torch.empty(H, dtype=torch.float32, device=o_a.device)
    o = torch.empty((H, D), dtype=o_a.dtype, device=o_a.device)
    BLOCK_D = triton.next_power_of_2(D)
    BLOCK_H = max(1, 1024 // BLOCK_D)
    merge_pair_kernel[(triton.cdiv(H, BLOCK_H),)](
        m_a.contiguous(), l_a.contiguous(), o_a.contiguous(), m_b.contiguous(), l_b.contiguous(), o_b.contiguous(),
        m, l, o, H, D, BLOCK_H, BLOCK_D,
    )  # fmt: skip
    return m, l, o
    # END SOLUTION


@triton.jit(do_not_specialize=["N", "H"])
def merge_mlo_kernel(
    m_n_ptr,  # [N, H] float32
    l_n_ptr,  # [N, H] float32
    o_n_ptr,  # [N, H, D]
    o_ptr,  # [H, D] result
    N,
    H,
    D: tl.constexpr,
    BLOCK_N: tl.constexpr,  # parts a step
    BLOCK_D: tl.constexpr,  # columns a program
):
    # BEGIN SOLUTION
    head = tl.program_id(0).to(tl.int64)
    d = tl.program_id(1) * BLOCK_D + tl.arange(0, BLOCK_D)
    m = float("-inf")
    total = 0.0
    o = tl.zeros((BLOCK_D,), tl.float32)
    for start in range(0, N, BLOCK_N):
        n = (start + tl.arange(0, BLOCK_N)).to(tl.int64)
        row = n * H + head  # [N, H]: part n of this head
        m_n = tl.load(m_n_ptr + row, mask=n < N, other=float("-inf"))  # padding is an empty part
        l_n = tl.load(l_n_ptr + row, mask=n < N, other=0.0)
        o_n = tl.load(
            o_n_ptr + row[:, None] * D + d[None, :], mask=(n < N)[:, None] & (d < D)[None, :], other=0.0
        )  # [BLOCK_N, BLOCK_D]

        m_new = tl.maximum(m, tl.max(m_n, axis=0))
        shift = no_nan(m_new)
        keep = tl.exp(m - shift)
        w = tl.exp(m_n - shift) * l_n
        o_n = tl.where((w > 0.0)[:, None], o_n.to(tl.float32), 0.0)  # 0 * NaN is NaN: drop an empty part's payload
        o = o * keep + tl.sum(w[:, None] * o_n, axis=0)
        total = total * keep + tl.sum(w, axis=0)
        m = m_new
    o = o / tl.where(total > 0.0, total, 1.0)
    tl.store(o_ptr + head * D + d, o.to(o_ptr.dtype.element_ty), mask=d < D)
    # END SOLUTION


def merge_mlo(m: torch.Tensor, l: torch.Tensor, o: torch.Tensor) -> torch.Tensor:
    """Merges the N parts of every head at once: the weight of part n is exp(m_n - max m) * l_n.

    m, l: [N, H] float32. o: [N, H, D] float16, bfloat16 or float32, normalized inside its part. Any strides, any N.
    Returns o [H, D] in o's dtype. No parts, or only empty ones, give 0.
    """
    # BEGIN SOLUTION
    N, H, D = o.shape
    out = torch.empty((H, D), dtype=o.dtype, device=o.device)
    BLOCK_D = min(32, triton.next_power_of_2(D))  # heads are few: share each one's columns out to several programs
    BLOCK_N = min(64, triton.next_power_of_2(max(N, 1)))
    merge_mlo_kernel[(H, triton.cdiv(D, BLOCK_D))](
        m.contiguous(), l.contiguous(), o.contiguous(), out, N, H, D, BLOCK_N, BLOCK_D
    )
    return out
    # END SOLUTION
