"""Statistics in float64, rows dealt out to four programs, tl.swizzle2d over tiles of rows and columns."""

import torch
import triton
import triton.language as tl


@triton.jit
def double_stats(x_ptr, m_ptr, l_ptr, N, sr, sc, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    m = tl.full((), float("-inf"), tl.float64)
    l = tl.full((), 0, tl.float64)
    for start in range(0, N, BLOCK):
        c = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * sr + c.to(tl.int64) * sc, mask=c < N, other=float("-inf")).to(tl.float64)
        new = tl.maximum(m, tl.max(x, axis=0))
        safe = tl.where(new == float("-inf"), tl.full((), 0.0, tl.float64), new)
        l = l * tl.exp(m - safe) + tl.sum(tl.exp(x - safe), axis=0)
        m = new
    tl.store(m_ptr + row, m.to(tl.float32))
    tl.store(l_ptr + row, l.to(tl.float32))


def softmax_stats(x, block=1024):
    M, N = x.shape
    m, l = (torch.empty((M,), dtype=torch.float32, device=x.device) for _ in range(2))
    if M:
        double_stats[(M,)](x, m, l, N, x.stride(0), x.stride(1), BLOCK=min(block, 512))
    return m, l


@triton.jit
def dealt_rows(out, inp, rs_out, rs_in, cs_in, n_rows, n_cols, BLOCK: tl.constexpr, num_stages: tl.constexpr):
    start = tl.program_id(0)
    step = tl.num_programs(0)
    for row in tl.range(start, n_rows, step, num_stages=num_stages, flatten=True):
        base = inp + tl.cast(row, tl.int64) * rs_in
        offs = tl.arange(0, BLOCK)
        x = tl.load(base + tl.cast(offs, tl.int64) * cs_in, mask=offs < n_cols, other=-float("inf"), cache_modifier=".cg")
        x = x.to(tl.float32)
        top = tl.max(x, axis=0)
        top = tl.where(top == float("-inf"), 0.0, top)
        num = tl.exp(x - top)
        den = tl.sum(num, axis=0)
        y = tl.fdiv(num, tl.maximum(den, 1e-30), ieee_rounding=True)
        tl.store(out + tl.cast(row, tl.int64) * rs_out + offs, y, mask=offs < n_cols)


def softmax(x: torch.Tensor, block: int = 1024):
    n_rows, n_cols = x.shape
    BLOCK = triton.next_power_of_2(max(1, n_cols))
    y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if n_rows == 0 or n_cols == 0:
        return y
    num_programs = min(n_rows, 4)
    dealt_rows[(num_programs, 1, 1)](y, x, y.stride(0), x.stride(0), x.stride(1), n_rows, n_cols, BLOCK, 2)
    return y


@triton.jit
def swizzled_tiles(s, v, o, M, N, D, ss, st, vs, vt, BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr, LOG2E: tl.constexpr = 1.4426950408889634):
    nd = tl.cdiv(D, BD)
    pid = tl.program_id(0)
    pm, pd = tl.swizzle2d(pid // nd, pid % nd, tl.cdiv(M, BM), nd, 2)
    m_i = pm * BM + tl.arange(0, BM)
    d = pd * BD + tl.arange(0, BD)
    mm, dm = m_i < M, d < D
    m64, d64 = m_i.to(tl.int64), d.to(tl.int64)
    top = tl.full([BM, 1], float("-inf"), tl.float32)
    den = tl.zeros([BM, 1], tl.float32)
    acc = tl.zeros([BM, BD], tl.float32)
    sp = s + m64[:, None] * ss + tl.arange(0, BN)[None, :].to(tl.int64) * st
    many = tl.full((), BN, tl.int64)  # BN * vs may pass 2^31
    vp = v + tl.arange(0, BN)[:, None].to(tl.int64) * vs + d64[None, :] * vt
    for n in tl.range(0, N, BN):
        keys = n + tl.arange(0, BN)
        x = tl.load(sp, mask=mm[:, None] & (keys < N)[None, :], other=float("-inf")).to(tl.float32) * LOG2E
        new = tl.maximum(top, tl.max(x, axis=1, keep_dims=True))
        ref = tl.where(new == float("-inf"), 0.0, new)
        p = tl.exp2(x - ref)
        r = tl.exp2(top - ref)
        den = den * r + tl.sum(p, axis=1, keep_dims=True)
        y = tl.load(vp, mask=(keys < N)[:, None] & dm[None, :], other=0.0).to(tl.float32)
        acc = acc * r + tl.sum(tl.expand_dims(p, 2) * tl.expand_dims(y, 0), axis=1)
        top = new
        sp += many * st
        vp += many * vs
    acc = tl.where(den > 0.0, acc / den, 0.0)
    tl.store(o + m64[:, None] * D + d64[None, :], acc, mask=mm[:, None] & dm[None, :])


def attend(scores, v, block=64):
    M, N = scores.shape
    D = v.shape[1]
    o = torch.empty([M, D], dtype=v.dtype, device=v.device)
    if M == 0:
        return o
    BM, BN, BD = 4, min(16, block), min(64, triton.next_power_of_2(D))
    swizzled_tiles[(triton.cdiv(M, BM) * triton.cdiv(D, BD),)](scores, v, o, M, N, D, *scores.stride(), *v.stride(), BM, BN, BD)
    return o
