"""exp2 throughout, tl.dot over tiles of queries, the merge by a sigmoid, the transposition in registers."""

import torch
import triton
import triton.language as tl

LOG2E = tl.constexpr(1.4426950408889634)


@triton.jit
def lse_exp2_kernel(x_ptr, out_ptr, M, N, sr, sc, R: tl.constexpr, C: tl.constexpr):
    r = (tl.program_id(0) * R + tl.arange(0, R)).to(tl.int64)
    m = tl.full((R,), float("-inf"), tl.float32)
    l = tl.zeros((R,), tl.float32)
    for c in range(0, N, C):
        j = (c + tl.arange(0, C)).to(tl.int64)
        x = tl.load(
            x_ptr + r[:, None] * sr + j[None, :] * sc, mask=(r < M)[:, None] & (j < N)[None, :], other=float("-inf")
        ).to(tl.float32)
        mn = tl.maximum(m, tl.max(x, 1))
        z = tl.where(mn == float("-inf"), 0.0, mn)
        l = l * tl.exp2((m - z) * 1.4426950408889634) + tl.sum(tl.exp2((x - z[:, None]) * 1.4426950408889634), 1)
        m = mn
    out = tl.where(l > 0, m + tl.log2(tl.where(l > 0, l, 1.0)) * 0.6931471805599453, float("-inf"))
    tl.store(out_ptr + r, out, mask=r < M)


def lse(x):
    M, N = x.shape
    out = torch.empty(M, dtype=torch.float32, device=x.device)
    if M:
        lse_exp2_kernel[(triton.cdiv(M, 8),)](x, out, M, N, x.stride(0), x.stride(1), R=8, C=64)
    return out


