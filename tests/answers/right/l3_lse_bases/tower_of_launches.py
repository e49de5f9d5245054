"""A tower of launches for the LSEs, the merge from the larger side, block pointers with tl.trans, all heads in a loop."""

import torch
import triton
import triton.language as tl

LN2 = tl.constexpr(0.6931471805599453)


@triton.jit
def fold_kernel(x, out, N, pieces, x_m, x_n, NATURAL: tl.constexpr, FIRST: tl.constexpr, BLOCK: tl.constexpr):
    """The LSE of every BLOCK columns of a row: out[row, piece]."""
    row = tl.program_id(0).to(tl.int64)
    for piece in range(0, pieces):
        col = (piece * BLOCK + tl.arange(0, BLOCK)).to(tl.int64)
        tile = tl.load(x + row * x_m + col * x_n, mask=col < N, other=float("-inf")).to(tl.float32)
        if FIRST and not NATURAL:
            tile = tile / LN2
        m = tl.max(tile, 0)
        result = m
        if m > float("-inf"):
            if NATURAL:
                result = m + tl.log(tl.sum(tl.exp(tile - m), 0))
            else:
                result = m + tl.log2(tl.sum(tl.exp2(tile - m), 0))
        tl.store(out + row * pieces + piece, result)


def tower(x, natural):
    M = x.shape[0]
    first = True
    while first or x.shape[1] > 1:
        pieces = max(1, triton.cdiv(x.shape[1], 128))
        out = torch.empty((M, pieces), dtype=torch.float32, device=x.device)
        if M:
            fold_kernel[(M,)](x, out, x.shape[1], pieces, *x.stride(), NATURAL=natural, FIRST=first, BLOCK=128)
        x, first = out, False
    return x.view(M)


def lse(x):
    return tower(x, True)


def lse2(x):
    return tower(x, False)


@triton.jit
def merge_kernel(o_a, lse_a, o_b, lse_b, o, lse, H, D, oa_s, oa_h, oa_d, la_s, la_h, ob_s, ob_h, ob_d, lb_s, lb_h,
                 HEADS: tl.constexpr, WIDE: tl.constexpr):  # fmt: skip
    position = tl.program_id(0).to(tl.int64)
    for start in range(0, H, HEADS):
        head = (start + tl.arange(0, HEADS)).to(tl.int64)
        live = head < H
        a = tl.load(lse_a + position * la_s + head * la_h, mask=live, other=float("-inf"))
        b = tl.load(lse_b + position * lb_s + head * lb_h, mask=live, other=float("-inf"))
        high = tl.maximum(a, b)
        low = tl.minimum(a, b)
        gap = tl.where(low == float("-inf"), float("-inf"), low - high)
        ratio = tl.exp(gap)
        small = ratio / (1.0 + ratio)
        empty = high == float("-inf")
        w_a = tl.where(empty, 0.0, tl.where(a >= b, 1.0 - small, small))
        w_b = tl.where(empty, 0.0, tl.where(a >= b, small, 1.0 - small))
        tl.store(lse + position * H + head, high + tl.log(1.0 + ratio), mask=live)
        for column in range(0, D, WIDE):
            d = (column + tl.arange(0, WIDE)).to(tl.int64)
            inside = (d < D)[None, :]
            at_a = o_a + position * oa_s + head[:, None] * oa_h + d[None, :] * oa_d
            at_b = o_b + position * ob_s + head[:, None] * ob_h + d[None, :] * ob_d
            x = tl.load(at_a, mask=inside & (w_a > 0)[:, None], other=0.0).to(tl.float32)
            y = tl.load(at_b, mask=inside & (w_b > 0)[:, None], other=0.0).to(tl.float32)
            mixed = x * w_a[:, None] + y * w_b[:, None]
            at = o + (position * H + head)[:, None] * D + d[None, :]
            tl.store(at, mixed.to(o.dtype.element_ty), mask=inside & live[:, None])


def merge_natural(o_a, lse_a, o_b, lse_b):
    S, H, D = o_a.shape
    o = torch.empty((S, H, D), dtype=o_a.dtype, device=o_a.device)
    lse = torch.empty((S, H), dtype=torch.float32, device=o_a.device)
    if S:
        merge_kernel[(S,)](
            o_a, lse_a, o_b, lse_b, o, lse, H, D, *o_a.stride(), *lse_a.stride(), *o_b.stride(), *lse_b.stride(),
            HEADS=2, WIDE=64,
        )  # fmt: skip
    return o, lse


