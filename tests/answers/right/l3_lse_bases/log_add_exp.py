"""Every score an LSE of its own, steps unrolled for the length, columns in chunks, the sign bit of an infinity."""

import torch
import triton
import triton.language as tl


@triton.jit
def logaddexp(a, b):
    hi = tl.maximum(a, b)
    lo = tl.minimum(a, b)
    return tl.where(lo == float("-inf"), hi, hi + tl.log(1.0 + tl.exp(lo - hi)))


@triton.jit
def added_logs(x_ptr, y_ptr, N, sr, sc, B: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    acc = tl.full([B], float("-inf"), tl.float32)
    for s in range(0, N, B):
        c = s + tl.arange(0, B)
        x = tl.load(x_ptr + row * sr + c.to(tl.int64) * sc, mask=c < N, other=float("-inf")).to(tl.float32)
        acc = logaddexp(acc, x)
    tl.store(y_ptr + row, tl.reduce(acc, 0, logaddexp))


def lse(x):
    M, N = x.shape
    y = x.new_empty(M, dtype=torch.float32)
    if M:
        added_logs[M,](x, y, N, *x.stride(), B=128)
    return y


@triton.jit
def unrolled(x_ptr, out, N: tl.constexpr, sr, sc, B: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    m = tl.full((), float("-inf"), tl.float32)
    l = tl.zeros((), tl.float32)
    STEPS: tl.constexpr = (N + B - 1) // B
    for i in tl.static_range(STEPS):
        c = i * B + tl.arange(0, B)
        x = tl.load(x_ptr + row * sr + c.to(tl.int64) * sc, mask=c < N, other=float("-inf")).to(tl.float32) * 1.4426950408889634
        new = tl.maximum(m, tl.max(x))
        if new > float("-inf"):
            l = l * tl.exp2(m - new) + tl.sum(tl.exp2(x - new))
            m = new
    tl.store(out + row, tl.where(l > 0, m + tl.log2(l), float("-inf")))


def lse2(x):
    M, N = x.shape
    y = torch.empty(M, device=x.device)
    if M:
        unrolled[(M,)](x, y, N, x.stride(0), x.stride(1), B=128)
    return y


@triton.jit
def chunked_columns(oa, la, ob, lb, o, l, H, a0, a1, a2, b0, b1, b2, la0, la1, lb0, lb1, D, C: tl.constexpr):
    i, h = tl.program_id(0).to(tl.int64), tl.program_id(1).to(tl.int64)
    a = tl.load(la + i * la0 + h * la1)
    b = tl.load(lb + i * lb0 + h * lb1)
    if a == float("-inf") and b == float("-inf"):
        for d0 in range(0, D, C):
            d = d0 + tl.arange(0, C)
            tl.store(o + (i * H + h) * D + d, tl.zeros([C], o.dtype.element_ty), mask=d < D)
        tl.store(l + i * H + h, a)
    else:
        hi = max(a, b)
        ea, eb = tl.exp(a - hi), tl.exp(b - hi)
        z = ea + eb
        for d0 in range(0, D, C):
            d = d0 + tl.arange(0, C)
            x = tl.load(oa + i * a0 + h * a1 + d.to(tl.int64) * a2, mask=(d < D) & (ea > 0), other=0.0)
            y = tl.load(ob + i * b0 + h * b1 + d.to(tl.int64) * b2, mask=(d < D) & (eb > 0), other=0.0)
            tl.store(o + (i * H + h) * D + d, (x * (ea / z) + y * (eb / z)).to(o.dtype.element_ty), mask=d < D)
        tl.store(l + i * H + h, hi + tl.log(z))


def merge_natural(o_a, lse_a, o_b, lse_b):
    S, H, D = o_a.shape
    o = torch.empty((S, H, D), dtype=o_a.dtype, device=o_a.device)
    lse = torch.empty((S, H), dtype=torch.float32, device=o_a.device)
    if S * H:
        chunked_columns[(S, H)](o_a, lse_a, o_b, lse_b, o, lse, H, *o_a.stride(), *o_b.stride(), *lse_a.stride(), *lse_b.stride(), D, C=32)
    return o, lse


@triton.jit
def flat_elements(lse, s, H, total, sh, st, B: tl.constexpr):
    e = tl.program_id(0).to(tl.int64) * B + tl.arange(0, B)
    t = e // H
    h = e % H
    bits = tl.load(lse + h * sh + t * st, mask=e < total, other=0.0)
    empty = (bits.to(tl.int32, bitcast=True) & 0x7FFFFFFF) == 0x7F800000
    x = tl.where(empty, float("-inf"), bits * 1.4426950408889634)
    tl.store(s + e, x, mask=e < total)


def to_flashinfer(lse):
    s = torch.empty(lse.shape[::-1], dtype=torch.float32, device=lse.device)
    n = s.nelement()
    if n:
        flat_elements[(triton.cdiv(n, 256),)](lse, s, lse.shape[0], n, lse.stride(0), lse.stride(1), 256)
    return s


@triton.jit
def one_state(q, kk, v, ov, os, S, N, H, L, T, scale, q0, q1, q2, k0, k1, k2, v0, v1, v2, D: tl.constexpr, BL: tl.constexpr, BD: tl.constexpr):
    pid = tl.program_id(0)
    h = pid % H
    n = pid // H % N
    i = pid // (H * N)
    i, n, h = i.to(tl.int64), n.to(tl.int64), h.to(tl.int64)
    d = tl.arange(0, BD).to(tl.int64)
    dm = d < D
    qq = tl.load(q + i * q0 + h * q1 + d * q2, mask=dm, other=0.0).to(tl.float32) * (scale * 1.4426950408889634)
    lo = n * T
    hi = tl.minimum(lo + T, L)
    m = float("-inf")
    l = 0.0
    acc = tl.zeros([BD], dtype=tl.float32)
    for start in range(lo, hi, BL):
        r = start + tl.arange(0, BL)
        x = tl.load(kk + r[:, None] * k0 + h * k1 + d[None, :] * k2, mask=(r < hi)[:, None] & dm[None, :], other=0.0).to(tl.float32)
        sc = tl.sum(x * qq[None, :], 1)
        sc = tl.where(r < hi, sc, float("-inf"))
        new = tl.maximum(m, tl.max(sc, 0))
        p = tl.exp2(sc - new)
        a = tl.exp2(m - new)
        y = tl.load(v + r[:, None] * v0 + h * v1 + d[None, :] * v2, mask=(r < hi)[:, None] & dm[None, :], other=0.0).to(tl.float32)
        acc = acc * a + tl.sum(p[:, None] * y, 0)
        l = l * a + tl.sum(p, 0)
        m = new
    out = (i * N + n) * H + h
    tl.store(ov + out * D + d, tl.where(l > 0, acc / l, 0.0), mask=dm)
    tl.store(os + out, tl.where(l > 0, m + tl.log2(l), float("-inf")))


def partial_states(q, k_, v, num_splits, scale=None):
    S, H, D = q.shape
    L = k_.shape[0]
    scale = scale if scale is not None else 1 / D**0.5
    T = triton.cdiv(L, num_splits)
    ov = torch.empty((S, num_splits, H, D), dtype=torch.float32, device=q.device)
    os = torch.empty((S, num_splits, H), dtype=torch.float32, device=q.device)
    if ov.numel():
        one_state[(S * num_splits * H,)](q, k_, v, ov, os, S, num_splits, H, L, T, scale, *q.stride(), *k_.stride(), *v.stride(), D, 32, triton.next_power_of_2(D))
    return ov, os
