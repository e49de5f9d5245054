"""A page has at most 256 slots.

exercise: attend_paged
level: value
diagnosis: wrong_value
"""

import torch
import triton
import triton.language as tl

LOG2E = 1.4426950408889634


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
        live = t < tl.minimum(n, 256)
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
