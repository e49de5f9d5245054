"""The length of the last page is looked up by the request's number; past the last group it is a whole page.

exercise: multi_level_cascade
level: value
diagnosis: levels_last_len_by_request
twins: levels_last_len_by_request
"""

import torch
import triton
import triton.language as tl

LOG2E = 1.4426950408889634


@triton.jit
def k_join(va, sa, vb, sb, vo, so, rows, D: tl.constexpr, BR: tl.constexpr, BD: tl.constexpr):
    r = tl.program_id(0).to(tl.int64) * BR + tl.arange(0, BR)
    d = tl.arange(0, BD)
    ok = (r < rows)[:, None] & (d < D)[None, :]
    at = r[:, None] * D + d[None, :]
    a = tl.load(sa + r, mask=r < rows, other=float("-inf"))
    b = tl.load(sb + r, mask=r < rows, other=float("-inf"))
    m = tl.maximum(a, b)
    z = tl.where(m == float("-inf"), 0.0, m)
    wa = tl.exp2(a - z)
    wb = tl.exp2(b - z)
    t = tl.where(m == float("-inf"), 1.0, wa + wb)
    xa = tl.load(va + at, mask=ok, other=0.0).to(tl.float32)
    xb = tl.load(vb + at, mask=ok, other=0.0).to(tl.float32)
    tl.store(vo + at, ((xa * wa[:, None] + xb * wb[:, None]) / t[:, None]).to(vo.dtype.element_ty), mask=ok)
    tl.store(so + r, m + tl.log2(t), mask=r < rows)


def join(a, b, dtype):
    (va, sa), (vb, sb) = a, b
    B, H, D = va.shape
    v = torch.empty((B, H, D), dtype=dtype, device=va.device)
    s = torch.empty((B, H), dtype=torch.float32, device=va.device)
    if B:
        k_join[(triton.cdiv(B * H, 8),)](va, sa, vb, sb, v, s, B * H, D, 8, triton.next_power_of_2(D))
    return v, s


@triton.jit
def k_owner(gptr, own, groups):
    """own[r] = the group of request r; requests in none keep -1."""
    g = tl.program_id(0)
    b = tl.load(gptr + g)
    e = tl.load(gptr + g + 1)
    for r in range(b, e):
        tl.store(own + r, g)


@triton.jit
def k_level(
    q,
    kv,
    own,
    indptr,
    indices,
    last,
    vo,
    so,
    scale,
    Hq,
    PS,
    groups,
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
    h = tl.program_id(1).to(tl.int64)
    d = tl.arange(0, BD).to(tl.int64)
    t = tl.arange(0, BP).to(tl.int64)
    m = tl.full([], float("-inf"), tl.float32)
    l = tl.full([], 0.0, tl.float32)
    acc = tl.zeros([BD], tl.float32)
    g = tl.load(own + i)
    if g >= 0:
        x = tl.load(q + i * q0 + h * q1 + d * q2, mask=d < D, other=0.0).to(tl.float32)
        first = tl.load(indptr + g).to(tl.int64)
        end = tl.load(indptr + g + 1).to(tl.int64)
        for p in range(first, end):
            page = tl.load(indices + p).to(tl.int64)
            n = tl.where(p == end - 1, tl.load(last + i, mask=i < groups, other=PS), PS)
            live = t < n
            base = kv + page * c0 + t[:, None] * c2 + h // G * c3 + d[None, :] * c4
            ok = live[:, None] & (d < D)[None, :]
            sc = tl.sum(tl.load(base, mask=ok, other=0.0).to(tl.float32) * x[None, :], 1) * scale
            sc = tl.where(live, sc, float("-inf"))
            new = tl.maximum(m, tl.max(sc, 0))
            w = tl.exp2(sc - new)
            c = tl.exp2(m - new)
            l = l * c + tl.sum(w, 0)
            acc = acc * c + tl.sum(tl.load(base + c1, mask=ok, other=0.0).to(tl.float32) * w[:, None], 0)
            m = new
    o = i * Hq + h
    safe = tl.where(l > 0, l, 1.0)
    tl.store(vo + o * D + d, acc / safe, mask=d < D)
    tl.store(so + o, m + tl.log2(safe))


def level_state(q, kv_cache, level, scale):
    B, Hq, D = q.shape
    PS, Hkv = kv_cache.shape[2:4]
    gptr, indptr, indices, last = (x.contiguous() for x in level)
    v = torch.empty((B, Hq, D), dtype=torch.float32, device=q.device)
    s = torch.empty((B, Hq), dtype=torch.float32, device=q.device)
    own = torch.full((B,), -1, dtype=torch.int32, device=q.device)
    if gptr.shape[0] > 1:
        k_owner[(gptr.shape[0] - 1,)](gptr, own, gptr.shape[0] - 1)
    if B:
        k_level[(B, Hq)](
            q,
            kv_cache,
            own,
            indptr,
            indices,
            last,
            v,
            s,
            scale * LOG2E,
            Hq,
            PS,
            last.shape[0],
            *q.stride(),
            *kv_cache.stride(),
            Hq // Hkv,
            D,
            triton.next_power_of_2(PS),
            triton.next_power_of_2(D),
        )
    return v, s


def tree(q, kv_cache, levels, scale):
    if len(levels) == 1:
        return level_state(q, kv_cache, levels[0], scale)
    half = len(levels) // 2
    return join(tree(q, kv_cache, levels[:half], scale), tree(q, kv_cache, levels[half:], scale), torch.float32)


def multi_level_cascade(q, kv_cache, levels, scale=None):
    scale = q.shape[2] ** -0.5 if scale is None else scale
    if not levels:
        zero = torch.zeros(0, dtype=torch.int32, device=q.device)
        levels = [(torch.zeros(1, dtype=torch.int32, device=q.device), zero, zero, zero)]
    v, s = tree(q, kv_cache, levels, scale)
    return v.to(q.dtype), s
