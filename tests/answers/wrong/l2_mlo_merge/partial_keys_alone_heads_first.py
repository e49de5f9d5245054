"""k is read as [H, L, D], v as it is.

exercise: partial_attention
level: value
diagnosis: partial_heads_first
twins: partial_heads_first
"""

import math

import torch
import triton
import triton.language as tl


@triton.jit
def onekey_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    m_ptr,
    l_ptr,
    o_ptr,
    L,
    T,
    scale,
    qh,
    qd,
    kl,
    kh,
    kd,
    vl,
    vh,
    vd,
    D: tl.constexpr,
    W: tl.constexpr,
):
    n = tl.program_id(0)
    h = tl.program_id(1).to(tl.int64)
    H = tl.num_programs(1)
    d = tl.arange(0, W).to(tl.int64)
    ok = d < D
    q = tl.load(q_ptr + h * qh + d * qd, mask=ok, other=0.0).to(tl.float32)
    m = float("-inf")
    l = 0.0
    acc = tl.zeros((W,), tl.float32)
    j = (n * T).to(tl.int64)
    end = tl.minimum(L, n * T + T)
    while j < end:
        k = tl.load(k_ptr + (h * L + j) * D + d, mask=ok, other=0.0).to(tl.float32)
        v = tl.load(v_ptr + j * vl + h * vh + d * vd, mask=ok, other=0.0).to(tl.float32)
        s = tl.sum(q * k) * scale
        mn = tl.maximum(m, s)
        a = tl.exp(m - mn)
        p = tl.exp(s - mn)
        acc = acc * a + p * v
        l = l * a + p
        m = mn
        j += 1
    at = n * H + h
    tl.store(m_ptr + at, m)
    tl.store(l_ptr + at, l)
    if l > 0:
        acc = acc / l
    tl.store(o_ptr + at * D + d, acc, mask=ok)


def partial_attention(q, k, v, num_splits, scale=None):
    H, D = q.shape
    L = k.shape[0]
    m = torch.empty((num_splits, H), dtype=torch.float32, device=q.device)
    l = torch.empty((num_splits, H), dtype=torch.float32, device=q.device)
    o = torch.empty((num_splits, H, D), dtype=torch.float32, device=q.device)
    if scale is None:
        scale = 1 / math.sqrt(D)
    onekey_kernel[(num_splits, H)](
        q,
        k,
        v,
        m,
        l,
        o,
        L,
        triton.cdiv(L, num_splits),
        scale,
        *q.stride(),
        *k.stride(),
        *v.stride(),
        D,
        triton.next_power_of_2(D),
    )
    return m, l, o
