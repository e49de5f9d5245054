"""A tile of heads has one running max, that of all its heads.

exercise: partial_states
level: edge
diagnosis: wrong_value
"""

import torch
import triton
import triton.language as tl


@triton.jit
def states_kernel(
    q_ptr,  # [S, H, D]
    k_ptr,  # [L, H, D]
    v_ptr,  # [L, H, D]
    v_out_ptr,  # [S, N, H, D]
    s_out_ptr,  # [S, N, H]
    H,
    L,
    T,
    scale,
    D,
    BLOCK_L: tl.constexpr,
    BLOCK_H: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    position = tl.program_id(0).to(tl.int64)
    part = tl.program_id(1).to(tl.int64)
    head = tl.program_id(2).to(tl.int64) * BLOCK_H + tl.arange(0, BLOCK_H)
    d = tl.arange(0, BLOCK_D)
    inside = (head < H)[:, None] & (d < D)[None, :]
    q = tl.load(q_ptr + (position * H + head)[:, None] * D + d[None, :], mask=inside, other=0.0).to(tl.float32)
    q = q * (scale * 1.4426950408889634)
    m = float("-inf")
    l = tl.zeros([BLOCK_H], dtype=tl.float32)
    acc = tl.zeros([BLOCK_H, BLOCK_D], dtype=tl.float32)
    end = tl.minimum((part + 1) * T, L)
    for start in range(part * T, end, BLOCK_L):
        key = start + tl.arange(0, BLOCK_L)
        live = (key < end)[:, None] & (head < H)[None, :]
        ok = live[:, :, None] & (d < D)[None, None, :]
        at = (key[:, None] * H + head[None, :])[:, :, None] * D + d[None, None, :]
        k = tl.load(k_ptr + at, mask=ok, other=0.0).to(tl.float32)
        v = tl.load(v_ptr + at, mask=ok, other=0.0).to(tl.float32)
        score = tl.where(live, tl.sum(q[None, :, :] * k, axis=2), float("-inf"))
        m_new = tl.maximum(m, tl.max(score))
        keep = tl.exp2(m - m_new)
        w = tl.exp2(score - m_new)
        acc = acc * keep + tl.sum(w[:, :, None] * v, axis=0)
        l = l * keep + tl.sum(w, axis=0)
        m = m_new
    total = tl.where(l > 0, l, 1.0)
    row = (position * tl.num_programs(1) + part) * H + head
    tl.store(s_out_ptr + row, tl.where(l > 0, m + tl.log2(total), float("-inf")), mask=head < H)
    tl.store(v_out_ptr + row[:, None] * D + d[None, :], acc / total[:, None], mask=inside)


def partial_states(q, k, v, num_splits, scale=None):
    S, H, D = q.shape
    L = k.shape[0]
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    v_out = torch.empty((S, num_splits, H, D), dtype=torch.float32, device=q.device)
    s_out = torch.empty((S, num_splits, H), dtype=torch.float32, device=q.device)
    scale = D**-0.5 if scale is None else scale
    T = triton.cdiv(L, num_splits)
    if S > 0:
        BLOCK_D = triton.next_power_of_2(D)
        BLOCK_H = min(4, triton.next_power_of_2(H))
        grid = (S, num_splits, triton.cdiv(H, BLOCK_H))
        BLOCK_L = max(1, min(16, 4096 // BLOCK_D // BLOCK_H))
        states_kernel[grid](q, k, v, v_out, s_out, H, L, T, scale, D, BLOCK_L, BLOCK_H, BLOCK_D)
    return v_out, s_out
