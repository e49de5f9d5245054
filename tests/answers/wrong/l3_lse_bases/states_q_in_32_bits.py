"""The offset of a query is computed in 32 bits.

exercise: partial_states
level: memory
diagnosis: out_of_bounds
"""

import math

import torch
import triton
import triton.language as tl


@triton.jit
def tile_kernel(
    q_ptr,  # [S, H, D]
    k_ptr,  # [L, H, D]
    v_ptr,  # [L, H, D]
    out_v_ptr,  # [S, N, H, D]
    out_s_ptr,  # [S, N, H]
    S,
    N,
    H,
    L,
    T,
    scale,
    qs, qh, qd, kl, kh, kd, vl, vh, vd,
    D: tl.constexpr,
    BLOCK_S: tl.constexpr,
    BLOCK_L: tl.constexpr,
    BLOCK_D: tl.constexpr,
):  # fmt: skip
    pos = (tl.program_id(0) * BLOCK_S + tl.arange(0, BLOCK_S)).to(tl.int64)
    head = (tl.program_id(1) % H).to(tl.int64)
    part = tl.program_id(1) // H
    d = tl.arange(0, BLOCK_D).to(tl.int64)
    q_ok = (pos < S)[:, None] & (d < D)[None, :]
    q = tl.load(q_ptr + pos.to(tl.int32)[:, None] * qs + head * qh + d[None, :] * qd, mask=q_ok, other=0.0)
    m = tl.full((BLOCK_S,), float("-inf"), tl.float32)
    l = tl.zeros((BLOCK_S,), tl.float32)
    acc = tl.zeros((BLOCK_S, BLOCK_D), tl.float32)
    end = tl.minimum((part + 1) * T, L)
    for start in range(part * T, end, BLOCK_L):
        key = (start + tl.arange(0, BLOCK_L)).to(tl.int64)
        ok = (key < end)[:, None] & (d < D)[None, :]
        k = tl.load(k_ptr + key[:, None] * kl + head * kh + d[None, :] * kd, mask=ok, other=0.0)
        v = tl.load(v_ptr + key[:, None] * vl + head * vh + d[None, :] * vd, mask=ok, other=0.0)
        score = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        score = tl.where((key < end)[None, :], score, float("-inf"))
        m_new = tl.maximum(m, tl.max(score, axis=1))
        keep = tl.exp2(m - m_new)
        w = tl.exp2(score - m_new[:, None])
        acc = acc * keep[:, None] + tl.dot(w, v.to(tl.float32), input_precision="ieee")
        l = l * keep + tl.sum(w, axis=1)
        m = m_new
    safe = tl.where(l > 0, l, 1.0)
    row = (pos * N + part) * H + head
    tl.store(out_s_ptr + row, m + tl.log2(safe), mask=pos < S)
    tl.store(out_v_ptr + row[:, None] * D + d[None, :], acc / safe[:, None], mask=q_ok)


def partial_states(q, k, v, num_splits, scale=None):
    S, H, D = q.shape
    L = k.shape[0]
    scale = (D**-0.5 if scale is None else scale) * math.log2(math.e)
    out_v = torch.empty((S, num_splits, H, D), dtype=torch.float32, device=q.device)
    out_s = torch.empty((S, num_splits, H), dtype=torch.float32, device=q.device)
    if S > 0:
        tile_kernel[(triton.cdiv(S, 16), num_splits * H)](
            q, k, v, out_v, out_s, S, num_splits, H, L, triton.cdiv(L, num_splits), scale,
            *q.stride(), *k.stride(), *v.stride(), D, 16, 16, max(16, triton.next_power_of_2(D)),
        )  # fmt: skip
    return out_v, out_s
