"""The columns of k are taken to be adjacent.

exercise: partial_attention
level: memory
diagnosis: wrong_value
"""

import math

import torch
import triton
import triton.language as tl


@triton.jit
def no_nan(m):
    return tl.where(m == float("-inf"), 0.0, m)


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
        k = tl.load(k_ptr + key[:, None] * stride_kl + head * stride_kh + d_wide, mask=ok, other=0.0)
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


def partial_attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, num_splits: int, scale: float | None = None
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
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
