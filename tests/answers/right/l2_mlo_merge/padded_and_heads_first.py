"""Columns padded to 16 by torch, tl.dot with sixteen equal queries, tiles of three axes, results in a NamedTuple."""

import math
from typing import NamedTuple

import torch
import triton
import triton.language as tl


class Triple(NamedTuple):
    m: torch.Tensor
    l: torch.Tensor
    o: torch.Tensor


def padded(x, width):
    if x.shape[-1] == width:
        return x
    wide = torch.zeros(*x.shape[:-1], width, dtype=x.dtype, device=x.device)
    wide[..., : x.shape[-1]] = x
    return wide


@triton.jit
def part_kernel(
    q,
    k,
    v,
    m_out,
    l_out,
    o_out,
    L,
    T,
    H,
    scale,
    k0,
    k1,
    k2,
    v0,
    v1,
    v2,
    D: tl.constexpr,
    W: tl.constexpr,
    B: tl.constexpr,
):
    """grid (H, N)"""
    h, n = tl.program_id(0).to(tl.int64), tl.program_id(1)
    d = tl.arange(0, W)
    rows = tl.arange(0, 16)
    qt = tl.load(q + h * W + d[:, None] + 0 * rows[None, :])  # [W, 16], sixteen times the same column
    m = tl.full([16], float("-inf"), tl.float32)
    l = tl.zeros([16], tl.float32)
    acc = tl.zeros([W, 16], tl.float32)
    end = tl.minimum((n + 1) * T, L)
    for first in range(n * T, end, B):
        key = (first + tl.arange(0, B)).to(tl.int64)
        live = key < end
        kk = tl.load(k + key[:, None] * k0 + h * k1 + d[None, :] * k2, mask=live[:, None], other=0.0)
        s = tl.dot(kk, qt, input_precision="ieee") * scale
        s = tl.where(live[:, None], s, float("-inf"))
        new = tl.maximum(m, tl.max(s, 0))
        p = tl.exp(s - new[None, :])
        a = tl.exp(m - new)
        l = l * a + tl.sum(p, 0)
        vv = tl.load(v + key[None, :] * v0 + h * v1 + d[:, None] * v2, mask=live[None, :], other=0.0)
        acc = acc * a[None, :] + tl.dot(vv.to(tl.float32), p, input_precision="ieee")
        m = new
    acc = acc / tl.where(l == 0, 1.0, l)[None, :]
    at = n * H + h
    first_row = rows == 0
    tl.store(m_out + at + rows, m, mask=first_row)
    tl.store(l_out + at + rows, l, mask=first_row)
    tl.store(
        o_out + at.to(tl.int64) * D + d[:, None] + 0 * rows[None, :], acc, mask=(d < D)[:, None] & first_row[None, :]
    )


def partial_attention(q, k, v, num_splits, scale=None):
    H, D = q.shape
    L = k.shape[0]
    scale = 1 / math.sqrt(D) if scale is None else scale
    W = max(16, triton.next_power_of_2(D))
    new = dict(dtype=torch.float32, device=q.device)
    out = Triple(
        torch.empty(num_splits, H, **new), torch.empty(num_splits, H, **new), torch.empty(num_splits, H, D, **new)
    )
    q, k, v = (padded(x, W) for x in (q.contiguous(), k, v))
    T = triton.cdiv(L, num_splits)
    part_kernel[H, num_splits](q, k, v, *out, L, T, H, scale, *k.stride(), *v.stride(), D=D, W=W, B=32, num_stages=1)
    return out


