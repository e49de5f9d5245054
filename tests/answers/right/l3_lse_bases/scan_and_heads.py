"""A scan over pairs, two reads, all heads of a position or of a part in one program, a copy before the conversion."""

import torch
import triton
import triton.language as tl

LOG2E = tl.constexpr(1.4426950408889634)


@triton.jit
def lse_two_kernel(x_ptr, out_ptr, N, sr, sc, C: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    top = tl.full((C,), float("-inf"), tl.float32)
    for c in range(0, N, C):
        j = (c + tl.arange(0, C)).to(tl.int64)
        top = tl.maximum(top, tl.load(x_ptr + row * sr + j * sc, mask=j < N, other=float("-inf")).to(tl.float32))
    m = tl.max(top, 0)
    z = tl.where(m > float("-inf"), m, 0.0)
    acc = tl.zeros((C,), tl.float32)
    for c in range(0, N, C):
        j = (c + tl.arange(0, C)).to(tl.int64)
        acc += tl.exp(tl.load(x_ptr + row * sr + j * sc, mask=j < N, other=float("-inf")).to(tl.float32) - z)
    tl.store(out_ptr + row, z + tl.log(tl.sum(acc, 0)))


def lse(x):
    M, N = x.shape
    out = torch.empty(M, dtype=torch.float32, device=x.device)
    if M:
        lse_two_kernel[(M,)](x, out, N, x.stride(0), x.stride(1), C=256)
    return out


@triton.jit
def join2(ma, la, mb, lb):
    m = tl.maximum(ma, mb)
    z = tl.where(m == float("-inf"), 0.0, m)
    return m, la * tl.exp2(ma - z) + lb * tl.exp2(mb - z)


@triton.jit
def scan_kernel(x_ptr, out_ptr, N, sr, sc, C: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    j = tl.arange(0, C)
    m = tl.full((C,), float("-inf"), tl.float32)
    l = tl.zeros((C,), tl.float32)
    for c in range(0, N, C):
        k = (c + j).to(tl.int64)
        x = tl.load(x_ptr + row * sr + k * sc, mask=k < N, other=float("-inf")).to(tl.float32) * LOG2E
        m, l = join2(m, l, x, tl.where(x == float("-inf"), 0.0, 1.0))
    pm, pl = tl.associative_scan((m, l), 0, join2)
    s = tl.where(j == C - 1, tl.where(pl > 0, pm + tl.log2(pl), float("-inf")), float("-inf"))
    tl.store(out_ptr + row, tl.max(s, 0))


def lse2(x):
    M, N = x.shape
    out = torch.empty(M, dtype=torch.float32, device=x.device)
    if M:
        scan_kernel[(M,)](x, out, N, *x.stride(), C=32)
    return out


@triton.jit
def perpos_kernel(oa, la, ob, lb, o, lse_ptr, H: tl.constexpr, D: tl.constexpr, HB: tl.constexpr, W: tl.constexpr):
    s = tl.program_id(0).to(tl.int64)
    h = tl.arange(0, HB)
    d = tl.arange(0, W)
    x0 = tl.load(la + s * H + h, mask=h < H, other=float("-inf"))
    y0 = tl.load(lb + s * H + h, mask=h < H, other=float("-inf"))
    m = tl.maximum(x0, y0)
    z = tl.where(m == float("-inf"), 0.0, m)
    w_a = tl.exp2((x0 - z) * 1.4426950408889634)
    w_b = tl.exp2((y0 - z) * 1.4426950408889634)
    t = w_a + w_b
    tl.store(lse_ptr + s * H + h, z + tl.log(t), mask=h < H)
    r = 1.0 / tl.where(t > 0, t, 1.0)
    ok = (h < H)[:, None] & (d < D)[None, :]
    at = (s * H + h)[:, None] * D + d[None, :]
    p = tl.load(oa + at, mask=ok, other=0.0).to(tl.float32)
    q = tl.load(ob + at, mask=ok, other=0.0).to(tl.float32)
    out = tl.where((w_a == 0.0)[:, None], 0.0, p * (w_a * r)[:, None]) + tl.where(
        (w_b == 0.0)[:, None], 0.0, q * (w_b * r)[:, None]
    )
    tl.store(o + at, out, mask=ok)


def merge_natural(o_a, lse_a, o_b, lse_b):
    S, H, D = o_a.shape
    o = torch.empty((S, H, D), dtype=o_a.dtype, device=o_a.device)
    out = torch.empty((S, H), dtype=torch.float32, device=o_a.device)
    if S:
        perpos_kernel[(S,)](
            o_a.contiguous(),
            lse_a.contiguous(),
            o_b.contiguous(),
            lse_b.contiguous(),
            o,
            out,
            H,
            D,
            triton.next_power_of_2(H),
            triton.next_power_of_2(D),
        )
    return o, out


@triton.jit
def elem_kernel(x_ptr, s_ptr, n, B: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * B + tl.arange(0, B)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    y = x / 0.6931471805599453
    tl.store(s_ptr + i, tl.where(x == float("inf"), -float("inf"), y), mask=i < n)


def to_flashinfer(lse):
    x = lse.t().contiguous()
    s = torch.empty_like(x)
    if x.numel():
        elem_kernel[(triton.cdiv(x.numel(), 512),)](x, s, x.numel(), B=512)
    return s


@triton.jit
def heads_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    ov_ptr,
    os_ptr,
    N,
    L,
    T,
    scale,
    q0,
    q1,
    q2,
    kl,
    kh,
    kd,
    vl,
    vh,
    vd,
    H,
    D,
    HB: tl.constexpr,
    W: tl.constexpr,
):
    i = tl.program_id(1).to(tl.int64)
    n = tl.program_id(0)
    h = tl.arange(0, HB).to(tl.int64)
    d = tl.arange(0, W).to(tl.int64)
    ok = (h < H)[:, None] & (d < D)[None, :]
    q = tl.load(q_ptr + i * q0 + h[:, None] * q1 + d[None, :] * q2, mask=ok, other=0.0).to(tl.float32) * scale * LOG2E
    m = tl.full((HB,), float("-inf"), tl.float32)
    l = tl.zeros((HB,), tl.float32)
    acc = tl.zeros((HB, W), tl.float32)
    for step in range(0, T):
        j = tl.cast(n * T + step, tl.int64)
        live = j < L
        k = tl.load(k_ptr + j * kl + h[:, None] * kh + d[None, :] * kd, mask=ok & live, other=0.0).to(tl.float32)
        v = tl.load(v_ptr + j * vl + h[:, None] * vh + d[None, :] * vd, mask=ok & live, other=0.0).to(tl.float32)
        s = tl.where(live, tl.sum(q * k, 1), float("-inf"))
        mn = tl.maximum(m, s)
        z = tl.where(mn == float("-inf"), 0.0, mn)
        a = tl.exp2(m - z)
        p = tl.exp2(s - z)
        acc = acc * a[:, None] + p[:, None] * v
        l = l * a + p
        m = mn
    row = (i * N + n) * H + h
    tl.store(os_ptr + row, tl.where(l > 0, m + tl.log2(tl.where(l > 0, l, 1.0)), float("-inf")), mask=h < H)
    tl.store(ov_ptr + row[:, None] * D + d[None, :], acc / tl.where(l > 0, l, 1.0)[:, None], mask=ok)


def partial_states(q, k, v, num_splits, scale=None):
    S, H, D = q.shape
    L = k.shape[0]
    ov = torch.empty((S, num_splits, H, D), dtype=torch.float32, device=q.device)
    os_ = torch.empty((S, num_splits, H), dtype=torch.float32, device=q.device)
    if S:
        heads_kernel[(num_splits, S)](
            q,
            k,
            v,
            ov,
            os_,
            num_splits,
            L,
            triton.cdiv(L, num_splits),
            D**-0.5 if scale is None else scale,
            *q.stride(),
            *k.stride(),
            *v.stride(),
            H,
            D,
            triton.next_power_of_2(H),
            triton.next_power_of_2(D),
        )
    return ov, os_
