"""k and v are swapped in the launch, strides and all.

exercise: partial_attention
level: value
diagnosis: partial_keys_and_values_swapped
"""

import math

import torch
import triton
import triton.language as tl


@triton.jit
def partial_attention_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    m_ptr,
    l_ptr,
    o_ptr,
    H,
    L,
    T,
    scale,
    stride_kl,
    stride_kh,
    stride_kd,
    stride_vl,
    stride_vh,
    stride_vd,
    D: tl.constexpr,
    BLOCK_L: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    head = tl.program_id(0).to(tl.int64)
    part = tl.program_id(1)
    d = tl.arange(0, BLOCK_D)
    q = tl.load(q_ptr + head * D + d, mask=d < D, other=0.0).to(tl.float32)
    m = float("-inf")
    l = 0.0
    o = tl.zeros((BLOCK_D,), tl.float32)
    end = tl.minimum((part + 1) * T, L)
    for start in range(part * T, end, BLOCK_L):
        n = (start + tl.arange(0, BLOCK_L)).to(tl.int64)
        ok = (n < end)[:, None] & (d < D)[None, :]
        dd = d[None, :].to(tl.int64)
        k = tl.load(k_ptr + n[:, None] * stride_kl + head * stride_kh + dd * stride_kd, mask=ok, other=0.0).to(
            tl.float32
        )
        v = tl.load(v_ptr + n[:, None] * stride_vl + head * stride_vh + dd * stride_vd, mask=ok, other=0.0).to(
            tl.float32
        )
        x = tl.sum(q[None, :] * k, axis=1) * scale
        x = tl.where(n < end, x, float("-inf"))
        m_new = tl.maximum(m, tl.max(x, axis=0))
        shift = tl.where(m_new == float("-inf"), 0.0, m_new)
        f = tl.exp(m - shift)
        w = tl.exp(x - shift)
        l = l * f + tl.sum(w, axis=0)
        o = o * f + tl.sum(w[:, None] * v, axis=0)
        m = m_new
    row = part.to(tl.int64) * H + head
    tl.store(m_ptr + row, m)
    tl.store(l_ptr + row, l)
    tl.store(o_ptr + row * D + d, o / tl.where(l > 0, l, 1.0), mask=d < D)


def partial_attention(q, k, v, num_splits, scale=None):
    H, D = q.shape
    L = k.shape[0]
    m = torch.empty((num_splits, H), dtype=torch.float32, device=q.device)
    l = torch.empty((num_splits, H), dtype=torch.float32, device=q.device)
    o = torch.empty((num_splits, H, D), dtype=torch.float32, device=q.device)
    if scale is None:
        scale = 1.0 / math.sqrt(D)
    partial_attention_kernel[(H, num_splits)](
        q.contiguous(),
        v,
        k,
        m,
        l,
        o,
        H,
        L,
        triton.cdiv(L, num_splits),
        scale,
        *v.stride(),
        *k.stride(),
        D,
        16,
        triton.next_power_of_2(D),
    )
    return m, l, o
