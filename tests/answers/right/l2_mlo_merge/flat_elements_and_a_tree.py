"""D in chunks and all scores of a part at once, a pair element by element, a tree of launches."""

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
    tl.store(m_ptr + at, m)
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


@triton.jit
def flat_pair_kernel(ma, la, oa, mb, lb, ob, m, l, o, H, D, sma, sla, soh, sod, smb, slb, sbh, sbd, E: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * E + tl.arange(0, E)
    ok = i < H * D
    h = i // D
    d = i % D
    m_a = tl.load(ma + h * sma, mask=ok, other=float("-inf"))
    m_b = tl.load(mb + h * smb, mask=ok, other=float("-inf"))
    l_a = tl.load(la + h * sla, mask=ok, other=0.0)
    l_b = tl.load(lb + h * slb, mask=ok, other=0.0)
    m_ = tl.maximum(m_a, m_b)
    w_a = tl.where(m_a == float("-inf"), 0.0, tl.exp(m_a - m_) * l_a)
    w_b = tl.where(m_b == float("-inf"), 0.0, tl.exp(m_b - m_) * l_b)
    x_a = tl.load(oa + h * soh + d * sod, mask=ok & (w_a > 0), other=0.0).to(tl.float32)
    x_b = tl.load(ob + h * sbh + d * sbd, mask=ok & (w_b > 0), other=0.0).to(tl.float32)
    w = w_a + w_b
    out = tl.where(w > 0, (w_a * x_a + w_b * x_b) / tl.where(w > 0, w, 1.0), 0.0)
    tl.store(o + i, out.to(o.dtype.element_ty), mask=ok)
    one = ok & (d == 0)
    tl.store(m + h, m_, mask=one)
    tl.store(l + h, w, mask=one)


def merge_pair(m_a, l_a, o_a, m_b, l_b, o_b):
    H, D = o_a.shape
    m = torch.empty(H, dtype=torch.float32, device=o_a.device)
    l = torch.empty(H, dtype=torch.float32, device=o_a.device)
    o = torch.empty((H, D), dtype=o_a.dtype, device=o_a.device)
    flat_pair_kernel[(triton.cdiv(H * D, 256),)](
        m_a,
        l_a,
        o_a,
        m_b,
        l_b,
        o_b,
        m,
        l,
        o,
        H,
        D,
        m_a.stride(0),
        l_a.stride(0),
        *o_a.stride(),
        m_b.stride(0),
        l_b.stride(0),
        *o_b.stride(),
        E=256,
    )
    return m, l, o


@triton.jit
def level_kernel(m_ptr, l_ptr, o_ptr, m2_ptr, l2_ptr, o2_ptr, N, H, D: tl.constexpr, W: tl.constexpr):
    p = tl.program_id(0).to(tl.int64)
    h = tl.program_id(1).to(tl.int64)
    d = tl.arange(0, W)
    a = 2 * p * H + h
    b = a + H
    has_b = 2 * p + 1 < N
    m_a = tl.load(m_ptr + a)
    l_a = tl.load(l_ptr + a)
    m_b = tl.load(m_ptr + b, mask=has_b, other=float("-inf"))
    l_b = tl.load(l_ptr + b, mask=has_b, other=0.0)
    top = tl.maximum(m_a, m_b)
    z = tl.where(top == float("-inf"), 0.0, top)
    w_a = tl.exp(m_a - z) * l_a
    w_b = tl.exp(m_b - z) * l_b
    o_a = tl.load(o_ptr + a * D + d, mask=d < D, other=0.0).to(tl.float32)
    o_b = tl.load(o_ptr + b * D + d, mask=(d < D) & has_b, other=0.0).to(tl.float32)
    o_a = tl.where(w_a > 0, o_a, 0.0)
    o_b = tl.where(w_b > 0, o_b, 0.0)
    w = w_a + w_b
    s = tl.where(w > 0, w, 1.0)
    at = p * H + h
    tl.store(m2_ptr + at, top)
    tl.store(l2_ptr + at, w)
    tl.store(o2_ptr + at * D + d, (o_a * w_a + o_b * w_b) / s, mask=d < D)


def merge_mlo(m, l, o):
    N, H, D = o.shape
    out = torch.zeros((H, D), dtype=o.dtype, device=o.device)
    if N == 0:
        return out
    m, l, o = m.contiguous(), l.contiguous(), o.contiguous()
    while True:
        half = (N + 1) // 2
        m2 = torch.empty((half, H), dtype=torch.float32, device=m.device)
        l2 = torch.empty((half, H), dtype=torch.float32, device=m.device)
        o2 = torch.empty((half, H, D), dtype=torch.float32, device=m.device)
        level_kernel[(half, H)](m, l, o, m2, l2, o2, N, H, D, triton.next_power_of_2(D), num_warps=2)
        m, l, o, N = m2, l2, o2, half
        if N == 1:
            break
    return o[0].to(out.dtype)