@triton.jit
def lse2_nat_kernel(x_ptr, out_ptr, N, sr, sc, C: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    m = float("-inf")
    l = 0.0
    for b in range(tl.cdiv(N, C)):
        j = (b * C + tl.arange(0, C)).to(tl.int64)
        x = tl.load(x_ptr + row * sr + j * sc, mask=j < N, other=float("-inf")).to(tl.float32)
        mn = tl.maximum(m, tl.max(x, 0))
        if mn > float("-inf"):
            l = l * tl.exp2((m - mn) * LOG2E) + tl.sum(tl.exp2((x - mn) * LOG2E), 0)
            m = mn
    tl.store(out_ptr + row, m * LOG2E + tl.log2(l))


def lse2(x):
    M, N = x.shape
    out = torch.empty(M, dtype=torch.float32, device=x.device)
    if M:
        lse2_nat_kernel[(M,)](x, out, N, x.stride(0), x.stride(1), C=128, num_warps=2)
    return out


@triton.jit
def soft_kernel(
    oa, la, ob, lb, o, lse_ptr, H, a0, a1, a2, b0, b1, b2, la0, la1, lb0, lb1, D: tl.constexpr, W: tl.constexpr
):
    s = tl.program_id(0).to(tl.int64)
    h = tl.program_id(1).to(tl.int64)
    d = tl.arange(0, W).to(tl.int64)
    x = tl.load(la + s * la0 + h * la1)
    y = tl.load(lb + s * lb0 + h * lb1)
    hi = tl.maximum(x, y)
    lo = tl.minimum(x, y)
    gap = tl.where(lo == float("-inf"), float("-inf"), lo - hi)
    tl.store(lse_ptr + s * H + h, hi + tl.log(1.0 + tl.exp(gap)))
    minor = tl.exp(gap) / (1.0 + tl.exp(gap))
    w_a = tl.where(x >= y, 1.0 - minor, minor)
    w_b = 1.0 - w_a
    w_b = tl.where(x >= y, minor, 1.0 - minor)
    w_a = tl.where(x == float("-inf"), 0.0, w_a)
    w_b = tl.where(y == float("-inf"), 0.0, w_b)
    p = tl.load(oa + s * a0 + h * a1 + d * a2, mask=(d < D) & (w_a > 0.0), other=0.0).to(tl.float32)
    q = tl.load(ob + s * b0 + h * b1 + d * b2, mask=(d < D) & (w_b > 0.0), other=0.0).to(tl.float32)
    tl.store(o + (s * H + h) * D + d, (p * w_a + q * w_b).to(o.dtype.element_ty), mask=d < D)


def merge_natural(o_a, lse_a, o_b, lse_b):
    S, H, D = o_a.shape
    o = torch.empty((S, H, D), dtype=o_a.dtype, device=o_a.device)
    out = torch.empty((S, H), dtype=torch.float32, device=o_a.device)
    if S:
        soft_kernel[(S, H)](
            o_a,
            lse_a,
            o_b,
            lse_b,
            o,
            out,
            H,
            *o_a.stride(),
            *o_b.stride(),
            *lse_a.stride(),
            *lse_b.stride(),
            D,
            triton.next_power_of_2(D),
        )
    return o, out


@triton.jit
def trans_kernel(lse_ptr, s_ptr, H, T, sh, st, B: tl.constexpr):
    h = tl.program_id(0).to(tl.int64) * B + tl.arange(0, B)
    t = tl.program_id(1).to(tl.int64) * B + tl.arange(0, B)
    x = tl.load(lse_ptr + h[:, None] * sh + t[None, :] * st, mask=(h < H)[:, None] & (t < T)[None, :], other=0.0)
    x = tl.where(tl.abs(x) == float("inf"), float("-inf"), x * LOG2E)
    tl.store(s_ptr + t[:, None] * H + h[None, :], tl.trans(x), mask=(t < T)[:, None] & (h < H)[None, :])


def to_flashinfer(lse):
    H, T = lse.shape
    s = torch.empty((T, H), dtype=torch.float32, device=lse.device)
    if T:
        trans_kernel[(triton.cdiv(H, 32), triton.cdiv(T, 32))](lse, s, H, T, *lse.stride(), B=32)
    return s


@triton.jit
def tile_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    ov_ptr,
    os_ptr,
    S,
    N,
    H,
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
    D: tl.constexpr,
    R: tl.constexpr,
    C: tl.constexpr,
    W: tl.constexpr,
):
    i = (tl.program_id(0) * R + tl.arange(0, R)).to(tl.int64)
    n = tl.program_id(1)
    h = tl.program_id(2).to(tl.int64)
    d = tl.arange(0, W).to(tl.int64)
    dq = d < D
    q = tl.load(q_ptr + i[:, None] * q0 + h * q1 + d[None, :] * q2, mask=(i < S)[:, None] & dq[None, :], other=0.0).to(
        tl.float32
    )
    q = q * (scale * 1.4426950408889634)
    m = tl.full((R,), float("-inf"), tl.float32)
    l = tl.zeros((R,), tl.float32)
    acc = tl.zeros((R, W), tl.float32)
    hi = tl.minimum((n + 1) * T, L)
    for c in range(n * T, hi, C):
        j = (c + tl.arange(0, C)).to(tl.int64)
        k = tl.load(
            k_ptr + j[None, :] * kl + h * kh + d[:, None] * kd, mask=(j < hi)[None, :] & dq[:, None], other=0.0
        ).to(tl.float32)
        v = tl.load(
            v_ptr + j[:, None] * vl + h * vh + d[None, :] * vd, mask=(j < hi)[:, None] & dq[None, :], other=0.0
        ).to(tl.float32)
        s = tl.dot(q, k, input_precision="ieee") + tl.where(j < hi, 0.0, float("-inf"))[None, :]
        mn = tl.maximum(m, tl.max(s, 1))
        a = tl.exp2(m - mn)
        p = tl.exp2(s - mn[:, None])
        l = l * a + tl.sum(p, 1)
        acc = tl.dot(p, v, acc * a[:, None], input_precision="ieee")
        m = mn
    some = l > 0
    row = (i * N + n) * H + h
    tl.store(os_ptr + row, tl.where(some, m + tl.log2(tl.where(some, l, 1.0)), float("-inf")), mask=i < S)
    tl.store(
        ov_ptr + row[:, None] * D + d[None, :],
        tl.where(some[:, None], acc / tl.where(some, l, 1.0)[:, None], 0.0),
        mask=(i < S)[:, None] & dq[None, :],
    )


def partial_states(q, k, v, num_splits, scale=None):
    S, H, D = q.shape
    L = k.shape[0]
    ov = torch.empty((S, num_splits, H, D), dtype=torch.float32, device=q.device)
    os_ = torch.empty((S, num_splits, H), dtype=torch.float32, device=q.device)
    if S:
        tile_kernel[(triton.cdiv(S, 16), num_splits, H)](
            q,
            k,
            v,
            ov,
            os_,
            S,
            num_splits,
            H,
            L,
            triton.cdiv(L, num_splits),
            D**-0.5 if scale is None else scale,
            *q.stride(),
            *k.stride(),
            *v.stride(),
            D=D,
            R=16,
            C=16,
            W=max(16, triton.next_power_of_2(D)),
        )
    return ov, os_
