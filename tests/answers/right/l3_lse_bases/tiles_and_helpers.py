"""Tiles of rows, one helper for the recurrence in base 2, lse derived from it, tl.dot for the scores of 16 queries."""

import torch
import triton
import triton.language as tl

LOG2E = tl.constexpr(1.4426950408889634)
LN2 = tl.constexpr(0.6931471805599453)


@triton.jit
def step(m, l, x):
    """Base-2 scores x[R, B] into m[R], l[R]; also the factor of the old sums and the weights."""
    top = tl.maximum(m, tl.max(x, axis=1))
    base = tl.where(top > float("-inf"), top, 0.0)
    keep = tl.exp2(m - base)
    w = tl.exp2(x - base[:, None])
    return top, l * keep + tl.sum(w, axis=1), keep, w


@triton.jit
def finish(m, l):
    """m + log2(l); -inf where there is nothing."""
    return tl.where(l > 0.0, m + tl.log2(tl.where(l > 0.0, l, 1.0)), float("-inf"))


@triton.jit
def rows_kernel(x_ptr, out_ptr, M, N, factor, R: tl.constexpr, B: tl.constexpr):
    r = tl.program_id(0) * R + tl.arange(0, R)
    m = tl.full([R], float("-inf"), tl.float32)
    l = tl.zeros([R], tl.float32)
    n0 = 0
    while n0 < N:
        n = n0 + tl.arange(0, B)
        ok = (r[:, None] < M) & (n[None, :] < N)
        x = tl.load(x_ptr + r[:, None].to(tl.int64) * N + n[None, :], mask=ok, other=float("-inf"))
        m, l, _, _ = step(m, l, x.to(tl.float32) * LOG2E)
        n0 += B
    tl.store(out_ptr + r, finish(m, l) * factor, mask=r < M)


def rows(x, factor):
    M, N = x.shape
    out = torch.empty(M, dtype=torch.float32, device=x.device)
    if M > 0:
        rows_kernel[(triton.cdiv(M, 2),)](x.contiguous(), out, M, N, factor, R=2, B=1024)
    return out


def lse(x):
    return rows(x, 0.6931471805599453)


def lse2(x):
    return rows(x, 1.0)


@triton.jit
def natural_kernel(o_a_ptr, lse_a_ptr, o_b_ptr, lse_b_ptr, o_ptr, lse_ptr, rows, D, R: tl.constexpr, C: tl.constexpr):
    r = tl.program_id(0) * R + tl.arange(0, R)
    there = r < rows
    a = tl.load(lse_a_ptr + r, mask=there, other=0.0)
    b = tl.load(lse_b_ptr + r, mask=there, other=0.0)
    top = tl.maximum(a, b)
    base = tl.where(top > float("-inf"), top, 0.0)
    w_a = tl.exp2((a - base) * LOG2E)
    w_b = tl.exp2((b - base) * LOG2E)
    total = w_a + w_b
    rate = tl.where(total > 0.0, 1.0 / total, 0.0)
    tl.store(lse_ptr + r, finish(base * LOG2E, total) * LN2, mask=there & (tl.abs(base) < 100.0))
    tl.store(lse_ptr + r, base + tl.log(total), mask=there & (tl.abs(base) >= 100.0))
    for c0 in range(0, D, C):
        c = c0 + tl.arange(0, C)
        at = r[:, None].to(tl.int64) * D + c[None, :]
        inside = there[:, None] & (c < D)[None, :]
        o_a = tl.load(o_a_ptr + at, mask=inside & (w_a > 0.0)[:, None], other=0.0).to(tl.float32)
        o_b = tl.load(o_b_ptr + at, mask=inside & (w_b > 0.0)[:, None], other=0.0).to(tl.float32)
        o = (o_a * w_a[:, None] + o_b * w_b[:, None]) * rate[:, None]
        tl.store(o_ptr + at, o.to(o_ptr.dtype.element_ty), mask=inside)


