"""Addresses in a table, lambdas and partials for functions, strides as constants, three launches for the parts."""

from __future__ import annotations

import functools
import math
import warnings

import torch
import triton
import triton.language as tl

warnings.filterwarnings("ignore", category=UserWarning)


@triton.jit
def load_from(table, which, offsets, mask, other, TYPE: tl.constexpr):
    """From the tensor whose address is table[which]."""
    start = tl.load(table + which).to(tl.pointer_type(TYPE))
    return tl.load(start + offsets, mask=mask, other=other)


@triton.jit
def merge_table(
    ms,
    ls,
    os,
    m_out,
    l_out,
    o_out,
    N,
    H,
    TYPE: tl.constexpr,
    D: tl.constexpr,
    W: tl.constexpr,
    R: tl.constexpr,
    ALL: tl.constexpr,
):
    """ms, ls, os: addresses of N tensors each, [H], [H] and [H, D]."""
    h = tl.program_id(0) * R + tl.arange(0, R)
    live = h < H
    d = tl.arange(0, W)
    at = h[:, None] * D + d[None, :]
    m = tl.full([R], float("-inf"), tl.float32)
    l = tl.zeros([R], tl.float32)
    acc = tl.zeros([R, W], tl.float32)
    for n in range(N):
        m_n = load_from(ms, n, h, live, float("-inf"), tl.float32)
        l_n = load_from(ls, n, h, live, 0.0, tl.float32)
        used = m_n > float("-inf")
        x = load_from(os, n, at, used[:, None] & (d < D)[None, :], 0.0, TYPE).to(tl.float32)
        new = tl.maximum(m, m_n)
        shift = tl.where(new == float("-inf"), 0.0, new)
        keep, w = tl.exp(m - shift), tl.exp(m_n - shift) * l_n
        w = tl.where(used, w, 0.0)
        l = l * keep + w
        acc = acc * keep[:, None] + x * w[:, None]
        m = new
    acc = acc / tl.where(l > 0, l, 1.0)[:, None]
    tl.store(o_out + at, acc.to(o_out.dtype.element_ty), mask=live[:, None] & (d < D)[None, :])
    if ALL:
        tl.store(m_out + h, m, mask=live)
        tl.store(l_out + h, l, mask=live)


TYPES = {torch.float16: tl.float16, torch.bfloat16: tl.bfloat16, torch.float32: tl.float32}


def merged(ms, ls, os, shape, like, every):
    H, D = shape
    ms, ls, os = ([x.contiguous() for x in xs] for xs in (ms, ls, os))  # held until the launch is over
    m, l, o = (
        torch.empty(H, device=like.device),
        torch.empty(H, device=like.device),
        torch.empty(H, D, dtype=like.dtype, device=like.device),
    )
    tables = [torch.tensor([x.data_ptr() for x in xs], dtype=torch.int64, device=like.device) for xs in (ms, ls, os)]
    if H and os:
        merge_table[(triton.cdiv(H, 4),)](
            *tables, m, l, o, len(os), H, TYPE=TYPES[like.dtype], D=D, W=triton.next_power_of_2(D), R=4, ALL=every
        )
    elif H:
        o.zero_()
    return (m, l, o) if every else o


merge_pair = lambda m_a, l_a, o_a, m_b, l_b, o_b: merged((m_a, m_b), (l_a, l_b), (o_a, o_b), o_a.shape, o_a, True)  # noqa: E731
merge_mlo = lambda m, l, o: merged(m.unbind(), l.unbind(), o.unbind(), o.shape[1:], o, every=False)  # noqa: E731


@triton.jit
def score(
    q,
    k,
    x,
    H,
    L,
    scale,
    K0: tl.constexpr,
    K1: tl.constexpr,
    K2: tl.constexpr,
    D: tl.constexpr,
    W: tl.constexpr,
    B: tl.constexpr,
):
    """x[H, L]."""
    h = tl.program_id(1).to(tl.int64)
    j = tl.program_id(0).to(tl.int64) * B + tl.arange(0, B)
    d = tl.arange(0, W)
    y = tl.load(k + j[:, None] * K0 + h * K1 + d[None, :] * K2, mask=(j < L)[:, None] & (d < D)[None, :], other=0.0)
    e = tl.load(q + h * D + d, mask=d < D, other=0.0)
    tl.store(x + h * L + j, tl.sum(y.to(tl.float32) * e.to(tl.float32)[None, :], 1) * scale, mask=j < L)


@triton.jit
def stats(x, m, l, H, L, T, B: tl.constexpr):
    h, n = tl.program_id(0).to(tl.int64), tl.program_id(1)
    top = tl.full([B], float("-inf"), tl.float32)
    end = tl.minimum(n * T + T, L)
    for first in range(n * T, end, B):
        j = first + tl.arange(0, B)
        top = tl.maximum(top, tl.load(x + h * L + j, mask=j < end, other=float("-inf")))
    best = tl.max(top, 0)
    total = tl.zeros([B], tl.float32)
    for first in range(n * T, end, B):
        j = first + tl.arange(0, B)
        total += tl.exp(tl.load(x + h * L + j, mask=j < end, other=float("-inf")) - best)
    tl.store(m + n * H + h, best)
    tl.store(l + n * H + h, tl.sum(total, 0))


@triton.jit
def values(
    x,
    v,
    m,
    l,
    o,
    H,
    L,
    T,
    V0: tl.constexpr,
    V1: tl.constexpr,
    V2: tl.constexpr,
    D: tl.constexpr,
    W: tl.constexpr,
    B: tl.constexpr,
):
    h, n = tl.program_id(0).to(tl.int64), tl.program_id(1)
    d = tl.arange(0, W)
    best = tl.load(m + n * H + h)
    total = tl.load(l + n * H + h)
    acc = tl.zeros([W], tl.float32)
    end = tl.minimum(n * T + T, L)
    for first in range(n * T, end, B):
        j = (first + tl.arange(0, B)).to(tl.int64)
        w = tl.exp(tl.load(x + h * L + j, mask=j < end, other=float("-inf")) - best)
        u = tl.load(
            v + j[:, None] * V0 + h * V1 + d[None, :] * V2, mask=(j < end)[:, None] & (d < D)[None, :], other=0.0
        )
        acc += tl.sum(u.to(tl.float32) * w[:, None], 0)
    tl.store(o + (n * H + h) * D + d, acc / tl.where(total > 0, total, 1.0), mask=d < D)


def attention(q, k, v, num_splits, scale=None, *, keys):
    (H, D), L = q.shape, k.shape[0]
    make = functools.partial(torch.empty, dtype=torch.float32, device=q.device)
    m, l, o, x = make(num_splits, H), make(num_splits, H), make(num_splits, H, D), make(H, L)
    T, W = math.ceil(L / num_splits), triton.next_power_of_2(D)
    if L:
        score[(triton.cdiv(L, keys), H)](
            q.contiguous(), k, x, H, L, 1 / math.sqrt(D) if scale is None else scale, *k.stride(), D, W, keys
        )
    stats[(H, num_splits)](x, m, l, H, L, T, keys)
    values[(H, num_splits)](x, v, m, l, o, H, L, T, *v.stride(), D, W, keys)
    return m, l, o


partial_attention = functools.partial(attention, keys=16)
