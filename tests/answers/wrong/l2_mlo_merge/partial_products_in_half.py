"""q and k are multiplied in their own dtype.

exercise: partial_attention
level: value
diagnosis: wrong_value
"""

import torch
import triton
import triton.language as tl


@triton.jit
def partial_kernel(
    q_ptr,  # [H, D]
    k_ptr,  # [L, H, D]
    v_ptr,  # [L, H, D]
    m_ptr,  # [N, H]
    l_ptr,  # [N, H]
    o_ptr,  # [N, H, D]
    H,
    L,
    T,
    scale,
    D,
    BLOCK_L: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    part = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1).to(tl.int64)
    d = tl.arange(0, BLOCK_D)
    q = tl.load(q_ptr + head * D + d, mask=d < D, other=0.0)
    m = float("-inf")
    l = 0.0
    o = tl.zeros([BLOCK_D], dtype=tl.float32)
    end = tl.minimum((part + 1) * T, L)
    for start in range(part * T, end, BLOCK_L):
        key = start + tl.arange(0, BLOCK_L)
        ok = (key < end)[:, None] & (d < D)[None, :]
        at = (key[:, None] * H + head) * D + d[None, :]
        k = tl.load(k_ptr + at, mask=ok, other=0.0)
        v = tl.load(v_ptr + at, mask=ok, other=0.0).to(tl.float32)
        score = tl.sum((q[None, :] * k).to(tl.float32), axis=1) * scale
        score = tl.where(key < end, score, float("-inf"))
        m_new = tl.maximum(m, tl.max(score, axis=0))
        shift = tl.where(m_new == float("-inf"), 0.0, m_new)
        keep = tl.exp(m - shift)
        w = tl.exp(score - shift)
        o = o * keep + tl.sum(w[:, None] * v, axis=0)
        l = l * keep + tl.sum(w, axis=0)
        m = m_new
    row = part * H + head
    tl.store(m_ptr + row, m)
    tl.store(l_ptr + row, l)
    tl.store(o_ptr + row * D + d, o / tl.where(l > 0, l, 1.0), mask=d < D)


def partial_attention(q, k, v, num_splits, scale=None):
    H, D = q.shape
    L = k.shape[0]
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    m = torch.empty((num_splits, H), dtype=torch.float32, device=q.device)
    l = torch.empty((num_splits, H), dtype=torch.float32, device=q.device)
    o = torch.empty((num_splits, H, D), dtype=torch.float32, device=q.device)
    scale = D**-0.5 if scale is None else scale
    T = triton.cdiv(L, num_splits)
    partial_kernel[(num_splits, H)](q, k, v, m, l, o, H, L, T, scale, D, 16, triton.next_power_of_2(D))
    return m, l, o