def merge_natural(o_a, lse_a, o_b, lse_b):
    S, H, D = o_a.shape
    o = torch.empty((S, H, D), dtype=o_a.dtype, device=o_a.device)
    lse = torch.empty((S, H), dtype=torch.float32, device=o_a.device)
    if S > 0:
        inputs = [t.contiguous() for t in (o_a, lse_a, o_b, lse_b)]
        natural_kernel[(triton.cdiv(S * H, 8),)](*inputs, o, lse, S * H, D, R=8, C=32)
    return o, lse


@triton.jit
def transpose_kernel(lse_ptr, s_ptr, H, T, R: tl.constexpr, C: tl.constexpr):
    """A tile is loaded heads first, transposed in registers, and stored positions first."""
    h = tl.program_id(0) * R + tl.arange(0, R)
    t = tl.program_id(1) * C + tl.arange(0, C)
    x = tl.load(lse_ptr + h[:, None] * T + t[None, :], mask=(h[:, None] < H) & (t[None, :] < T), other=0.0)
    s = tl.trans(tl.where(tl.abs(x) == float("inf"), float("-inf"), x * LOG2E))
    tl.store(s_ptr + t[:, None] * H + h[None, :], s, mask=(t[:, None] < T) & (h[None, :] < H))


def to_flashinfer(lse):
    H, T = lse.shape
    s = torch.empty((T, H), dtype=torch.float32, device=lse.device)
    if T > 0:
        transpose_kernel[(triton.cdiv(H, 16), triton.cdiv(T, 32))](lse.contiguous(), s, H, T, R=16, C=32)
    return s


@triton.jit
def states_kernel(
    q_ptr, k_ptr, v_ptr, v_out_ptr, s_out_ptr, S, N, H, L, T, D, scale, R: tl.constexpr, B: tl.constexpr,
    C: tl.constexpr,
):  # fmt: skip
    """R queries of one head against one part of the keys."""
    i = tl.program_id(0) * R + tl.arange(0, R)
    part = tl.program_id(1)
    h = tl.program_id(2)
    c = tl.arange(0, C)
    q_ok = (i < S)[:, None] & (c < D)[None, :]
    q = tl.load(q_ptr + (i[:, None] * H + h) * D + c[None, :], mask=q_ok, other=0.0)
    m = tl.full([R], float("-inf"), tl.float32)
    l = tl.zeros([R], tl.float32)
    acc = tl.zeros([R, C], tl.float32)
    end = tl.minimum(part * T + T, L)
    for start in range(part * T, end, B):
        key = start + tl.arange(0, B)
        ok = (key < end)[:, None] & (c < D)[None, :]
        at = (key[:, None].to(tl.int64) * H + h) * D + c[None, :]
        k = tl.load(k_ptr + at, mask=ok, other=0.0)
        v = tl.load(v_ptr + at, mask=ok, other=0.0)
        x = tl.dot(q, tl.trans(k), input_precision="ieee") * (scale * LOG2E)
        x = tl.where((key < end)[None, :], x, float("-inf"))
        m, l, keep, w = step(m, l, x)
        acc = acc * keep[:, None] + tl.dot(w.to(v.dtype), v, input_precision="ieee")
    row = (i.to(tl.int64) * N + part) * H + h
    tl.store(s_out_ptr + row, finish(m, l), mask=i < S)
    v_out = acc / tl.where(l > 0.0, l, 1.0)[:, None]
    tl.store(v_out_ptr + row[:, None] * D + c[None, :], v_out, mask=q_ok)


def partial_states(q, k, v, num_splits, scale=None):
    S, H, D = q.shape
    v_out = torch.empty((S, num_splits, H, D), dtype=torch.float32, device=q.device)
    s_out = torch.empty((S, num_splits, H), dtype=torch.float32, device=q.device)
    if S > 0:
        grid = (triton.cdiv(S, 16), num_splits, H)
        T = triton.cdiv(k.shape[0], num_splits)
        states_kernel[grid](
            q.contiguous(), k.contiguous(), v.contiguous(), v_out, s_out, S, num_splits, H, k.shape[0], T, D,
            D**-0.5 if scale is None else scale, R=16, B=16, C=max(16, triton.next_power_of_2(D)),
        )  # fmt: skip
    return v_out, s_out
