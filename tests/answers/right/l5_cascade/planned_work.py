"""A plan made in Python from the page tables: a list of pieces of work, a program each, and runs of pieces merged."""

from dataclasses import dataclass, field

import torch
import triton
import triton.language as tl

CHUNK = 32


@dataclass
class Plan:
    """pieces: (first row of the request list, rows, first slot of the slot list, keys, place of its states)."""

    slots: list = field(default_factory=list)
    pieces: list = field(default_factory=list)
    runs: dict = field(default_factory=dict)

    def add(self, requests, slots):
        for first in range(0, len(slots), CHUNK):
            for request in requests:
                self.runs.setdefault(request, []).append(len(self.pieces))
                self.pieces.append((request, len(self.slots) + first, min(CHUNK, len(slots) - first)))
        self.slots += slots


def slots_of(page_size, indptr, indices, last, i):
    """Numbers page * page_size + place of the keys of group i."""
    pages = indices[indptr[i] : indptr[i + 1]]
    if not pages:
        return []
    whole = [page * page_size + n for page in pages[:-1] for n in range(page_size)]
    return whole + [pages[-1] * page_size + n for n in range(last[i])]


@triton.jit
def piece_kernel(
    q, k, v, slots, pieces, v_out, s_out, Hq, G, D, page_size, scale, q_by, k_by, v_by, W: tl.constexpr, B: tl.constexpr
):
    """grid (pieces, Hq). k, v: [pages, page_size, Hkv, D]."""
    at = tl.program_id(0)
    h = tl.program_id(1).to(tl.int64)
    request = tl.load(pieces + 3 * at)
    first = tl.load(pieces + 3 * at + 1)
    count = tl.load(pieces + 3 * at + 2)
    n = tl.arange(0, B)
    d = tl.arange(0, W)
    slot = tl.load(slots + first + n, mask=n < count, other=0)
    page, place = (slot // page_size).to(tl.int64), (slot % page_size).to(tl.int64)
    ok = (n < count)[:, None] & (d < D)[None, :]
    x = tl.load(q + request.to(tl.int64) * q_by[0] + h * q_by[1] + d * q_by[2], mask=d < D, other=0.0).to(tl.float32)
    kk = tl.load(
        k + (page * k_by[0] + place * k_by[1] + h // G * k_by[2])[:, None] + d[None, :] * k_by[3], mask=ok, other=0.0
    )
    vv = tl.load(
        v + (page * v_by[0] + place * v_by[1] + h // G * v_by[2])[:, None] + d[None, :] * v_by[3], mask=ok, other=0.0
    )
    e = tl.sum(kk.to(tl.float32) * x[None, :], axis=1) * scale
    e = tl.where(n < count, e, float("-inf"))
    m = tl.max(e, axis=0)
    p = tl.exp(e - m)
    l = tl.sum(p, axis=0)
    o = tl.sum(p[:, None] * vv.to(tl.float32), axis=0) / l
    state = at.to(tl.int64) * Hq + h
    tl.store(v_out + state * D + d, o, mask=d < D)
    tl.store(s_out + state, (m + tl.log(l)) * 1.4426950408889634)


@triton.jit
def runs_kernel(v, s, order, bounds, v_out, s_out, Hq, D, W: tl.constexpr):
    """grid (B, Hq): the states of the pieces order[bounds[i]] to order[bounds[i + 1] - 1] of a head."""
    i, h = tl.program_id(0), tl.program_id(1)
    d = tl.arange(0, W)
    m = tl.full([], float("-inf"), tl.float32)
    total = tl.zeros([], tl.float32)
    acc = tl.zeros([W], tl.float32)
    for j in range(tl.load(bounds + i), tl.load(bounds + i + 1)):
        state = tl.load(order + j).to(tl.int64) * Hq + h
        s_j = tl.load(s + state)
        new = tl.maximum(m, s_j)
        shift = tl.where(new == float("-inf"), 0.0, new)
        keep, w = tl.exp2(m - shift), tl.exp2(s_j - shift)
        acc = acc * keep + w * tl.load(v + state * D + d, mask=d < D, other=0.0)
        total = total * keep + w
        m = new
    total = tl.where(total == 0.0, 1.0, total)
    row = i.to(tl.int64) * Hq + h
    tl.store(v_out + row * D + d, (acc / total).to(v_out.dtype.element_ty), mask=d < D)
    tl.store(s_out + row, m + tl.log2(total))


def carry_out(plan, q, k, v, scale, dtype, more=None):
    """more: (v[n, Hq, D], s[n, Hq]) of n further pieces, request r's r-th."""
    B, Hq, D = q.shape
    out = (
        torch.empty((B, Hq, D), dtype=dtype, device=q.device),
        torch.empty((B, Hq), dtype=torch.float32, device=q.device),
    )
    if B == 0:
        return out
    scale = D**-0.5 if scale is None else scale
    n = len(plan.pieces)
    extra = 0 if more is None else B
    states = (
        torch.empty((n + extra, Hq, D), dtype=torch.float32, device=q.device),
        torch.empty((n + extra, Hq), device=q.device),
    )
    W = triton.next_power_of_2(D)
    if n:
        ints = dict(dtype=torch.int32, device=q.device)
        piece_kernel[(n, Hq)](
            q, k, v, torch.tensor(plan.slots, **ints), torch.tensor(plan.pieces, **ints), *states, Hq, Hq // k.shape[2], D,
            k.shape[1], scale, q.stride(), k.stride(), v.stride(), W=W, B=CHUNK,
        )  # fmt: skip
    if more is not None:
        for whole, part in zip(states, more):
            whole[n:] = part
    order, bounds = [], [0]
    for request in range(B):
        order += plan.runs.get(request, []) + ([n + request] if extra else [])
        bounds.append(len(order))
    order = torch.tensor(order, dtype=torch.int32, device=q.device)
    bounds = torch.tensor(bounds, dtype=torch.int32, device=q.device)
    runs_kernel[(B, Hq)](*states, order, bounds, *out, Hq, D, W)
    return out


@triton.jit
def prefix_kernel(
    q,
    k,
    v,
    v_out,
    s_out,
    B,
    P,
    Hq,
    scale,
    q_by,
    k_by,
    v_by,
    G: tl.constexpr,
    D: tl.constexpr,
    W: tl.constexpr,
    M: tl.constexpr,
    N: tl.constexpr,
):
    """grid (Hkv, blocks of M rows). Rows are (g, request): row = g * B + request."""
    kv = tl.program_id(0).to(tl.int64)
    row = tl.program_id(1) * M + tl.arange(0, M)
    live = row < G * B
    b, h = (row % B).to(tl.int64), kv * G + row // B
    d = tl.arange(0, W)
    qq = tl.load(
        q + (b * q_by[0] + h * q_by[1])[:, None] + d[None, :] * q_by[2],
        mask=live[:, None] & (d < D)[None, :],
        other=0.0,
    )
    m = tl.full([M], float("-inf"), tl.float32)
    l = tl.full([M], 0.0, tl.float32)
    acc = tl.zeros([M, W], tl.float32)
    for first in range(0, P, N):
        n = first + tl.arange(0, N)
        ok = (n < P)[:, None] & (d < D)[None, :]
        kk = tl.load(k + n.to(tl.int64)[:, None] * k_by[0] + kv * k_by[1] + d[None, :] * k_by[2], mask=ok, other=0.0)
        vv = tl.load(v + n.to(tl.int64)[:, None] * v_by[0] + kv * v_by[1] + d[None, :] * v_by[2], mask=ok, other=0.0)
        e = tl.dot(qq, tl.trans(kk), input_precision="ieee") * scale + tl.where(n < P, 0.0, float("-inf"))[None, :]
        new = tl.maximum(m, tl.max(e, 1))
        p = tl.exp(e - new[:, None])
        keep = tl.exp(m - new)
        l = l * keep + tl.sum(p, 1)
        acc = acc * keep[:, None] + tl.dot(p, vv.to(tl.float32), input_precision="ieee")
        m = new
    l = tl.where(l == 0.0, 1.0, l)
    at = b * Hq + h
    tl.store(v_out + at[:, None] * D + d[None, :], acc / l[:, None], mask=live[:, None] & (d < D)[None, :])
    tl.store(s_out + at, (m + tl.log(l)) * 1.4426950408889634, mask=live)


def attend_shared(q, k, v, scale=None):
    B, Hq, D = q.shape
    P, Hkv = k.shape[:2]
    G = Hq // Hkv
    v_out = torch.empty((B, Hq, D), dtype=torch.float32, device=q.device)
    s_out = torch.empty((B, Hq), dtype=torch.float32, device=q.device)
    if B:
        M = 16 if B * G <= 16 else 64
        prefix_kernel[(Hkv, triton.cdiv(B * G, M))](
            q, k, v, v_out, s_out, B, P, Hq, D**-0.5 if scale is None else scale, q.stride(), k.stride(), v.stride(),
            G=G, D=D, W=max(16, triton.next_power_of_2(D)), M=M, N=16, num_stages=1,
        )  # fmt: skip
    return v_out, s_out


def own_pages(kv_cache, indptr, indices, last_page_len):
    plan = Plan()
    table = indptr.tolist(), indices.tolist(), last_page_len.tolist()
    for i in range(len(last_page_len)):
        plan.add([i], slots_of(kv_cache.shape[2], *table, i))
    return plan


def attend_paged(q, kv_cache, indptr, indices, last_page_len, scale=None):
    k, v = kv_cache.unbind(1)
    return carry_out(own_pages(kv_cache, indptr, indices, last_page_len), q, k, v, scale, torch.float32)


def cascade(q, k_shared, v_shared, kv_cache, indptr, indices, last_page_len, scale=None):
    shared = attend_shared(q, k_shared, v_shared, scale)
    k, v = kv_cache.unbind(1)
    plan = own_pages(kv_cache, indptr, indices, last_page_len)
    return carry_out(plan, q, k, v, scale, q.dtype, more=shared)


def multi_level_cascade(q, kv_cache, levels, scale=None):
    plan = Plan()
    for group_indptr, kv_indptr, kv_indices, kv_last in levels:
        groups, table = group_indptr.tolist(), (kv_indptr.tolist(), kv_indices.tolist(), kv_last.tolist())
        for g in range(len(groups) - 1):
            plan.add(range(groups[g], groups[g + 1]), slots_of(kv_cache.shape[2], *table, g))
    return carry_out(plan, q, kv_cache[:, 0], kv_cache[:, 1], scale, q.dtype)
