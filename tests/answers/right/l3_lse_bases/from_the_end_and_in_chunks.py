"""Blocks from the end, chunks that a second launch joins, axes swapped by tl.permute."""

import math

import torch
import triton
import triton.language as tl


@triton.jit
def from_the_end(x_ptr, out, N, sr, sc, B: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    m = tl.full([1], float("-inf"), tl.float32)
    l = tl.zeros([1], tl.float32)
    last = (N - 1) // B
    for j in range(last, -1, -1):
        c = j * B + tl.arange(0, B)
        ok = (c >= 0) & (c < N)
        x = tl.load(x_ptr + row * sr + c.to(tl.int64) * sc, mask=ok, other=float("-inf")).to(tl.float32)
        hi = x.max(0, keep_dims=True)
        new = tl.maximum(m, hi)
        safe = tl.where(new > float("-inf"), new, 0.0)
        l = l * (m - safe).exp() + (x - safe).exp().sum(0, keep_dims=True)
        m = new
    tl.store(out + row + tl.arange(0, 1), m + tl.log(l))


def lse(x):
    M, N = x.shape
    y = torch.empty((M,), dtype=torch.float32, device=x.device)
    if M:
        from_the_end[(M,)](x, y, N, x.stride(0), x.stride(1), B=64)
    return y


@triton.jit
def chunk(x_ptr, part_m, part_l, N, sr, sc, CH: tl.constexpr, B: tl.constexpr):
    row = tl.program_id(1).to(tl.int64)
    c0 = tl.program_id(0) * CH
    m = float("-inf")
    l = 0.0
    for i in tl.static_range(0, CH, B):
        c = c0 + i + tl.arange(0, B)
        x = tl.load(x_ptr + row * sr + c.to(tl.int64) * sc, mask=c < N, other=float("-inf")).to(tl.float32) / 0.6931471805599453
        new = tl.maximum(m, tl.max(x, 0))
        z = tl.where(new == float("-inf"), 0.0, new)
        l = l * tl.exp2(m - z) + tl.sum(tl.exp2(x - z), 0)
        m = new
    at = row * tl.num_programs(0) + tl.program_id(0)
    tl.store(part_m + at, m)
    tl.store(part_l + at, l)


@triton.jit
def join(part_m, part_l, out, C, BC: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BC)
    m = tl.load(part_m + row * C + c, mask=c < C, other=float("-inf"))
    l = tl.load(part_l + row * C + c, mask=c < C, other=0.0)
    hi = tl.max(m, 0)
    z = tl.where(hi == float("-inf"), 0.0, hi)
    tl.store(out + row, z + tl.log2(tl.sum(l * tl.exp2(m - z), 0)))


def lse2(x):
    M, N = x.shape
    y = torch.empty(M, dtype=torch.float32, device=x.device)
    if M == 0:
        return y
    C = max(1, triton.cdiv(N, 256))
    pm, pl = torch.empty((2, M, C), dtype=torch.float32, device=x.device)
    chunk[(C, M)](x, pm, pl, N, x.stride(0), x.stride(1), 256, 64)
    join[(M,)](pm, pl, y, C, triton.next_power_of_2(C))
    return y


@triton.jit
def sigmoid(oa, la, ob, lb, o, l, n, D: tl.constexpr, R: tl.constexpr, C: tl.constexpr):
    r = tl.program_id(0) * R + tl.arange(0, R)
    r = r.to(tl.int64)
    c = tl.arange(0, C)
    a = tl.load(la + r, mask=r < n, other=float("-inf"))
    b = tl.load(lb + r, mask=r < n, other=float("-inf"))
    both = (a == float("-inf")) & (b == float("-inf"))
    diff = tl.where(both, 0.0, b - a)
    wb = tl.sigmoid(diff)
    wa = tl.sigmoid(-diff)
    wa = tl.where(a == float("-inf"), 0.0, wa)
    wb = tl.where(b == float("-inf"), 0.0, wb)
    at = r[:, None] * D + c
    x = tl.load(oa + at, mask=(wa[:, None] > 0) & (c < D), other=0.0).to(tl.float32)
    y = tl.load(ob + at, mask=(wb[:, None] > 0) & (c < D), other=0.0).to(tl.float32)
    tl.store(o + at, (wa[:, None] * x + wb[:, None] * y).to(o.dtype.element_ty), mask=(r[:, None] < n) & (c < D))
    hi = tl.maximum(a, b)
    tl.store(l + r, hi + tl.log(1 + tl.exp(-tl.abs(diff))) * tl.where(both, 0.0, 1.0), mask=r < n)


def merge_natural(o_a, lse_a, o_b, lse_b):
    S, H, D = o_a.shape
    o = torch.empty(S, H, D, dtype=o_a.dtype, device=o_a.device)
    lse = torch.empty(S, H, dtype=torch.float32, device=o_a.device)
    C = triton.next_power_of_2(D)
    R = 4
    if S * H:
        sigmoid[(triton.cdiv(S * H, R), 1, 1)](o_a.contiguous(), lse_a.contiguous(), o_b.contiguous(), lse_b.contiguous(), o, lse, S * H, D, R, C)
    return o, lse


@triton.jit
def swapped(lse, s, H, T, sh, st, BH: tl.constexpr, BT: tl.constexpr):
    h = tl.expand_dims(tl.program_id(1) * BH + tl.arange(0, BH), 1)
    t = tl.expand_dims(tl.program_id(0) * BT + tl.arange(0, BT), 0)
    x = tl.load(lse + h.to(tl.int64) * sh + t.to(tl.int64) * st, mask=(h < H) & (t < T), other=float("-inf"))
    x = tl.where(tl.abs(x) == float("inf"), float("-inf"), x / 0.6931471805599453)
    x = tl.permute(x, (1, 0))
    h = tl.permute(h, 1, 0)
    t = t.trans()
    tl.store(s + t.to(tl.int64) * H + h, x, mask=(t < T) & (h < H))


def to_flashinfer(lse):
    H, T = lse.shape
    s = lse.new_empty(T, H)
    if s.numel():
        swapped[(triton.cdiv(T, 32), triton.cdiv(H, 8))](lse, s, H, T, *lse.stride(), BH=8, BT=32)
    return s


@triton.jit
def tile(q, kk, v, ov, os, S, N, L, T, qk_scale, qs: tl.constexpr, H: tl.constexpr, k0, k1, k2, v0, v1, v2, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr):
    n, h, i0 = tl.program_id(0), tl.program_id(1), tl.program_id(2) * BM
    i = i0 + tl.arange(0, BM)
    d = tl.arange(0, BD)
    dm = d[None, :] < D
    x = tl.load(q + i[:, None].to(tl.int64) * (H * D) + h * D + d[None, :], mask=(i[:, None] < S) & dm, other=0.0)
    x = (x.to(tl.float32) * qk_scale)
    lo = n * T
    hi = tl.minimum(lo + T, L)
    m = tl.full([BM], float("-inf"), tl.float32)
    l = tl.zeros([BM], tl.float32)
    acc = tl.zeros([BM, BD], tl.float32)
    for j in tl.range(lo, hi, BN):
        r = (j + tl.arange(0, BN)).to(tl.int64)
        ok = r < hi
        y = tl.load(kk + r[:, None] * k0 + h.to(tl.int64) * k1 + d[None, :].to(tl.int64) * k2, mask=ok[:, None] & dm, other=0.0).to(tl.float32)
        z = tl.load(v + r[:, None] * v0 + h.to(tl.int64) * v1 + d[None, :].to(tl.int64) * v2, mask=ok[:, None] & dm, other=0.0).to(tl.float32)
        s = tl.dot(x, tl.trans(y), input_precision="ieee")
        s = tl.where(ok[None, :], s, float("-inf"))
        new = tl.maximum(m, tl.max(s, 1))
        p = tl.math.exp2(s - new[:, None])
        a = tl.math.exp2(m - new)
        acc = tl.dot(p, z, acc * a[:, None], input_precision="ieee")
        l = tl.math.fma(l, a, tl.sum(p, 1))
        m = new
    row = (i.to(tl.int64) * N + n) * H + h
    live = l > 0
    one = tl.where(live, l, 1.0)
    tl.store(ov + row[:, None] * D + d[None, :], tl.where(live[:, None], acc / one[:, None], 0.0), mask=(i[:, None] < S) & dm)
    tl.store(os + row, tl.where(live, m + tl.log2(one), float("-inf")), mask=i < S)


def partial_states(q, k_, v, num_splits, scale=None):
    (S, H, D), L, N = q.shape, k_.shape[0], num_splits
    ov = torch.empty(S, N, H, D, dtype=torch.float32, device=q.device)
    os = torch.empty(S, N, H, dtype=torch.float32, device=q.device)
    if S * H:
        qk_scale = (D**-0.5 if scale is None else scale) * math.log2(math.e)
        tile[(N, H, triton.cdiv(S, 16))](q.contiguous(), k_, v, ov, os, S, N, L, triton.cdiv(L, N), qk_scale, H * D, H, *k_.stride(), *v.stride(), D, 16, 16, max(16, triton.next_power_of_2(D)))
    return ov, os
