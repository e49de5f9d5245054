"""Everything transposed (keys by rows), natural logs inside and base 2 at the end, strides instead of copies."""

import torch
import triton
import triton.language as tl


@triton.jit
def fold(qt, k, vt, ok, m, l, ot):
    """qt[D, M], k[N, D], vt[D, N], ok[N, M] into m[M], l[M], ot[D, M]."""
    x = tl.dot(k, qt, input_precision="ieee")
    x = tl.where(ok, x, float("-inf"))
    top = tl.maximum(m, tl.max(x, 0))
    base = tl.where(top > float("-inf"), top, 0.0)
    e = tl.exp(x - base[None, :])
    fade = tl.exp(m - base)
    ot = ot * fade[None, :] + tl.dot(vt, e.to(vt.dtype), input_precision="ieee")
    return top, l * fade + tl.sum(e, 0), ot


@triton.jit
def finish(m, l, ot):
    none = l == 0.0
    lse = tl.where(none, float("-inf"), m + tl.log(tl.where(none, 1.0, l)))
    return tl.where(none, 0.0, 1.0 / tl.where(none, 1.0, l))[None, :] * ot, lse * 1.4426950408889634


@triton.jit
def prefix_kernel(
    q, k, v, o, s, scale, rows, P, Hq, D, q0, q1, q2, k0, k1, k2, v0, v1, v2,
    G: tl.constexpr, M: tl.constexpr, N: tl.constexpr, DD: tl.constexpr,
):  # fmt: skip
    r = tl.program_id(1) * M + tl.arange(0, M)
    kh = tl.program_id(0).to(tl.int64)
    b = (r // G).to(tl.int64)
    h = kh * G + r % G
    c = tl.arange(0, DD)
    inside = (c < D)[:, None] & (r < rows)[None, :]
    qt = tl.load(q + (b * q0 + h * q1)[None, :] + c[:, None] * q2, mask=inside, other=0.0)
    qt = (qt.to(tl.float32) * scale).to(qt.dtype) if qt.dtype == tl.float32 else qt
    m = tl.full((M,), float("-inf"), tl.float32)
    l = tl.zeros((M,), tl.float32)
    ot = tl.zeros((DD, M), tl.float32)
    for n0 in range(0, P, N):
        n = (n0 + tl.arange(0, N)).to(tl.int64)
        there = (n < P)[:, None] & (c < D)[None, :]
        kk = tl.load(k + (n * k0 + kh * k1)[:, None] + c[None, :] * k2, mask=there, other=0.0)
        vt = tl.load(v + (n * v0 + kh * v1)[None, :] + c[:, None] * v2, mask=tl.trans(there), other=0.0)
        m, l, ot = fold_scaled(qt, kk, vt, (n < P)[:, None] & (r < rows)[None, :], m, l, ot, scale)
    ot, lse = finish(m, l, ot)
    tl.store(o + ((b * Hq + h) * D)[None, :] + c[:, None], ot, mask=inside)
    tl.store(s + b * Hq + h, lse, mask=r < rows)


@triton.jit
def fold_scaled(qt, k, vt, ok, m, l, ot, scale):
    """As `fold`, with the scale on the scores where q is in half precision."""
    if qt.dtype == tl.float32:
        m, l, ot = fold(qt, k, vt, ok, m, l, ot)
    else:
        x = tl.dot(k, qt) * scale
        x = tl.where(ok, x, float("-inf"))
        top = tl.maximum(m, tl.max(x, 0))
        base = tl.where(top > float("-inf"), top, 0.0)
        e = tl.exp(x - base[None, :])
        fade = tl.exp(m - base)
        ot = ot * fade[None, :] + tl.dot(vt, e.to(vt.dtype))
        l = l * fade + tl.sum(e, 0)
        m = top
    return m, l, ot


@triton.jit
def pages_kernel(
    q, kv, group, indptr, indices, last, o, s, scale, groups, Hq, D, size, q0, q1, q2, c0, c1, c2, c3, c4,
    GROUPED: tl.constexpr, G: tl.constexpr, M: tl.constexpr, N: tl.constexpr, DD: tl.constexpr,
):  # fmt: skip
    kh = tl.program_id(0).to(tl.int64)
    b = tl.program_id(1).to(tl.int64)
    g = tl.arange(0, M)
    c = tl.arange(0, DD)
    mine = -1
    if GROUPED:
        for i in range(0, groups):
            if (tl.load(group + i) <= b) & (b < tl.load(group + i + 1)):
                mine = i
    else:
        mine = b.to(tl.int32)
    inside = (c < D)[:, None] & (g < G)[None, :]
    h = kh * G + g
    qt = tl.load(q + b * q0 + (h * q1)[None, :] + c[:, None] * q2, mask=inside, other=0.0)
    qt = (qt.to(tl.float32) * scale).to(qt.dtype) if qt.dtype == tl.float32 else qt
    m = tl.full((M,), float("-inf"), tl.float32)
    l = tl.zeros((M,), tl.float32)
    ot = tl.zeros((DD, M), tl.float32)
    if mine >= 0:
        lo = tl.load(indptr + mine)
        hi = tl.load(indptr + mine + 1)
        for j in range(lo, hi):
            page = tl.load(indices + j).to(tl.int64)
            used = size
            if j == hi - 1:
                used = tl.load(last + mine).to(tl.int32)
            for n0 in range(0, used, N):
                n = (n0 + tl.arange(0, N)).to(tl.int64)
                there = (n < used)[:, None] & (c < D)[None, :]
                at = kv + page * c0 + kh * c3
                kk = tl.load(at + n[:, None] * c2 + c[None, :] * c4, mask=there, other=0.0)
                vt = tl.load(at + c1 + n[None, :] * c2 + c[:, None] * c4, mask=tl.trans(there), other=0.0)
                m, l, ot = fold_scaled(qt, kk, vt, (n < used)[:, None] & (g < G)[None, :], m, l, ot, scale)
    ot, lse = finish(m, l, ot)
    tl.store(o + ((b * Hq + h) * D)[None, :] + c[:, None], ot, mask=inside)
    tl.store(s + b * Hq + h, lse, mask=g < G)


@triton.jit
def pair_kernel(o_a, s_a, o_b, s_b, o, s, rows, D, R: tl.constexpr, DD: tl.constexpr):
    r = tl.program_id(0).to(tl.int64) * R + tl.arange(0, R)
    c = tl.arange(0, DD)
    a = tl.load(s_a + r, mask=r < rows, other=float("-inf"))
    b = tl.load(s_b + r, mask=r < rows, other=float("-inf"))
    top = tl.maximum(a, b)
    base = tl.where(top > float("-inf"), top, 0.0)
    a = tl.exp2(a - base)
    b = tl.exp2(b - base)
    both = a + b
    safe = tl.where(both > 0, both, 1.0)
    at = r[:, None] * D + c[None, :]
    ok = (r < rows)[:, None] & (c < D)[None, :]
    x = tl.load(o_a + at, mask=ok, other=0.0) * (a / safe)[:, None]
    y = tl.load(o_b + at, mask=ok, other=0.0) * (b / safe)[:, None]
    tl.store(o + at, (x + y).to(o.dtype.element_ty), mask=ok)
    tl.store(s + r, tl.where(both > 0, base + tl.log2(safe), float("-inf")), mask=r < rows)


def pair(left, right, dtype):
    B, H, D = left[0].shape
    o, s = left[0].new_empty((B, H, D), dtype=dtype), left[1].new_empty((B, H))
    if B:
        pair_kernel[(triton.cdiv(B * H, 4),)](*left, *right, o, s, B * H, D, R=4, DD=triton.next_power_of_2(D))
    return o, s


def power(n):
    return max(16, triton.next_power_of_2(n))


def attend_shared(q, k, v, scale=None):
    B, Hq, D = q.shape
    P, Hkv, _ = k.shape
    G = Hq // Hkv
    o = torch.empty((B, Hq, D), dtype=torch.float32, device=q.device)
    s = torch.empty((B, Hq), dtype=torch.float32, device=q.device)
    M = min(64, power(B * G))
    if B:
        prefix_kernel[(Hkv, triton.cdiv(B * G, M))](
            q, k, v, o, s, D**-0.5 if scale is None else scale, B * G, P, Hq, D,
            *q.stride(), *k.stride(), *v.stride(), G=G, M=M, N=32, DD=power(D),
        )  # fmt: skip
    return o, s


def attend_pages(q, kv_cache, group, indptr, indices, last, scale):
    B, Hq, D = q.shape
    _, _, size, Hkv, _ = kv_cache.shape
    G = Hq // Hkv
    o = torch.empty((B, Hq, D), dtype=torch.float32, device=q.device)
    s = torch.empty((B, Hq), dtype=torch.float32, device=q.device)
    if B:
        pages_kernel[(Hkv, B)](
            q, kv_cache, group, indptr.contiguous(), indices.contiguous(), last.contiguous(), o, s,
            D**-0.5 if scale is None else scale, indptr.shape[0] - 1, Hq, D, size, *q.stride(), *kv_cache.stride(),
            GROUPED=group is not None, G=G, M=power(G), N=16, DD=power(D),
        )  # fmt: skip
    return o, s


def attend_paged(q, kv_cache, indptr, indices, last_page_len, scale=None):
    return attend_pages(q, kv_cache, None, indptr, indices, last_page_len, scale)


def cascade(q, k_shared, v_shared, kv_cache, indptr, indices, last_page_len, scale=None):
    own = attend_paged(q, kv_cache, indptr, indices, last_page_len, scale)
    return pair(attend_shared(q, k_shared, v_shared, scale), own, q.dtype)


def multi_level_cascade(q, kv_cache, levels, scale=None):
    states = [attend_pages(q, kv_cache, group.contiguous(), *rest, scale) for group, *rest in levels]
    empty = torch.zeros(q.shape, device=q.device), torch.full(q.shape[:2], float("-inf"), device=q.device)
    states = states or [empty]
    while len(states) > 1:
        states = [pair(states[0], states[1], torch.float32), *states[2:]]
    o, s = states[0]
    return o.to(q.dtype), s
