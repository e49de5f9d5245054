"""One key a step, merges by tiles of heads; the pair is merged as a merge of two; exp2 inside."""

import math

import torch
import triton
import triton.language as tl

LOG2E = tl.constexpr(1.4426950408889634)
LN2 = tl.constexpr(0.6931471805599453)


@triton.jit
def partial_kernel(
    q_ptr, k_ptr, v_ptr, m_ptr, l_ptr, o_ptr, H, L, T, scale, D, HEADS: tl.constexpr, WIDE: tl.constexpr
):
    part = tl.program_id(0)
    h = tl.program_id(1) * HEADS + tl.arange(0, HEADS)
    d = tl.arange(0, WIDE)
    ok = (h < H)[:, None] & (d < D)[None, :]
    tile = h[:, None] * D + d[None, :]  # [HEADS, WIDE]
    q = tl.load(q_ptr + tile, mask=ok, other=0.0).to(tl.float32)
    m = tl.full((HEADS,), float("-inf"), tl.float32)
    l = tl.zeros((HEADS,), tl.float32)
    o = tl.zeros((HEADS, WIDE), tl.float32)
    key = part * T
    while key < tl.minimum(part * T + T, L):
        at = key.to(tl.int64) * H * D + tile
        k = tl.load(k_ptr + at, mask=ok, other=0.0).to(tl.float32)
        v = tl.load(v_ptr + at, mask=ok, other=0.0).to(tl.float32)
        score = tl.sum(q * k, 1) * scale
        top = tl.maximum(m, score)
        keep = tl.exp2((m - top) * LOG2E)
        w = tl.exp2((score - top) * LOG2E)
        l = l * keep + w
        o = o * keep[:, None] + v * w[:, None]
        m = top
        key += 1
    row = part * H + h
    tl.store(m_ptr + row, m, mask=h < H)
    tl.store(l_ptr + row, l, mask=h < H)
    tl.store(o_ptr + row[:, None].to(tl.int64) * D + d[None, :], o / tl.maximum(l, 1e-30)[:, None], mask=ok)


def partial_attention(q, k, v, num_splits, scale=None):
    H, D = q.shape
    m = torch.full((num_splits, H), -math.inf, device=q.device)
    l = torch.zeros((num_splits, H), device=q.device)
    o = torch.zeros((num_splits, H, D), device=q.device)
    if len(k):
        heads = 1  # more would leave fewer programs than parts and heads
        partial_kernel[(num_splits, triton.cdiv(H, heads))](
            q.contiguous(), k.contiguous(), v.contiguous(), m, l, o, H, len(k), -(-len(k) // num_splits),
            1 / math.sqrt(D) if scale is None else scale, D, HEADS=heads, WIDE=triton.next_power_of_2(D),
        )  # fmt: skip
    return m, l, o


@triton.jit
def weights(m_a, l_a, m_b, l_b):
    """The merged m and l of two parts, and the share of each in l."""
    m = tl.maximum(m_a, m_b)
    base = tl.maximum(m, -3.0e38)
    w_a = tl.exp2((m_a - base) * LOG2E) * l_a
    w_b = tl.exp2((m_b - base) * LOG2E) * l_b
    l = w_a + w_b
    rate = tl.where(l > 0.0, 1.0 / l, 0.0)
    return m, l, w_a * rate, w_b * rate


@triton.jit
def pair_kernel(
    m_a_ptr, l_a_ptr, o_a_ptr, m_b_ptr, l_b_ptr, o_b_ptr, m_ptr, l_ptr, o_ptr, H, D,
    HEADS: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    h = tl.program_id(0) * HEADS + tl.arange(0, HEADS)
    there = h < H
    m, l, p_a, p_b = weights(
        tl.load(m_a_ptr + h, mask=there, other=0.0),
        tl.load(l_a_ptr + h, mask=there, other=1.0),
        tl.load(m_b_ptr + h, mask=there, other=0.0),
        tl.load(l_b_ptr + h, mask=there, other=1.0),
    )
    tl.store(m_ptr + h, m, mask=there)
    tl.store(l_ptr + h, l, mask=there)
    for d0 in range(0, D, WIDE):
        d = d0 + tl.arange(0, WIDE)
        ok = there[:, None] & (d < D)[None, :]
        at = h[:, None] * D + d[None, :]
        o_a = tl.load(o_a_ptr + at, mask=ok, other=0.0).to(tl.float32)
        o_b = tl.load(o_b_ptr + at, mask=ok, other=0.0).to(tl.float32)
        o_a = tl.where(p_a[:, None] == 0.0, 0.0, o_a)
        o_b = tl.where(p_b[:, None] == 0.0, 0.0, o_b)
        o = o_a * p_a[:, None] + o_b * p_b[:, None]
        tl.store(o_ptr + at, o.to(o_ptr.dtype.element_ty), mask=ok)


def merge_pair(m_a, l_a, o_a, m_b, l_b, o_b):
    H, D = o_a.shape
    m = torch.empty(H, device=o_a.device)
    l = torch.empty(H, device=o_a.device)
    o = torch.empty((H, D), dtype=o_a.dtype, device=o_a.device)
    inputs = [t.contiguous() for t in (m_a, l_a, o_a, m_b, l_b, o_b)]
    pair_kernel[(triton.cdiv(H, 4),)](*inputs, m, l, o, H, D, HEADS=4, WIDE=32)
    return m, l, o


@triton.jit
def all_kernel(m_ptr, l_ptr, o_n_ptr, o_ptr, N, H, D, WIDE: tl.constexpr):
    """Pair after pair, the result so far being the left one."""
    h = tl.program_id(0)
    d = tl.arange(0, WIDE)
    m = tl.full((), float("-inf"), tl.float32)
    l = tl.zeros((), tl.float32)
    o = tl.zeros((WIDE,), tl.float32)
    for n in range(N):
        row = n * H + h
        m, l, p_o, p_n = weights(m, l, tl.load(m_ptr + row), tl.load(l_ptr + row))
        o_n = tl.load(o_n_ptr + row.to(tl.int64) * D + d, mask=d < D, other=0.0).to(tl.float32)
        o = o * p_o + tl.where(p_n == 0.0, 0.0, o_n * p_n)
    tl.store(o_ptr + h * D + d, o.to(o_ptr.dtype.element_ty), mask=d < D)


def merge_mlo(m, l, o):
    N, H, D = o.shape
    out = torch.empty((H, D), dtype=o.dtype, device=o.device)
    all_kernel[(H,)](m.contiguous(), l.contiguous(), o.contiguous(), out, N, H, D, WIDE=triton.next_power_of_2(D))
    return out
