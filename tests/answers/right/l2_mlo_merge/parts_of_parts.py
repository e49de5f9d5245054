"""A part's keys shared out once more and merged by a second launch; the pair from the larger side; three-dimensional tiles."""

import torch
import triton
import triton.language as tl


@triton.jit
def piece_kernel(q, k, v, m_out, l_out, o_out, H, L, T, SHARE, scale, D, q_h, q_d, k_l, k_h, k_d, v_l, v_h, v_d,
                 BLOCK: tl.constexpr, WIDE: tl.constexpr):  # fmt: skip
    """Piece `piece` of part `part`, of the form (m, l, sum of weights * v): not divided."""
    part = tl.program_id(0) // H
    head = (tl.program_id(0) % H).to(tl.int64)
    piece = tl.program_id(1)
    d = tl.arange(0, WIDE).to(tl.int64)
    q_row = tl.load(q + head * q_h + d * q_d, mask=d < D, other=0.0).to(tl.float32)
    end = tl.minimum(tl.minimum(part * T + (piece + 1) * SHARE, (part + 1) * T), L)
    at = part * T + piece * SHARE
    m = float("-inf")
    l = 0.0
    acc = tl.zeros([1, WIDE], tl.float32)
    while at < end:
        key = (at + tl.arange(0, BLOCK)).to(tl.int64)[:, None]
        ok = (key < end) & (d < D)[None, :]
        k_tile = tl.load(k + key * k_l + head * k_h + d[None, :] * k_d, mask=ok, other=0.0).to(tl.float32)
        v_tile = tl.load(v + key * v_l + head * v_h + d[None, :] * v_d, mask=ok, other=0.0).to(tl.float32)
        score = tl.sum(k_tile * q_row[None, :], 1, keep_dims=True) * scale
        score = tl.where(key < end, score, float("-inf"))
        top = tl.maximum(m, tl.max(score))
        w = tl.exp(score - top)
        keep = tl.exp(m - top)
        acc = acc * keep + tl.sum(w * v_tile, 0, keep_dims=True)
        l = l * keep + tl.sum(w)
        m = top
        at += BLOCK
    row = (part.to(tl.int64) * tl.num_programs(1) + piece) * H + head
    tl.store(m_out + row, m)
    tl.store(l_out + row, l)
    tl.store(o_out + row * D + d[None, :], acc, mask=(d < D)[None, :])


@triton.jit
def join_kernel(m_in, l_in, o_in, m_out, l_out, o_out, PIECES, H, D, NORMALIZED: tl.constexpr, N: tl.constexpr,
                HEADS: tl.constexpr, WIDE: tl.constexpr):  # fmt: skip
    """PIECES triples of HEADS heads into one, N at a time; NORMALIZED: their o are divided by l."""
    part = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1) * HEADS + tl.arange(0, HEADS)
    d = tl.arange(0, WIDE)
    m = tl.full([HEADS], float("-inf"), tl.float32)
    l = tl.zeros([HEADS], tl.float32)
    acc = tl.zeros([HEADS, WIDE], tl.float32)
    start = 0
    while start < PIECES:
        n = start + tl.arange(0, N)
        row = (part * PIECES + n)[:, None] * H + head[None, :]
        ok = (n < PIECES)[:, None] & (head < H)[None, :]
        m_n = tl.load(m_in + row, mask=ok, other=float("-inf"))
        l_n = tl.load(l_in + row, mask=ok, other=0.0)
        used = (m_n > float("-inf"))[:, :, None] & (d < D)[None, None, :]
        o_n = tl.load(o_in + row[:, :, None] * D + d[None, None, :], mask=used, other=0.0).to(tl.float32)
        top = tl.maximum(m, tl.max(m_n, 0))
        shift = tl.where(top == float("-inf"), 0.0, top)
        w = tl.exp(m_n - shift[None, :])
        keep = tl.exp(m - shift)
        if NORMALIZED:
            o_n = o_n * l_n[:, :, None]
        acc = acc * keep[:, None] + tl.sum(w[:, :, None] * o_n, 0)
        l = l * keep + tl.sum(w * l_n, 0)
        m = top
        start += N
    row = part * H + head
    if m_out is not None:
        tl.store(m_out + row, m, mask=head < H)
        tl.store(l_out + row, l, mask=head < H)
    o = acc / tl.where(l > 0, l, 1.0)[:, None]
    at = o_out + row[:, None] * D + d[None, :]
    tl.store(at, o.to(o_out.dtype.element_ty), mask=(head < H)[:, None] & (d < D)[None, :])


