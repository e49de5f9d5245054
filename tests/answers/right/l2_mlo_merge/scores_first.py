"""Scores go to a workspace first; then m, l and o a part, in three kernels; the merge takes all parts in one tile."""

import torch
import triton
import triton.language as tl


@triton.jit
def score_kernel(q_ptr, k_ptr, s_ptr, H, D, scale, q0, q1, k0, k1, k2, WIDE: tl.constexpr):
    """s[L, H] = q[h] . k[key, h] * scale, a program a key and head."""
    key = tl.program_id(0).to(tl.int64)
    h = tl.program_id(1).to(tl.int64)
    d = tl.arange(0, WIDE)
    q = tl.load(q_ptr + h * q0 + d * q1, mask=d < D, other=0.0).to(tl.float32)
    k = tl.load(k_ptr + key * k0 + h * k1 + d * k2, mask=d < D, other=0.0).to(tl.float32)
    tl.store(s_ptr + key * H + h, tl.sum(q * k) * scale)


@triton.jit
def stats_kernel(s_ptr, m_ptr, l_ptr, H, L, T):
    """m and l of one part and head, one score after the other."""
    part = tl.program_id(0)
    h = tl.program_id(1).to(tl.int64)
    first = part * T
    last = tl.minimum(first + T, L)
    m = tl.full((), float("-inf"), tl.float32)
    for key in range(first, last):
        m = tl.maximum(m, tl.load(s_ptr + key.to(tl.int64) * H + h))
    l = tl.zeros((), tl.float32)
    for key in range(first, last):
        l += tl.exp(tl.load(s_ptr + key.to(tl.int64) * H + h) - m)
    tl.store(m_ptr + part * H + h, m)
    tl.store(l_ptr + part * H + h, l)


@triton.jit
def output_kernel(s_ptr, v_ptr, m_ptr, l_ptr, o_ptr, H, L, T, D, v0, v1, v2, WIDE: tl.constexpr):
    part = tl.program_id(0)
    h = tl.program_id(1).to(tl.int64)
    d = tl.arange(0, WIDE)
    m = tl.load(m_ptr + part * H + h)
    l = tl.load(l_ptr + part * H + h)
    o = tl.zeros((WIDE,), tl.float32)
    for key in range(part * T, tl.minimum(part * T + T, L)):
        p = tl.exp(tl.load(s_ptr + key.to(tl.int64) * H + h) - m) / l
        o += p * tl.load(v_ptr + key.to(tl.int64) * v0 + h * v1 + d * v2, mask=d < D, other=0.0).to(tl.float32)
    tl.store(o_ptr + (part * H + h).to(tl.int64) * D + d, o, mask=d < D)


def partial_attention(q, k, v, num_splits, scale=None):
    H, D = q.shape
    L = len(k)
    if scale is None:
        scale = D**-0.5
    wide = triton.next_power_of_2(D)
    m, l, s = (torch.empty(n, H, device=q.device) for n in (num_splits, num_splits, L))
    o = torch.empty(num_splits, H, D, device=q.device)
    if L:
        score_kernel[(L, H)](q, k, s, H, D, scale, *q.stride(), *k.stride(), WIDE=wide)
    T = triton.cdiv(L, num_splits)
    stats_kernel[(num_splits, H)](s, m, l, H, L, T)
    output_kernel[(num_splits, H)](s, v, m, l, o, H, L, T, D, *v.stride(), WIDE=wide)
    return m, l, o


@triton.jit
def pair_kernel(
    ma_ptr, la_ptr, oa_ptr, mb_ptr, lb_ptr, ob_ptr, m_ptr, l_ptr, o_ptr,
    D, ma0, la0, oa0, oa1, mb0, lb0, ob0, ob1,
    WIDE: tl.constexpr,
):  # fmt: skip
    h = tl.program_id(0).to(tl.int64)
    d = tl.arange(0, WIDE)
    ma = tl.load(ma_ptr + h * ma0)
    mb = tl.load(mb_ptr + h * mb0)
    la = tl.load(la_ptr + h * la0)
    lb = tl.load(lb_ptr + h * lb0)
    # The part with the larger max keeps its l; only the other one is scaled.
    gap = tl.where(ma == mb, 0.0, ma - mb)
    wa = tl.where(ma == float("-inf"), 0.0, la * tl.exp(tl.minimum(gap, 0.0)))
    wb = tl.where(mb == float("-inf"), 0.0, lb * tl.exp(tl.minimum(-gap, 0.0)))
    l = wa + wb
    pa = wa / tl.where(l == 0.0, 1.0, l)
    pb = wb / tl.where(l == 0.0, 1.0, l)
    o = tl.zeros((WIDE,), tl.float32)
    if pa > 0.0:
        o += pa * tl.load(oa_ptr + h * oa0 + d * oa1, mask=d < D, other=0.0).to(tl.float32)
    if pb > 0.0:
        o += pb * tl.load(ob_ptr + h * ob0 + d * ob1, mask=d < D, other=0.0).to(tl.float32)
    tl.store(m_ptr + h, tl.maximum(ma, mb))
    tl.store(l_ptr + h, l)
    tl.store(o_ptr + h * D + d, o.to(o_ptr.dtype.element_ty), mask=d < D)


def merge_pair(m_a, l_a, o_a, m_b, l_b, o_b):
    H, D = o_a.shape
    m, l = torch.empty(H, device=o_a.device), torch.empty(H, device=o_a.device)
    o = o_a.new_empty(H, D)
    strides = [s for t in (m_a, l_a, o_a, m_b, l_b, o_b) for s in t.stride()]
    pair_kernel[(H,)](m_a, l_a, o_a, m_b, l_b, o_b, m, l, o, D, *strides, WIDE=triton.next_power_of_2(D))
    return m, l, o


@triton.jit
def all_kernel(m_ptr, l_ptr, o_ptr, out_ptr, N, D, m0, m1, l0, l1, o0, o1, o2, PARTS: tl.constexpr, WIDE: tl.constexpr):
    h = tl.program_id(0).to(tl.int64)
    n = tl.arange(0, PARTS).to(tl.int64)
    d = tl.program_id(1) * WIDE + tl.arange(0, WIDE)
    m = tl.load(m_ptr + n * m0 + h * m1, mask=n < N, other=float("-inf"))
    l = tl.load(l_ptr + n * l0 + h * l1, mask=n < N, other=0.0)
    top = tl.max(m)
    w = tl.where(m == float("-inf"), 0.0, tl.exp(m - top) * l)
    total = tl.sum(w)
    w = w / tl.where(total == 0.0, 1.0, total)
    needed = (w > 0.0)[:, None] & (d < D)[None, :]
    o = tl.load(o_ptr + n[:, None] * o0 + h * o1 + d[None, :] * o2, mask=needed, other=0.0)
    tl.store(out_ptr + h * D + d, tl.sum(w[:, None] * o, 0).to(out_ptr.dtype.element_ty), mask=d < D)


def merge_mlo(m, l, o):
    N, H, D = o.shape
    out = o.new_empty(H, D)
    grid = (H, triton.cdiv(D, 32))
    parts = max(2, triton.next_power_of_2(N))
    all_kernel[grid](m, l, o, out, N, D, *m.stride(), *l.stride(), *o.stride(), PARTS=parts, WIDE=32)
    return out