@triton.jit
def pair_kernel(ma, la, oa, mb, lb, ob, m, l, o, D, sma, sla, soa0, soa1, smb, slb, sob0, sob1, C: tl.constexpr):
    """grid (H, D / C); every program computes the weights, the first stores them."""
    h = tl.program_id(0).to(tl.int64)
    c = tl.program_id(1) * C + tl.arange(0, C)
    a, b = tl.load(ma + h * sma), tl.load(mb + h * smb)
    wa, wb = tl.load(la + h * sla), tl.load(lb + h * slb)
    top = max(a, b)
    wa = 0.0 if a == float("-inf") else wa * tl.exp(a - top)
    wb = 0.0 if b == float("-inf") else wb * tl.exp(b - top)
    total = wa + wb
    x = tl.load(oa + h * soa0 + c * soa1, mask=(c < D) & (wa > 0), other=0.0).to(tl.float32)
    y = tl.load(ob + h * sob0 + c * sob1, mask=(c < D) & (wb > 0), other=0.0).to(tl.float32)
    r = (x * wa + y * wb) / tl.where(total > 0, total, 1.0)
    tl.store(o + h * D + c, r.to(o.dtype.element_ty), mask=c < D)
    if tl.program_id(1) == 0:
        tl.store(m + h, top)
        tl.store(l + h, total)


def merge_pair(m_a, l_a, o_a, m_b, l_b, o_b):
    H, D = o_a.shape
    out = Triple(
        torch.empty_like(m_a, memory_format=torch.contiguous_format),
        torch.empty(H, device=m_a.device),
        o_a.new_empty(H, D),
    )
    if H:
        pair_kernel[H, triton.cdiv(D, 64)](
            m_a,
            l_a,
            o_a,
            m_b,
            l_b,
            o_b,
            *out,
            D,
            *m_a.stride(),
            *l_a.stride(),
            *o_a.stride(),
            *m_b.stride(),
            *l_b.stride(),
            *o_b.stride(),
            C=64,
        )
    return out


@triton.jit
def all_kernel(m, l, o, out, N, H, D, HB: tl.constexpr, NB: tl.constexpr, DB: tl.constexpr):
    """Tiles [NB, HB, DB] of o."""
    h = tl.program_id(0) * HB + tl.arange(0, HB)
    d = tl.program_id(1) * DB + tl.arange(0, DB)
    n = tl.arange(0, NB)
    best = tl.full([HB], float("-inf"), tl.float32)
    for first in range(0, N, NB):
        at = (first + n)[:, None] * H + h[None, :]
        best = tl.maximum(
            best, tl.max(tl.load(m + at, mask=(first + n < N)[:, None] & (h < H)[None, :], other=float("-inf")), 0)
        )
    best = tl.where(best == float("-inf"), 0.0, best)
    num = tl.zeros([HB, DB], tl.float32)
    den = tl.zeros([HB], tl.float32)
    for first in range(0, N, NB):
        ok = (first + n < N)[:, None] & (h < H)[None, :]
        at = (first + n).to(tl.int64)[:, None] * H + h[None, :]
        mm = tl.load(m + at, mask=ok, other=float("-inf"))
        w = tl.where(mm == float("-inf"), 0.0, tl.load(l + at, mask=ok, other=0.0) * tl.exp(mm - best[None, :]))
        ok3 = (w > 0)[:, :, None] & (d < D)[None, None, :]
        x = tl.load(o + at[:, :, None] * D + d[None, None, :], mask=ok3, other=0.0).to(tl.float32)
        num += tl.sum(x * w[:, :, None], axis=0)
        den += tl.sum(w, axis=0)
    r = num / tl.where(den == 0, 1.0, den)[:, None]
    tl.store(
        out + h.to(tl.int64)[:, None] * D + d[None, :],
        r.to(out.dtype.element_ty),
        mask=(h < H)[:, None] & (d < D)[None, :],
    )


def merge_mlo(m, l, o):
    N, H, D = o.shape
    out = torch.empty((H, D), dtype=o.dtype, device=o.device)
    grid = lambda meta: (triton.cdiv(H, meta["HB"]), triton.cdiv(D, meta["DB"]))  # noqa: E731
    all_kernel[grid](m.contiguous(), l.contiguous(), o.contiguous(), out, N, H, D, HB=4, NB=16, DB=32, num_warps=4)
    return out
