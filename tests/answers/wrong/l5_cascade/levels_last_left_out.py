"""The last level is left out.

exercise: multi_level_cascade
level: value
diagnosis: levels_one_left_out
"""

import torch
import triton
import triton.language as tl

LOG2E = 1.4426950408889634


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
    for level in levels[:-1]:
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