@triton.jit
def turn_kernel(lse, s, H, T, stride_h, stride_t, BLOCK: tl.constexpr):
    h = tl.program_id(0) * BLOCK
    source = tl.make_block_ptr(lse, (H, T), (stride_h, stride_t), (h, 0), (BLOCK, BLOCK), (1, 0))
    target = tl.make_block_ptr(s, (T, H), (H, 1), (0, h), (BLOCK, BLOCK), (1, 0))
    for _ in range(0, T, BLOCK):
        tile = tl.load(source, boundary_check=(0, 1), padding_option="zero")
        tile = tl.where(tl.abs(tile) == float("inf"), float("-inf"), tile / LN2)
        tl.store(target, tl.trans(tile), boundary_check=(0, 1))
        source = tl.advance(source, (0, BLOCK))
        target = tl.advance(target, (BLOCK, 0))


def to_flashinfer(lse):
    H, T = lse.shape
    s = torch.empty((T, H), dtype=torch.float32, device=lse.device)
    if T:
        turn_kernel[(triton.cdiv(H, 16),)](lse, s, H, T, *lse.stride(), BLOCK=16)
    return s


@triton.jit
def states_kernel(q, k, v, v_out, s_out, S, N, H, L, T, scale, D, k_l, k_h, k_d, v_l, v_h, v_d,
                  QUERIES: tl.constexpr, KEYS: tl.constexpr, WIDE: tl.constexpr):  # fmt: skip
    """All heads of a part for QUERIES positions: tiles [QUERIES, KEYS, WIDE]."""
    position = tl.program_id(0).to(tl.int64) * QUERIES + tl.arange(0, QUERIES)
    part = tl.program_id(1)
    d = tl.arange(0, WIDE).to(tl.int64)
    end = tl.minimum(part * T + T, L)
    for head in range(0, H):
        at = (position * H + head)[:, None] * D + d[None, :]
        ok = (position < S)[:, None] & (d < D)[None, :]
        q_tile = tl.load(q + at, mask=ok, other=0.0).to(tl.float32)[:, None, :]
        m = tl.full([QUERIES], float("-inf"), tl.float32)
        l = tl.zeros([QUERIES], tl.float32)
        acc = tl.zeros([QUERIES, WIDE], tl.float32)
        start = part * T
        while start < end:
            key = (start + tl.arange(0, KEYS)).to(tl.int64)
            inside = (key < end)[:, None] & (d < D)[None, :]
            k_tile = tl.load(k + key[:, None] * k_l + head.to(tl.int64) * k_h + d[None, :] * k_d, mask=inside, other=0.0)
            v_tile = tl.load(v + key[:, None] * v_l + head.to(tl.int64) * v_h + d[None, :] * v_d, mask=inside, other=0.0)
            score = tl.sum(q_tile * k_tile.to(tl.float32)[None, :, :], 2) * (scale / LN2)
            score = tl.where((key < end)[None, :], score, float("-inf"))
            top = tl.maximum(m, tl.max(score, 1))
            w = tl.exp2(score - top[:, None])
            keep = tl.exp2(m - top)
            acc = acc * keep[:, None] + tl.sum(w[:, :, None] * v_tile.to(tl.float32)[None, :, :], 1)
            l = l * keep + tl.sum(w, 1)
            m = top
            start += KEYS
        out = (position * N + part) * H + head
        whole = tl.where(l > 0, l, 1.0)
        tl.store(s_out + out, m + tl.log2(whole), mask=position < S)
        tl.store(v_out + out[:, None] * D + d[None, :], acc / whole[:, None], mask=ok)


def partial_states(q, k, v, num_splits, scale=None):
    S, H, D = q.shape
    L = k.shape[0]
    v_out = torch.empty((S, num_splits, H, D), dtype=torch.float32, device=q.device)
    s_out = torch.empty((S, num_splits, H), dtype=torch.float32, device=q.device)
    scale = D**-0.5 if scale is None else scale
    wide = triton.next_power_of_2(D)
    if S:
        states_kernel[(triton.cdiv(S, 4), num_splits)](
            q.contiguous(), k, v, v_out, s_out, S, num_splits, H, L, triton.cdiv(L, num_splits), scale, D,
            *k.stride(), *v.stride(), QUERIES=4, KEYS=max(1, min(16, 2048 // wide)), WIDE=wide,
        )  # fmt: skip
    return v_out, s_out
