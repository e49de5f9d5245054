"""Max first, sum second; strides taken as they come; natural exp with a conversion at the very end."""

import torch
import triton
import triton.language as tl

LN2 = tl.constexpr(0.6931471805599453)


@triton.jit
def row_lse(x_ptr, N, stride, BLOCK: tl.constexpr):
    """The natural LSE of N numbers that stand `stride` apart."""
    m = float("-inf")
    for start in range(0, N, BLOCK):
        n = (start + tl.arange(0, BLOCK)).to(tl.int64)
        x = tl.load(x_ptr + n * stride, mask=n < N, other=float("-inf"))
        m = tl.maximum(m, tl.max(x.to(tl.float32), 0))
    base = tl.where(m == float("-inf"), 0.0, m)
    l = 0.0
    for start in range(0, N, BLOCK):
        n = (start + tl.arange(0, BLOCK)).to(tl.int64)
        x = tl.load(x_ptr + n * stride, mask=n < N, other=float("-inf"))
        l += tl.sum(tl.exp(x.to(tl.float32) - base), 0)
    return base + tl.log(l)  # ln 0 is -inf: a row with no score needs no guard here


@triton.jit
def rows_kernel(x_ptr, out_ptr, N, stride_m, stride_n, BASE_2: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    value = row_lse(x_ptr + row * stride_m, N, stride_n, BLOCK)
    if BASE_2:
        value = value / LN2
    tl.store(out_ptr + row, value)


def rows(x, base_2):
    M, N = x.shape
    out = torch.empty(M, dtype=torch.float32, device=x.device)
    if M:
        rows_kernel[(M,)](x, out, N, *x.stride(), BASE_2=base_2, BLOCK=512)
    return out


def lse(x):
    return rows(x, False)


def lse2(x):
    return rows(x, True)


@triton.jit
def pair_kernel(o_a, lse_a, o_b, lse_b, o, lse, H, D, a0, a1, a2, p0, p1, b0, b1, b2, r0, r1, WIDE: tl.constexpr):
    i = tl.program_id(0).to(tl.int64)
    h = tl.program_id(1).to(tl.int64)
    d = tl.arange(0, WIDE)
    x = tl.load(lse_a + i * p0 + h * p1)
    y = tl.load(lse_b + i * r0 + h * r1)
    low = tl.minimum(x, y)
    high = tl.maximum(x, y)
    ratio = tl.where(low == float("-inf"), 0.0, tl.exp(low - high))
    big = 1.0 / (1.0 + ratio)
    p = tl.where(x >= y, big, big * ratio)
    p = tl.where(x == float("-inf"), 0.0, p)
    q = tl.where(x >= y, big * ratio, big)
    q = tl.where(y == float("-inf"), 0.0, q)
    a = tl.load(o_a + i * a0 + h * a1 + d * a2, mask=(d < D) & (p > 0), other=0.0)
    b = tl.load(o_b + i * b0 + h * b1 + d * b2, mask=(d < D) & (q > 0), other=0.0)
    tl.store(o + (i * H + h) * D + d, (p * a + q * b).to(o.dtype.element_ty), mask=d < D)
    tl.store(lse + i * H + h, high + tl.log(1.0 + ratio))


def merge_natural(o_a, lse_a, o_b, lse_b):
    S, H, D = o_a.shape
    o = torch.empty((S, H, D), dtype=o_a.dtype, device=o_a.device)
    lse = torch.empty((S, H), dtype=torch.float32, device=o_a.device)
    if S:
        strides = [step for t in (o_a, lse_a, o_b, lse_b) for step in t.stride()]
        pair_kernel[(S, H)](o_a, lse_a, o_b, lse_b, o, lse, H, D, *strides, WIDE=triton.next_power_of_2(D))
    return o, lse


@triton.jit
def one_number_kernel(lse_ptr, s_ptr, T, H, stride_h, stride_t, BLOCK: tl.constexpr):
    """A flat index into the result; where it is to be found in the input follows."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    t = at // H
    h = at % H
    x = tl.load(lse_ptr + h * stride_h + t * stride_t, mask=at < T * H, other=0.0)
    tl.store(s_ptr + at, tl.where(x < float("inf"), x / LN2, float("-inf")), mask=at < T * H)


def to_flashinfer(lse):
    H, T = lse.shape
    s = torch.empty(T, H, dtype=torch.float32, device=lse.device)
    if s.numel():
        one_number_kernel[(triton.cdiv(s.numel(), 128),)](lse, s, T, H, *lse.stride(), BLOCK=128)
    return s


@triton.jit
def states_kernel(
    q_ptr, k_ptr, v_ptr, v_out, s_out, N, H, L, T, D, scale,
    q0, q1, q2, k0, k1, k2, v0, v1, v2, WIDE: tl.constexpr,
):  # fmt: skip
    """One key a step, everything natural until s is stored."""
    i = tl.cast(tl.program_id(0) // H, tl.int64)
    h = tl.cast(tl.program_id(0) % H, tl.int64)
    n = tl.program_id(1)
    d = tl.arange(0, WIDE)
    inside = d < D
    q = tl.load(q_ptr + i * q0 + h * q1 + d * q2, mask=inside, other=0.0).to(tl.float32)
    m = tl.full((), float("-inf"), tl.float32)
    l = tl.full((), 0.0, tl.float32)
    acc = tl.zeros((WIDE,), tl.float32)
    for key in range(n * T, tl.minimum(n * T + T, L)):
        row = key.to(tl.int64)
        k = tl.load(k_ptr + row * k0 + h * k1 + d * k2, mask=inside, other=0.0).to(tl.float32)
        v = tl.load(v_ptr + row * v0 + h * v1 + d * v2, mask=inside, other=0.0).to(tl.float32)
        score = tl.sum(q * k) * scale
        top = tl.maximum(m, score)
        keep = tl.exp(m - top)
        w = tl.exp(score - top)
        acc = acc * keep + w * v
        l = l * keep + w
        m = top
    row = (i * N + n) * H + h
    if l > 0:
        tl.store(v_out + row * D + d, acc / l, mask=inside)
        tl.store(s_out + row, (m + tl.log(l)) / LN2)


def partial_states(q, k, v, num_splits, scale=None):
    S, H, D = q.shape
    L = len(k)
    v_out = torch.zeros(S, num_splits, H, D, device=q.device)
    s_out = torch.full((S, num_splits, H), float("-inf"), device=q.device)
    if S and L:
        states_kernel[(S * H, num_splits)](
            q, k, v, v_out, s_out, num_splits, H, L, triton.cdiv(L, num_splits), D, D**-0.5 if scale is None else scale,
            *q.stride(), *k.stride(), *v.stride(), WIDE=triton.next_power_of_2(D),
        )  # fmt: skip
    return v_out, s_out