def join(m, l, o, m_out, l_out, o_out, parts, pieces, normalized):
    H, D = o.shape[-2:]
    wide = triton.next_power_of_2(D)
    heads = min(2, triton.next_power_of_2(H))
    join_kernel[(parts, triton.cdiv(H, heads))](
        m, l, o, m_out, l_out, o_out, pieces, H, D, NORMALIZED=normalized, N=max(1, min(8, 1024 // wide)), HEADS=heads,
        WIDE=wide,
    )  # fmt: skip


def partial_attention(q, k, v, num_splits, scale=None):
    H, D = q.shape
    L = k.shape[0]
    pieces = 2
    T = triton.cdiv(L, num_splits)
    m_p, l_p = torch.empty((2, num_splits, pieces, H), dtype=torch.float32, device=q.device)
    o_p = torch.empty((num_splits, pieces, H, D), dtype=torch.float32, device=q.device)
    m, l = torch.empty((2, num_splits, H), dtype=torch.float32, device=q.device).unbind()
    m, l = torch.empty_like(m), torch.empty_like(l)
    o = torch.empty((num_splits, H, D), dtype=torch.float32, device=q.device)
    if scale is None:
        scale = 1 / D**0.5
    piece_kernel[(num_splits * H, pieces)](
        q, k, v, m_p, l_p, o_p, H, L, T, triton.cdiv(T, pieces), scale, D, *q.stride(), *k.stride(), *v.stride(),
        BLOCK=8, WIDE=triton.next_power_of_2(D),
    )  # fmt: skip
    join(m_p, l_p, o_p, m, l, o, num_splits, pieces, False)
    return m, l, o


@triton.jit
def pair_kernel(m_a, l_a, o_a, m_b, l_b, o_b, m_out, l_out, o_out, H, D, WIDE: tl.constexpr):
    for head in range(tl.program_id(0), H, tl.num_programs(0)):
        a_larger = tl.load(m_a + head) >= tl.load(m_b + head)
        m_high = tl.maximum(tl.load(m_a + head), tl.load(m_b + head))
        m_low = tl.minimum(tl.load(m_a + head), tl.load(m_b + head))
        l_high = tl.where(a_larger, tl.load(l_a + head), tl.load(l_b + head))
        l_low = tl.where(a_larger, tl.load(l_b + head), tl.load(l_a + head))
        both_empty = m_high == float("-inf")
        felt = tl.where(both_empty, 0.0, tl.exp(m_low - tl.where(both_empty, 0.0, m_high)) * l_low)
        l = tl.where(both_empty, 0.0, l_high + felt)
        share = felt / tl.where(both_empty, 1.0, l)
        tl.store(m_out + head, m_high)
        tl.store(l_out + head, l)
        for start in range(0, D, WIDE):
            d = start + tl.arange(0, WIDE)
            a = tl.load(o_a + head * D + d, mask=d < D, other=0.0).to(tl.float32)
            b = tl.load(o_b + head * D + d, mask=d < D, other=0.0).to(tl.float32)
            high, low = tl.where(a_larger, a, b), tl.where(a_larger, b, a)
            o = high
            if share > 0:
                o = high + (low - high) * share
            if both_empty:
                o = tl.zeros([WIDE], tl.float32)
            tl.store(o_out + head * D + d, o.to(o_out.dtype.element_ty), mask=d < D)


def merge_pair(m_a, l_a, o_a, m_b, l_b, o_b):
    H, D = o_a.shape
    given = [x.contiguous() for x in (m_a, l_a, o_a, m_b, l_b, o_b)]
    m, l = (
        torch.empty(H, dtype=torch.float32, device=o_a.device),
        torch.empty(H, dtype=torch.float32, device=o_a.device),
    )
    o = torch.empty((H, D), dtype=o_a.dtype, device=o_a.device)
    pair_kernel[(min(H, 16),)](*given, m, l, o, H, D, WIDE=64)
    return m, l, o


def merge_mlo(m, l, o):
    N, H, D = o.shape
    out = torch.empty((H, D), dtype=o.dtype, device=o.device)
    join(m.contiguous(), l.contiguous(), o.contiguous(), None, None, out, 1, N, True)
    return out
