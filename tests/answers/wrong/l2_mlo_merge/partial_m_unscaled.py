"""m is the largest q . k, without the scale.

exercise: partial_attention
level: value
diagnosis: partial_m_unscaled
"""

import math

import torch
import triton
import triton.language as tl


@triton.jit
def chunked_kernel(
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
    qh,
    qd,
    kl,
    kh,
    kd,
    vl,
    vh,
    vd,
    D: tl.constexpr,
    P: tl.constexpr,
    W: tl.constexpr,
):
    n = tl.program_id(0)
    h = tl.program_id(1).to(tl.int64)
    start = (n * T).to(tl.int64)
    j = start + tl.arange(0, P)
    ok = (tl.arange(0, P) < T) & (j < L)
    s = tl.zeros((P,), tl.float32)
    for d0 in tl.static_range(0, D, W):
        d = d0 + tl.arange(0, W).to(tl.int64)
        q = tl.load(q_ptr + h * qh + d * qd, mask=d < D, other=0.0).to(tl.float32)
        k = tl.load(
            k_ptr + j[:, None] * kl + h * kh + d[None, :] * kd, mask=ok[:, None] & (d < D)[None, :], other=0.0
        ).to(tl.float32)
        s += tl.sum(k * q[None, :], 1)
    s = tl.where(ok, s * scale, float("-inf"))
    m = tl.max(s, 0)
    p = tl.where(ok, tl.exp(s - tl.where(m == float("-inf"), 0.0, m)), 0.0)
    l = tl.sum(p, 0)
    at = n.to(tl.int64) * H + h
    tl.store(m_ptr + at, m / scale)
    tl.store(l_ptr + at, l)
    inv = 1.0 / tl.where(l > 0.0, l, 1.0)
    for d0 in tl.static_range(0, D, W):
        d = d0 + tl.arange(0, W).to(tl.int64)
        v = tl.load(
            v_ptr + j[:, None] * vl + h * vh + d[None, :] * vd, mask=ok[:, None] & (d < D)[None, :], other=0.0
        ).to(tl.float32)
        tl.store(o_ptr + at * D + d, tl.sum(p[:, None] * v, 0) * inv, mask=d < D)


def partial_attention(q, k, v, num_splits, scale=None):
    H, D = q.shape
    L = k.shape[0]
    dev = dict(dtype=torch.float32, device=q.device)
    m, l, o = (
        torch.empty((num_splits, H), **dev),
        torch.empty((num_splits, H), **dev),
        torch.empty((num_splits, H, D), **dev),
    )
    if L == 0:
        return m.fill_(float("-inf")), l.zero_(), o.zero_()
    T = triton.cdiv(L, num_splits)
    chunked_kernel[(num_splits, H)](
        q,
        k,
        v,
        m,
        l,
        o,
        H,
        L,
        T,
        1 / math.sqrt(D) if scale is None else scale,
        *q.stride(),
        *k.stride(),
        *v.stride(),
        D=D,
        P=triton.next_power_of_2(T),
        W=32,
    )
    return m, l, o
