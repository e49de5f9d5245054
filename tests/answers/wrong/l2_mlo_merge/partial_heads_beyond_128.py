"""Heads beyond the first 128 have no program.

exercise: partial_attention
level: memory
diagnosis: unwritten
"""

import math

import torch
import triton
import triton.language as tl


@triton.jit
def part_kernel(
    q_ptr,  # [H, D]
    k_ptr,  # [L, H, D]
    v_ptr,  # [L, H, D]
    m_ptr,  # [N, H]
    l_ptr,  # [N, H]
    o_ptr,  # [N, H, D]
    L,
    H,
    T,
    scale,
    qh, qd, kl, kh, kd, vl, vh, vd,
    D: tl.constexpr,
    BLOCK_L: tl.constexpr,
    BLOCK_D: tl.constexpr,
):  # fmt: skip
    part = tl.program_id(0)
    head = tl.program_id(1).to(tl.int64)
    d = tl.arange(0, BLOCK_D).to(tl.int64)
    q = tl.load(q_ptr + head * qh + d * qd, mask=d < D, other=0.0).to(tl.float32) * scale
    m = float("-inf")
    l = 0.0
    acc = tl.zeros((BLOCK_D,), tl.float32)
    end = tl.minimum((part + 1) * T, L)
    for start in range(part * T, end, BLOCK_L):
        key = (start + tl.arange(0, BLOCK_L)).to(tl.int64)
        ok = (key < end)[:, None] & (d < D)[None, :]
        k = tl.load(k_ptr + key[:, None] * kl + head * kh + d[None, :] * kd, mask=ok, other=0.0).to(tl.float32)
        v = tl.load(v_ptr + key[:, None] * vl + head * vh + d[None, :] * vd, mask=ok, other=0.0).to(tl.float32)
        s = tl.where(key < end, tl.sum(q[None, :] * k, axis=1), float("-inf"))
        m_new = tl.maximum(m, tl.max(s, axis=0))
        keep = tl.exp(m - m_new)
        w = tl.exp(s - m_new)
        acc = acc * keep + tl.sum(w[:, None] * v, axis=0)
        l = l * keep + tl.sum(w, axis=0)
        m = m_new
    row = part.to(tl.int64) * H + head
    tl.store(m_ptr + row, m)
    tl.store(l_ptr + row, l)
    tl.store(o_ptr + row * D + d, acc / tl.where(l > 0, l, 1.0), mask=d < D)


def partial_attention(q, k, v, num_splits, scale=None):
    H, D = q.shape
    L = k.shape[0]
    scale = D**-0.5 if scale is None else scale
    m = torch.empty((num_splits, H), dtype=torch.float32, device=q.device)
    l = torch.empty((num_splits, H), dtype=torch.float32, device=q.device)
    o = torch.empty((num_splits, H, D), dtype=torch.float32, device=q.device)
    T = triton.cdiv(L, num_splits)
    part_kernel[(num_splits, min(H, 128))](
        q, k, v, m, l, o, L, H, T, scale, *q.stride(), *k.stride(), *v.stride(),
        D, 16, triton.next_power_of_2(D),
    )  # fmt: skip
    return m, l, o
