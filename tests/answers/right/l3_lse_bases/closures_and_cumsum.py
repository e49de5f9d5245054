"""Kernels made by a function for a base, cumulative sums, math as methods, inference mode, one axis of programs."""

import itertools
import math

import torch
import triton
import triton.language as tl


def made_for(base: float):
    """(a kernel for LSEs, its wrapper) of this base."""
    PER = tl.constexpr(1 / math.log(base))
    BACK = tl.constexpr(math.log(base))

    @triton.jit
    def kernel(x, out, N, by: tl.constexpr, B: tl.constexpr):
        row = tl.program_id(0).to(tl.int64)
        lane = tl.arange(0, B)
        top = tl.full([], float("-inf"), tl.float32)
        for first in range(0, N, B):
            e = tl.load(x + row * by[0] + (first + lane).to(tl.int64) * by[1], mask=first + lane < N, other=float("-inf"))
            top = tl.maximum(top, e.to(tl.float32).max(0))
        if top == float("-inf"):
            tl.store(out + row, top)
            return
        total = tl.full([], 0.0, tl.float32)
        for first in range(0, N, B):
            e = tl.load(x + row * by[0] + (first + lane).to(tl.int64) * by[1], mask=first + lane < N, other=float("-inf"))
            running = tl.cumsum(((e.to(tl.float32) - top) * 1.4426950408889634).exp2(), 0)
            total += tl.max(running, 0)
        tl.store(out + row, top * PER + total.log2() / (BACK * 1.4426950408889634))

    @torch.inference_mode()
    def wrapper(x):
        out = torch.empty(len(x), dtype=torch.float32, device=x.device)
        if len(x):
            kernel[len(x),](
                x, out, x.shape[1], tuple(x.stride()), B=min(1024, max(2, triton.next_power_of_2(x.shape[1])))
            )
        return out

    return wrapper


lse, lse2 = made_for(math.e), made_for(2.0)


@triton.jit
def pair(oa, la, ob, lb, o, l, S, H, D, by, C: tl.constexpr):
    """One axis of programs: position, head and block of columns."""
    blocks = tl.cdiv(D, C)
    pid = tl.program_id(0)
    block, h, i = pid % blocks, ((pid // blocks) % H).to(tl.int64), (pid // blocks // H).to(tl.int64)
    d = block * C + tl.arange(0, C)
    a = tl.load(la + i * by[3] + h * by[4])
    b = tl.load(lb + i * by[8] + h * by[9])
    total, wa, wb = 0.0, 0.0, 0.0
    top = tl.maximum(a, b)
    if top > float("-inf"):
        wa = tl.exp(a - top)
        wb = tl.exp(b - top)
        total = wa + wb
        top += tl.log(total)
        wa /= total
        wb /= total
    out = tl.zeros([C], tl.float32)
    if wa > 0:
        out += wa * tl.load(oa + i * by[0] + h * by[1] + d * by[2], mask=d < D, other=0.0).to(tl.float32)
    if wb > 0:
        out += wb * tl.load(ob + i * by[5] + h * by[6] + d * by[7], mask=d < D, other=0.0).to(tl.float32)
    at = i * H + h
    tl.store(o + at * D + d, out.to(o.dtype.element_ty), mask=d < D)
    if block == 0:
        tl.store(l + at, top)


@torch.no_grad()
def merge_natural(o_a, lse_a, o_b, lse_b):
    S, H, D = o_a.shape
    o, l = (
        torch.empty(o_a.shape, dtype=o_a.dtype, device=o_a.device),
        torch.empty(S, H, dtype=torch.float32, device=o_a.device),
    )
    by = tuple(itertools.chain(o_a.stride(), lse_a.stride(), o_b.stride(), lse_b.stride()))
    if S:
        pair[(S * H * triton.cdiv(D, 32),)](o_a, lse_a, o_b, lse_b, o, l, S, H, D, by, 32)
    return o, l


@triton.jit
def columns(x, s, H, T, x0, x1, B: tl.constexpr):
    """A program a head."""
    h = tl.program_id(0).to(tl.int64)
    for t in range(0, T, B):
        i = (t + tl.arange(0, B)).to(tl.int64)
        e = tl.load(x + h * x0 + i * x1, mask=i < T, other=0.0)
        e = tl.where(e == float("inf"), float("-inf"), e)
        tl.store(s + i * H + h, e / 0.6931471805599453, mask=i < T)


def to_flashinfer(lse):
    s = torch.zeros(lse.shape[::-1], dtype=torch.float32, device=lse.device)
    if lse.numel():
        columns[(lse.shape[0],)](lse, s, *lse.shape, *lse.stride(), B=64)
    return s


@triton.jit
def part(
    q,
    k,
    v,
    vo,
    so,
    S,
    N,
    H,
    L,
    T,
    scale,
    q_by,
    k_by,
    v_by,
    D: tl.constexpr,
    W: tl.constexpr,
    B: tl.constexpr,
    R: tl.constexpr,
):
    """R positions of one part and head: tiles [R, B, W] of products. Two passes over the part: max first."""
    n, h = tl.program_id(1), tl.program_id(2).to(tl.int64)
    i = (tl.program_id(0) * R + tl.arange(0, R)).to(tl.int64)
    d = tl.arange(0, W)
    x = tl.load(
        q + i[:, None] * q_by[0] + h * q_by[1] + d[None, :] * q_by[2],
        mask=(i < S)[:, None] & (d < D)[None, :],
        other=0.0,
    )
    x = x.to(tl.float32) * (scale * 1.4426950408889634)
    m = tl.full([R], float("-inf"), tl.float32)
    l = tl.zeros([R], tl.float32)
    acc = tl.zeros([R, W], tl.float32)
    end = tl.minimum((n + 1) * T, L)
    for first in tl.range(n * T, end, B):
        j = (first + tl.arange(0, B)).to(tl.int64)
        ok = (j < end)[:, None] & (d < D)[None, :]
        kk = tl.load(k + j[:, None] * k_by[0] + h * k_by[1] + d[None, :] * k_by[2], mask=ok, other=0.0).to(tl.float32)
        vv = tl.load(v + j[:, None] * v_by[0] + h * v_by[1] + d[None, :] * v_by[2], mask=ok, other=0.0).to(tl.float32)
        e = tl.sum(x[:, None, :] * kk[None, :, :], axis=2)
        e = tl.where((j < end)[None, :], e, float("-inf"))
        new = tl.maximum(m, e.max(1))
        w = (e - new[:, None]).exp2()
        keep = (m - new).exp2()
        l = l * keep + w.sum(1)
        acc = acc * keep[:, None] + tl.sum(w[:, :, None] * vv[None, :, :], axis=1)
        m = new
    l = tl.where(l == 0, 1.0, l)
    at = (i * N + n) * H + h
    tl.store(so + at, m + l.log2(), mask=i < S)
    tl.store(vo + at[:, None] * D + d[None, :], acc / l[:, None], mask=(i < S)[:, None] & (d < D)[None, :])


def partial_states(q, k, v, num_splits, scale=None):
    S, H, D = q.shape
    out = tuple(torch.empty(S, num_splits, H, *more, device=q.device, dtype=torch.float32) for more in ((D,), ()))
    if S:
        part[(triton.cdiv(S, 2), num_splits, H)](
            q, k, v, *out, S, num_splits, H, len(k), -(len(k) // -num_splits), D**-0.5 if scale is None else scale,
            q.stride(), k.stride(), v.stride(), D=D, W=triton.next_power_of_2(D), B=4, R=2,
        )  # fmt: skip
    return out
