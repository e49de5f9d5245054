"""The prefix split over programs, autotuned; columns padded to 16; pages found by torch's index arithmetic."""

from typing import NamedTuple

import torch
import triton
import triton.language as tl

NONE: tl.constexpr = tl.constexpr(float("-inf"))
LOG2E = tl.constexpr(1.4426950408889634)


class State(NamedTuple):
    v: torch.Tensor
    s: torch.Tensor


@triton.jit
def ref(m):
    return tl.where(m == NONE, 0.0, m)


@triton.jit
def more(q, k, v, live, scale, m, l, acc):
    e = tl.where(live, tl.dot(q, k, input_precision="ieee") * scale, NONE)
    new = tl.maximum(m, tl.max(e, 1))
    p = tl.exp2(e - ref(new)[:, None])
    keep = tl.exp2(m - ref(new))
    if v.dtype == tl.float32:
        o = tl.dot(p, v, input_precision="ieee")
    else:
        o = tl.dot(p.to(v.dtype), v)
    return new, l * keep + tl.sum(p, 1), acc * keep[:, None] + o


@triton.autotune(
    configs=[triton.Config({"N": 16}, num_warps=4, num_stages=1), triton.Config({"N": 32}, num_warps=4, num_stages=2)],
    key=["P"],
    prune_configs_by={"early_config_prune": lambda configs, args, **more: configs[:1] if args["D"] > 128 else configs},
)
@triton.heuristics({"M": lambda args: max(16, min(64, triton.next_power_of_2(args["B"] * args["G"])))})
@triton.jit
def shared_kernel(
    q, k, v, v_out, s_out, B, P, Hq, T, scale, G, D, k0, k1, v0, v1, W: tl.constexpr, N: tl.constexpr, M: tl.constexpr
):
    """grid (blocks of M rows, Hkv, splits). q: [B, Hq, W]. v_out: [splits, B, Hq, D]."""
    tl.assume(D <= W)
    row = tl.program_id(0) * M + tl.arange(0, M)
    kv, split = tl.program_id(1).to(tl.int64), tl.program_id(2)
    at = (row // G).to(tl.int64) * Hq + kv * G + row % G
    d = tl.arange(0, W)
    live = row < B * G
    qq = tl.load(q + at[:, None] * W + d[None, :], mask=live[:, None], other=0.0)
    m = tl.full([M], NONE, tl.float32)
    l = tl.zeros([M], tl.float32)
    acc = tl.zeros([M, W], tl.float32)
    end = tl.minimum(split * T + T, P)
    for first in tl.range(split * T, end, N):
        n = (first + tl.arange(0, N)).to(tl.int64)
        kk = tl.load(k + n[None, :] * k0 + kv * k1 + d[:, None], mask=(n < end)[None, :], other=0.0)
        vv = tl.load(v + n[:, None] * v0 + kv * v1 + d[None, :], mask=(n < end)[:, None], other=0.0)
        m, l, acc = more(qq, kk, vv, (n < end)[None, :], scale, m, l, acc)
    l = tl.where(l == 0, 1.0, l)
    at += tl.cast(split, tl.int64) * B * Hq
    tl.store(v_out + at[:, None] * D + d[None, :], acc / l[:, None], mask=live[:, None] & (d < D)[None, :])
    tl.store(s_out + at, m + tl.log2(l), mask=live)


@triton.jit
def join(s_a, v_a, s_b, v_b):
    s = tl.maximum(s_a, s_b)
    a, b = tl.exp2(s_a - ref(s)), tl.exp2(s_b - ref(s))
    total = tl.where(a + b == 0.0, 1.0, a + b)
    return s + tl.log2(total), v_a * (a / total) + v_b * (b / total)


@triton.jit
def join_kernel(v, s, v_out, s_out, N, rows, D, C: tl.constexpr, R: tl.constexpr):
    """v: [N, rows, D]: a tree over N, rounded up to R, in one program a row and block of columns."""
    row = tl.program_id(0)
    d = tl.program_id(1) * C + tl.arange(0, C)
    n = tl.arange(0, R)
    at = n.to(tl.int64) * rows + row
    s_n = tl.load(s + at, mask=n < N, other=NONE)
    v_n = tl.load(v + at[:, None] * D + d[None, :], mask=(n < N)[:, None] & (d < D)[None, :], other=0.0)
    s_b, v_b = tl.reduce((tl.broadcast_to(s_n[:, None], [R, C]), v_n), 0, join)
    tl.store(v_out + row.to(tl.int64) * D + d, v_b.to(v_out.dtype.element_ty), mask=d < D)
    if tl.program_id(1) == 0:
        tl.store(s_out + row, tl.max(s_b, 0))


def joined(v, s, dtype):
    """v[N, B, Hq, D], s[N, B, Hq] as one."""
    N, B, Hq, D = v.shape
    out = State(
        torch.zeros(B, Hq, D, dtype=dtype, device=v.device), torch.full((B, Hq), float("-inf"), device=v.device)
    )
    if B and N:
        join_kernel[(B * Hq, triton.cdiv(D, 64))](v, s, *out, N, B * Hq, D, C=64, R=triton.next_power_of_2(N))
    return out


def wide(x, W):
    """x with W columns that lie side by side; those past its own are 0."""
    if x.shape[-1] == W and x.stride(-1) == 1:
        return x
    y = x.new_zeros(*x.shape[:-1], W)
    y[..., : x.shape[-1]] = x
    return y


def width(D):
    return max(16, triton.next_power_of_2(D))


def factor(D, scale):
    return (D**-0.5 if scale is None else scale) * LOG2E.value


def shared_states(q, k, v, scale, splits):
    (B, Hq, D), (P, Hkv, _), W = q.shape, k.shape, width(q.shape[-1])
    G = Hq // Hkv
    out = State(torch.empty(splits, B, Hq, D, device=q.device), torch.empty(splits, B, Hq, device=q.device))
    if B:
        q, k, v = wide(q, W).contiguous(), wide(k, W), wide(v, W)
        T = triton.cdiv(P, splits)
        grid = lambda meta: (triton.cdiv(B * G, meta["M"]), Hkv, splits)  # noqa: E731
        shared_kernel[grid](q, k, v, *out, B, P, Hq, T, factor(D, scale), G, D, *k.stride()[:2], *v.stride()[:2], W=W)
    return out


def attend_shared(q, k, v, scale=None):
    return joined(*shared_states(q, k, v, scale, 1 if len(k) < 100 else 3), torch.float32)


@triton.jit
def slots_kernel(
    q, k, v, slots, ends, owner, v_out, s_out, Hq, G, D, page, scale, q_by, k_by, v_by, W: tl.constexpr, N: tl.constexpr
):
    """grid (Hq, B). The keys of group g: slots[ends[g]:ends[g + 1]]; owner[i]: request i's group, -1 for none."""
    h, i = tl.program_id(0).to(tl.int64), tl.program_id(1).to(tl.int64)
    d = tl.arange(0, W)
    x = tl.load(q + i * q_by[0] + h * q_by[1] + d * q_by[2], mask=d < D, other=0).to(tl.float32) * scale
    row = i * Hq + h
    group = tl.load(owner + i)
    if group < 0:
        tl.store(s_out + row, NONE)
        tl.store(v_out + row * D + d, 0.0, mask=d < D)
        return
    m = tl.full([], NONE, tl.float32)
    l = tl.full([], 0, tl.float32)
    acc = tl.zeros([W], tl.float32)
    at = tl.load(ends + group)
    end = tl.load(ends + group + 1)
    while at < end:
        n = at + tl.arange(0, N)
        slot = tl.load(slots + n, mask=n < end, other=0)
        p, t = slot // page, slot % page
        ok = (n < end)[:, None] & (d < D)[None, :]
        kk = tl.load(
            k + (p * k_by[0] + t * k_by[1] + h // G * k_by[2])[:, None] + d[None, :] * k_by[3], mask=ok, other=0
        )
        vv = tl.load(
            v + (p * v_by[0] + t * v_by[1] + h // G * v_by[2])[:, None] + d[None, :] * v_by[3], mask=ok, other=0
        )
        e = tl.where(n < end, tl.sum(kk.to(tl.float32) * x[None, :], 1), NONE)
        new = tl.maximum(m, tl.max(e, 0))
        w = tl.exp2(e - new)
        l = l * tl.exp2(m - new) + tl.sum(w, 0)
        acc = acc * tl.exp2(m - new) + tl.sum(w[:, None] * vv.to(tl.float32), 0)
        m = new
        at += N
    l = tl.where(l == 0, 1.0, l)
    tl.store(v_out + row * D + d, acc / l, mask=d < D)
    tl.store(s_out + row, m + tl.log2(l))


def slots_of(indptr, indices, last_page_len, page_size):
    """All keys' slots in a row, 64 bits, and where each group's begin; in torch, on index tensors."""
    indptr, indices, last = indptr.long(), indices.long(), last_page_len.long()
    pages = indptr[1:] - indptr[:-1]
    keys = torch.where(pages > 0, (pages - 1) * page_size + last, torch.zeros_like(pages))
    ends = torch.cat([keys.new_zeros(1), keys.cumsum(0)])
    total = int(ends[-1])
    group = torch.repeat_interleave(torch.arange(len(keys), device=keys.device), keys)
    nth = torch.arange(total, device=keys.device) - ends[group]
    return indices[indptr[group] + nth // page_size] * page_size + nth % page_size, ends


def paged_states(q, kv_cache, owner, indptr, indices, last_page_len, scale, out):
    (B, Hq, D), (_, _, page, Hkv, _) = q.shape, kv_cache.shape
    slots, ends = slots_of(indptr, indices, last_page_len, page)
    k, v = kv_cache.select(1, 0), kv_cache.select(1, 1)
    if B:
        slots_kernel[(Hq, B)](
            q,
            k,
            v,
            slots,
            ends,
            owner,
            *out,
            Hq,
            Hq // Hkv,
            D,
            page,
            factor(D, scale),
            q.stride(),
            k.stride(),
            v.stride(),
            W=triton.next_power_of_2(D),
            N=16,
        )
    return out


def room(N, q):
    B, Hq, D = q.shape
    return State(q.new_empty((N, B, Hq, D), dtype=torch.float32), q.new_empty((N, B, Hq), dtype=torch.float32))


def attend_paged(q, kv_cache, indptr, indices, last_page_len, scale=None):
    everyone = torch.arange(len(q), device=q.device)
    one = room(1, q)
    paged_states(q, kv_cache, everyone, indptr, indices, last_page_len, scale, State(one.v[0], one.s[0]))
    return one.v[0], one.s[0]


def cascade(q, k_shared, v_shared, kv_cache, indptr, indices, last_page_len, scale=None):
    both = room(2, q)
    for mine, theirs in zip(both, attend_shared(q, k_shared, v_shared, scale), strict=True):
        mine[0].copy_(theirs)
    paged_states(
        q,
        kv_cache,
        torch.arange(len(q), device=q.device),
        indptr,
        indices,
        last_page_len,
        scale,
        State(both.v[1], both.s[1]),
    )
    return joined(*both, q.dtype)


def multi_level_cascade(q, kv_cache, levels, scale=None):
    all_levels = room(len(levels), q)
    request = torch.arange(len(q), device=q.device)
    for i, (group_indptr, kv_indptr, kv_indices, kv_last) in enumerate(levels):
        owner = torch.searchsorted(group_indptr.long().contiguous(), request, right=True) - 1
        owner = torch.where(owner < len(group_indptr) - 1, owner, torch.full_like(owner, -1))
        paged_states(q, kv_cache, owner, kv_indptr, kv_indices, kv_last, scale, State(all_levels.v[i], all_levels.s[i]))
    return joined(*all_levels, q.dtype)
