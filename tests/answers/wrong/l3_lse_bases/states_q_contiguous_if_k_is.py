"""q is made contiguous only if k is not.

exercise: partial_states
level: memory
diagnosis: wrong_value
"""

import math

import torch
import triton
import triton.language as tl


LOG2E = tl.constexpr(1.4426950408889634)  # log2(e): e^x = 2^(x * LOG2E), and s = lse * LOG2E


@triton.jit
def no_nan(m):
    return tl.where(m == float("-inf"), 0.0, m)


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


def partial_states(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, num_splits: int, scale: float | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
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
        (q if k.is_contiguous() else q.contiguous()), k, v, out_v, out_s, S, num_splits, H, L, triton.cdiv(L, num_splits), scale,
        *k.stride(), *v.stride(), D, BLOCK_L, BLOCK_D, num_warps=1,
    )  # fmt: skip
    return out_v, out_s
