"""Keys read twice and values once; page by page; the next part goes on from the state that the last one left."""

import torch
import triton
import triton.language as tl

LOG2E = 1.4426950408889634


@triton.jit
def scores_of(x, k, key, P, scale, kvh, k0, k1, k2, d, D: tl.constexpr):
    kt = tl.load(
        k + key[None, :] * k0 + kvh * k1 + d[:, None] * k2, mask=(key < P)[None, :] & (d < D)[:, None], other=0.0
    )
    sc = tl.dot(x, kt, input_precision="ieee")
    return tl.where((key < P)[None, :], sc * scale, float("-inf"))


@triton.jit
def a_tp(
    q,
    k,
    v,
    vo,
    so,
    scale,
    B,
    P,
    Hq,
    q0,
    q1,
    q2,
    k0,
    k1,
    k2,
    v0,
    v1,
    v2,
    G: tl.constexpr,
    D: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BD: tl.constexpr,
):
    kvh = tl.program_id(0).to(tl.int64)
    r = tl.program_id(1) * BM + tl.arange(0, BM)
    d = tl.arange(0, BD).to(tl.int64)
    req = (r // G).to(tl.int64)
    head = kvh * G + r % G
    ok = (r < B * G)[:, None] & (d < D)[None, :]
    x = tl.load(q + (req * q0 + head * q1)[:, None] + d[None, :] * q2, mask=ok, other=0.0)
    m = tl.full([BM], float("-inf"), tl.float32)
    l = tl.zeros([BM], tl.float32)
    for p in range(0, P, BN):
        key = (p + tl.arange(0, BN)).to(tl.int64)
        sc = scores_of(x, k, key, P, scale, kvh, k0, k1, k2, d, D)
        new = tl.maximum(m, tl.max(sc, 1))
        l = l * tl.exp2(m - new) + tl.sum(tl.exp2(sc - new[:, None]), 1)
        m = new
    s = tl.where(l > 0, m + tl.log2(tl.where(l > 0, l, 1.0)), float("-inf"))
    acc = tl.zeros([BM, BD], tl.float32)
    for p in range(0, P, BN):
        key = (p + tl.arange(0, BN)).to(tl.int64)
        sc = scores_of(x, k, key, P, scale, kvh, k0, k1, k2, d, D)
        w = tl.exp2(sc - s[:, None])
        vt = tl.load(
            v + key[:, None] * v0 + kvh * v1 + d[None, :] * v2, mask=(key < P)[:, None] & (d < D)[None, :], other=0.0
        )
        acc = tl.dot(w.to(vt.dtype), vt, acc, input_precision="ieee")
    tl.store(vo + (req * Hq + head)[:, None] * D + d[None, :], acc, mask=ok)
    tl.store(so + req * Hq + head, s, mask=r < B * G)


def attend_shared(q, k, v, scale=None):
    B, Hq, D = q.shape
    P, Hkv, _ = k.shape
    scale = (D**-0.5 if scale is None else scale) * LOG2E
    G = Hq // Hkv
    vo = torch.empty((B, Hq, D), dtype=torch.float32, device=q.device)
    so = torch.empty((B, Hq), dtype=torch.float32, device=q.device)
    BM = 64 if D <= 128 else 16
    if B:
        a_tp[(Hkv, triton.cdiv(B * G, BM))](
            q,
            k,
            v,
            vo,
            so,
            scale,
            B,
            P,
            Hq,
            *q.stride(),
            *k.stride(),
            *v.stride(),
            G,
            D,
            BM,
            16,
            max(16, triton.next_power_of_2(D)),
        )
    return vo, so


@triton.jit
def a_pg(
    q,
    kv,
    indptr,
    indices,
    last,
    vo,
    so,
    scale,
    Hq,
    PS,
    q0,
    q1,
    q2,
    c0,
    c1,
    c2,
    c3,
    c4,
    G: tl.constexpr,
    D: tl.constexpr,
    BP: tl.constexpr,
    BD: tl.constexpr,
):
    i = tl.program_id(0).to(tl.int64)
    h = tl.program_id(1)
    kvh = (h // G).to(tl.int64)
    d = tl.arange(0, BD).to(tl.int64)
    t = tl.arange(0, BP)
    x = tl.load(q + i * q0 + h.to(tl.int64) * q1 + d * q2, mask=d < D, other=0.0).to(tl.float32)
    first = tl.load(indptr + i)
    end = tl.load(indptr + i + 1)
    m = tl.full([], float("-inf"), tl.float32)
    l = tl.full([], 0.0, tl.float32)
    acc = tl.zeros([BD], tl.float32)
    for p in range(first, end):
        page = tl.load(indices + p).to(tl.int64)
        n = PS
        if p == end - 1:
            n = tl.load(last + i).to(tl.int32)
        live = t < n
        base = kv + page * c0 + t.to(tl.int64)[:, None] * c2 + kvh * c3 + d[None, :] * c4
        ok = live[:, None] & (d < D)[None, :]
        kt = tl.load(base, mask=ok, other=0.0).to(tl.float32)
        vt = tl.load(base + c1, mask=ok, other=0.0).to(tl.float32)
        sc = tl.sum(kt * x[None, :], 1) * scale
        sc = tl.where(live, sc, float("-inf"))
        new = tl.maximum(m, tl.max(sc, 0))
        w = tl.exp(sc - new)
        c = tl.exp(m - new)
        l = l * c + tl.sum(w, 0)
        acc = acc * c + tl.sum(vt * w[:, None], 0)
        m = new
    o = i * Hq + h
    safe = tl.where(l > 0, l, 1.0)
    tl.store(vo + o * D + d, acc / safe, mask=d < D)
    tl.store(so + o, (m + tl.log(safe)) * 1.4426950408889634)


def attend_paged(q, kv_cache, indptr, indices, last_page_len, scale=None):
    B, Hq, D = q.shape
    PS, Hkv = kv_cache.shape[2:4]
    vo = torch.empty((B, Hq, D), dtype=torch.float32, device=q.device)
    so = torch.empty((B, Hq), dtype=torch.float32, device=q.device)
    if B:
        a_pg[(B, Hq)](
            q,
            kv_cache,
            indptr.contiguous(),
            indices.contiguous(),
            last_page_len.contiguous(),
            vo,
            so,
            D**-0.5 if scale is None else scale,
            Hq,
            PS,
            *q.stride(),
            *kv_cache.stride(),
            Hq // Hkv,
            D,
            triton.next_power_of_2(PS),
            triton.next_power_of_2(D),
            num_warps=1,
        )
    return vo, so


@triton.jit
def k_cont(
    q,
    kv,
    indptr,
    indices,
    last,
    v0_,
    s0_,
    vo,
    so,
    scale,
    Hq,
    PS,
    q0,
    q1,
    q2,
    c0,
    c1,
    c2,
    c3,
    c4,
    G: tl.constexpr,
    D: tl.constexpr,
    BP: tl.constexpr,
    BD: tl.constexpr,
):
    """Starts from the prefix's state: m = s, l = 1, acc = v."""
    i = tl.program_id(0).to(tl.int64)
    h = tl.program_id(1).to(tl.int64)
    kvh = h // G
    d = tl.arange(0, BD).to(tl.int64)
    t = tl.arange(0, BP).to(tl.int64)
    x = tl.load(q + i * q0 + h * q1 + d * q2, mask=d < D, other=0.0).to(tl.float32)
    o = i * Hq + h
    m = tl.load(s0_ + o)
    l = tl.where(m == float("-inf"), 0.0, 1.0)
    acc = tl.load(v0_ + o * D + d, mask=d < D, other=0.0)
    first = tl.load(indptr + i).to(tl.int64)
    end = tl.load(indptr + i + 1).to(tl.int64)
    for p in range(first, end):
        page = tl.load(indices + p).to(tl.int64)
        n = tl.where(p == end - 1, tl.load(last + i), PS)
        live = t < n
        base = kv + page * c0 + t[:, None] * c2 + kvh * c3 + d[None, :] * c4
        ok = live[:, None] & (d < D)[None, :]
        sc = tl.sum(tl.load(base, mask=ok, other=0.0).to(tl.float32) * x[None, :], 1) * scale
        sc = tl.where(live, sc, float("-inf"))
        new = tl.maximum(m, tl.max(sc, 0))
        w = tl.exp2(sc - new)
        c = tl.exp2(m - new)
        l = l * c + tl.sum(w, 0)
        acc = acc * c + tl.sum(tl.load(base + c1, mask=ok, other=0.0).to(tl.float32) * w[:, None], 0)
        m = new
    safe = tl.where(l > 0, l, 1.0)
    tl.store(vo + o * D + d, (acc / safe).to(vo.dtype.element_ty), mask=d < D)
    tl.store(so + o, m + tl.log2(safe))


def cascade(q, k_shared, v_shared, kv_cache, indptr, indices, last_page_len, scale=None):
    B, Hq, D = q.shape
    PS, Hkv = kv_cache.shape[2:4]
    v0, s0 = attend_shared(q, k_shared, v_shared, scale)
    v = torch.empty_like(q, memory_format=torch.contiguous_format)
    s = torch.empty_like(s0)
    if B:
        k_cont[(B, Hq)](
            q,
            kv_cache,
            indptr.contiguous(),
            indices.contiguous(),
            last_page_len.contiguous(),
            v0,
            s0,
            v,
            s,
            (D**-0.5 if scale is None else scale) * LOG2E,
            Hq,
            PS,
            *q.stride(),
            *kv_cache.stride(),
            Hq // Hkv,
            D,
            triton.next_power_of_2(PS),
            triton.next_power_of_2(D),
        )
    return v, s


@triton.jit
def k_go(
    q,
    kv,
    gptr,
    indptr,
    indices,
    last,
    v,
    s,
    scale,
    groups,
    Hq,
    PS,
    q0,
    q1,
    q2,
    c0,
    c1,
    c2,
    c3,
    c4,
    G: tl.constexpr,
    D: tl.constexpr,
    BP: tl.constexpr,
    BD: tl.constexpr,
):
    """Group g, KV head h: each request's rows go on from the state in v, s, which only this program touches."""
    g = tl.program_id(0)
    hk = tl.program_id(1).to(tl.int64)
    d = tl.arange(0, BD).to(tl.int64)
    t = tl.arange(0, BP).to(tl.int64)
    r0 = tl.load(gptr + g).to(tl.int64)
    r1 = tl.load(gptr + g + 1).to(tl.int64)
    first = tl.load(indptr + g).to(tl.int64)
    end = tl.load(indptr + g + 1).to(tl.int64)
    row = r0 * G
    while row < r1 * G:
        i = row // G
        h = hk * G + row % G
        o = i * Hq + h
        x = tl.load(q + i * q0 + h * q1 + d * q2, mask=d < D, other=0.0).to(tl.float32)
        m = tl.load(s + o)
        l = tl.where(m == float("-inf"), 0.0, 1.0)
        acc = tl.load(v + o * D + d, mask=d < D, other=0.0)
        for p in range(first, end):
            n = tl.where(p == end - 1, tl.load(last + g), PS)
            live = t < n
            base = kv + tl.load(indices + p).to(tl.int64) * c0 + t[:, None] * c2 + hk * c3 + d[None, :] * c4
            ok = live[:, None] & (d < D)[None, :]
            sc = tl.sum(tl.load(base, mask=ok, other=0.0).to(tl.float32) * x[None, :], 1) * scale
            sc = tl.where(live, sc, float("-inf"))
            new = tl.maximum(m, tl.max(sc, 0))
            w = tl.exp2(sc - new)
            c = tl.exp2(m - new)
            l = l * c + tl.sum(w, 0)
            acc = acc * c + tl.sum(tl.load(base + c1, mask=ok, other=0.0).to(tl.float32) * w[:, None], 0)
            m = new
        safe = tl.where(l > 0, l, 1.0)
        tl.store(v + o * D + d, acc / safe, mask=d < D)
        tl.store(s + o, m + tl.log2(safe))
        row += 1


@triton.jit
def k_cast(x, y, n, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(y + at, tl.load(x + at, mask=at < n, other=0.0).to(y.dtype.element_ty), mask=at < n)


def multi_level_cascade(q, kv_cache, levels, scale=None):
    B, Hq, D = q.shape
    PS, Hkv = kv_cache.shape[2:4]
    scale = (D**-0.5 if scale is None else scale) * LOG2E
    v = torch.zeros((B, Hq, D), dtype=torch.float32, device=q.device)
    s = torch.full((B, Hq), float("-inf"), dtype=torch.float32, device=q.device)
    for level in levels:
        gptr, indptr, indices, last = (x.contiguous() for x in level)
        if B and gptr.shape[0] > 1:
            k_go[(gptr.shape[0] - 1, Hkv)](
                q,
                kv_cache,
                gptr,
                indptr,
                indices,
                last,
                v,
                s,
                scale,
                gptr.shape[0] - 1,
                Hq,
                PS,
                *q.stride(),
                *kv_cache.stride(),
                Hq // Hkv,
                D,
                triton.next_power_of_2(PS),
                triton.next_power_of_2(D),
            )
    out = torch.empty((B, Hq, D), dtype=q.dtype, device=q.device)
    if B:
        k_cast[(triton.cdiv(v.numel(), 1024),)](v, out, v.numel(), 1024)
    return out, s
