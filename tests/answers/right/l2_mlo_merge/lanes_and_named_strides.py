"""Every lane its own m, l and o until the end, max() of scalars, sixteen equal rows of weights for tl.dot."""

import math

import torch
import triton
import triton.language as tl


@triton.jit
def lanes(q, kk, v, m_ptr, l_ptr, o_ptr, L, T, scale, k0, k1, k2, v0, v1, v2, H: tl.constexpr, D: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr):
    h, n = tl.program_id(0), tl.program_id(1)
    d = tl.arange(0, BD)
    x = tl.load(q + h * D + d, mask=d < D, other=0.0).to(tl.float32)
    lo = tl.minimum(n * T, L)
    hi = tl.minimum((n + 1) * T, L)
    m = tl.full([BN], float("-inf"), tl.float32)
    l = tl.zeros([BN], tl.float32)
    acc = tl.zeros([BN, BD], tl.float32)
    for j in range(lo, hi, BN):
        r = (j + tl.arange(0, BN)).to(tl.int64)
        ok = r < hi
        y = tl.load(kk + r[:, None] * k0 + h.to(tl.int64) * k1 + d[None, :].to(tl.int64) * k2, mask=ok[:, None] & (d < D)[None, :], other=0.0).to(tl.float32)
        z = tl.load(v + r[:, None] * v0 + h.to(tl.int64) * v1 + d[None, :].to(tl.int64) * v2, mask=ok[:, None] & (d < D)[None, :], other=0.0).to(tl.float32)
        s = tl.where(ok, tl.sum(y * x[None, :], axis=1) * scale, float("-inf"))
        new = tl.maximum(m, s)
        ref = tl.where(new == float("-inf"), 0.0, new)
        a, p = tl.exp(m - ref), tl.exp(s - ref)
        l = l * a + p
        acc = acc * a[:, None] + p[:, None] * z
        m = new
    top = tl.max(m, 0)
    ref = tl.where(top == float("-inf"), 0.0, top)
    w = tl.exp(m - ref)
    total = tl.sum(w * l, 0)
    out = tl.sum(acc * w[:, None], 0) / tl.where(total > 0, total, 1.0)
    at = n.to(tl.int64) * H + h
    tl.store(m_ptr + at, top)
    tl.store(l_ptr + at, total)
    tl.store(o_ptr + at * D + d, out, mask=d < D)


def partial_attention(q, k_, v, num_splits, scale=None):
    H, D = q.shape
    kw = dict(dtype=torch.float32, device=q.device)
    m, l, o = torch.empty(num_splits, H, **kw), torch.empty(num_splits, H, **kw), torch.empty(num_splits, H, D, **kw)
    if scale is None:
        scale = 1.0 / math.sqrt(D)
    if H:
        lanes[H, num_splits](q.contiguous(), k_, v, m, l, o, k_.size(0), -(-k_.size(0) // num_splits), scale, *k_.stride(), *v.stride(), H=H, D=D, BN=8, BD=triton.next_power_of_2(D))
    return m, l, o


@triton.jit
def pair(m_a, l_a, o_a, m_b, l_b, o_b, m, l, o, sa, sb, sc, sd, oah, oad, obh, obd, D: tl.constexpr, C: tl.constexpr):
    h = tl.program_id(0).to(tl.int64)
    d = tl.arange(0, C).to(tl.int64)
    ma, mb = tl.load(m_a + h * sa), tl.load(m_b + h * sc)
    la, lb = tl.load(l_a + h * sb), tl.load(l_b + h * sd)
    top = max(ma, mb)
    base = tl.where(top == float("-inf"), 0.0, top)
    wa = tl.exp(ma - base) * la
    wb = tl.exp(mb - base) * lb
    den = wa + wb
    x = tl.load(o_a + h * oah + d * oad, mask=(d < D) & (wa != 0), other=0).to(tl.float32)
    y = tl.load(o_b + h * obh + d * obd, mask=(d < D) & (wb != 0), other=0).to(tl.float32)
    tl.store(m + h, top)
    tl.store(l + h, den)
    tl.store(o + h * D + d, (x * wa + y * wb) / tl.where(den == 0, 1.0, den), mask=d < D)


def merge_pair(m_a, l_a, o_a, m_b, l_b, o_b):
    H, D = o_a.shape
    m = torch.empty(H, dtype=torch.float32, device=o_a.device)
    l = torch.empty_like(m)
    o = torch.empty((H, D), dtype=o_a.dtype, device=o_a.device)
    if H == 0:
        return m, l, o
    pair[(H,)](m_a, l_a, o_a, m_b, l_b, o_b, m, l, o, m_a.stride(0), l_a.stride(0), m_b.stride(0), l_b.stride(0), *o_a.stride(), *o_b.stride(), D, triton.next_power_of_2(D))
    return m, l, o


@triton.jit
def sixteen_rows(m_ptr, l_ptr, o_ptr, out, N, H, m0, m1, l0, l1, o0, o1, o2, D: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr):
    h = tl.program_id(0).to(tl.int64)
    n = tl.arange(0, BN).to(tl.int64)
    d = (tl.program_id(1) * BD + tl.arange(0, BD)).to(tl.int64)
    top = float("-inf")
    for s in range(0, N, BN):
        top = tl.maximum(top, tl.max(tl.load(m_ptr + (s + n) * m0 + h * m1, mask=s + n < N, other=float("-inf"))))
    top = tl.where(top == float("-inf"), 0.0, top)
    num = tl.zeros((16, BD), tl.float32)
    den = 0.0
    for s in range(0, N, BN):
        ok = s + n < N
        mm = tl.load(m_ptr + (s + n) * m0 + h * m1, mask=ok, other=float("-inf"))
        ll = tl.load(l_ptr + (s + n) * l0 + h * l1, mask=ok, other=0.0)
        w = tl.exp(mm - top) * ll
        den += tl.sum(w)
        x = tl.load(o_ptr + (s + n)[:, None] * o0 + h * o1 + d[None, :] * o2, mask=(w > 0)[:, None] & (d < D)[None, :], other=0.0)
        num = tl.dot(tl.broadcast_to(w[None, :], (16, BN)), x.to(tl.float32), num, input_precision="ieee")
    first = tl.sum(tl.where(tl.arange(0, 16)[:, None] == 0, num, 0.0), 0)
    tl.store(out + h * D + d, first / tl.where(den > 0, den, 1.0), mask=d < D)


def merge_mlo(m, l, o):
    N, H, D = o.shape
    out = torch.empty((H, D), dtype=o.dtype, device=o.device)
    if H:
        BD = max(16, min(64, triton.next_power_of_2(D)))
        sixteen_rows[(H, triton.cdiv(D, BD))](m, l, o, out, N, H, *m.stride(), *l.stride(), *o.stride(), D, 16, BD)
    return out
