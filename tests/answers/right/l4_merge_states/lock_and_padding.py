"""Padded columns, descriptors made by the host, a lock around many states, a namedtuple for states."""

from collections import namedtuple

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

State = namedtuple("State", ["v", "s"])
NEG = tl.constexpr(float("-inf"))


def pad(x, width):
    """Copies x into rows of `width` columns, zeros after its own."""
    D = x.size(-1)
    if D == width:
        return x.contiguous()
    out = x.new_zeros((*x.shape[:-1], width))
    out.narrow(-1, 0, D).copy_(x)
    return out


@triton.jit
def weights(a, b):
    m = tl.maximum(a, b)
    k = tl.where(m == NEG, 0.0, m)
    wa = tl.exp2(a - k)
    wb = tl.exp2(b - k)
    return m, wa, wb


@triton.jit
def two(va, vb, vo, sa, sb, s, rows, R: tl.constexpr, W: tl.constexpr):
    """va, vb, vo: descriptors of [rows, W]."""
    first = tl.program_id(0) * R
    i = first + tl.arange(0, R)
    a = tl.load(sa + i, mask=i < rows, other=NEG)
    b = tl.load(sb + i, mask=i < rows, other=NEG)
    m, wa, wb = weights(a, b)
    t = wa + wb
    t = tl.where(t == 0, 1.0, t)
    x = va.load([first, 0]).to(tl.float32)
    y = vb.load([first, 0]).to(tl.float32)
    o = tl.where(wa[:, None] == 0, 0.0, x * (wa / t)[:, None]) + tl.where(wb[:, None] == 0, 0.0, y * (wb / t)[:, None])
    vo.store([first, 0], o.to(vo.dtype))
    tl.store(s + i, m + tl.log2(t), mask=i < rows)


def merge_state(v_a, s_a, v_b, s_b):
    S, H, D = v_a.shape
    if not S:
        return State(torch.zeros_like(v_a), torch.zeros_like(s_a))
    W = max(16, triton.next_power_of_2(D))
    rows, R = S * H, 8
    v_a, v_b = pad(v_a, W).view(rows, W), pad(v_b, W).view(rows, W)
    v, s = torch.empty_like(v_a), torch.empty(S, H, device=v_a.device)
    a, b, o = (TensorDescriptor.from_tensor(x, [R, W]) for x in (v_a, v_b, v))
    two[(triton.cdiv(rows, R),)](a, b, o, s_a.contiguous(), s_b.contiguous(), s, rows, R, W)
    return State(v.view(S, H, W)[..., :D], s)


@triton.jit
def rows_kernel(
    v,
    s,
    vo,
    so,
    mask,
    v0,
    v1,
    v2,
    s0,
    s1,
    o0,
    o1,
    o2,
    t0,
    t1,
    m0,
    S,
    H,
    D: tl.constexpr,
    R: tl.constexpr,
    W: tl.constexpr,
    HAS: tl.constexpr,
):
    """Tiles [R, H's, W]: R positions of one head."""
    h = tl.program_id(1).to(tl.int64)
    i = (tl.program_id(0) * R + tl.arange(0, R)).to(tl.int64)
    live = i < S
    if HAS:
        live = live & tl.load(mask + i * m0, mask=live, other=0).to(tl.int1)
    a = tl.load(s + i * s0 + h * s1, mask=live, other=NEG)
    b = tl.load(so + i * t0 + h * t1, mask=live, other=NEG)
    m, wa, wb = weights(a, b)
    t = tl.where(m == NEG, 1.0, wa + wb)
    d = tl.arange(0, W)[None, :]
    at = v + i[:, None] * v0 + h * v1 + d * v2
    x = tl.load(at, mask=(wa > 0)[:, None] & (d < D), other=0.0).to(tl.float32)
    y = tl.load(vo + i[:, None] * o0 + h * o1 + d * o2, mask=(wb > 0)[:, None] & (d < D), other=0.0).to(tl.float32)
    r = tl.fdiv(x * wa[:, None] + y * wb[:, None], t[:, None] + tl.zeros_like(x))
    tl.store(at, r.to(v.dtype.element_ty), mask=live[:, None] & (d < D))
    tl.store(s + i * s0 + h * s1, m + tl.log2(t), mask=live)


def merge_state_in_place(v, s, v_other, s_other, mask=None):
    S, H, D = v.shape
    if S > 0:
        rows_kernel[triton.cdiv(S, 8), H](
            v, s, v_other, s_other, mask, *v.stride(), *s.stride(), *v_other.stride(), *s_other.stride(),
            0 if mask is None else mask.stride(0), S, H, D=D, R=8, W=triton.next_power_of_2(D), HAS=mask is not None,
        )  # fmt: skip


@triton.jit
def locked(v, s, lock, m_out, t_out, acc_out, N, H, D, PER, NB: tl.constexpr, W: tl.constexpr):
    """grid (splits of N, S * H)"""
    row = tl.program_id(1)
    i, h = row // H, row % H
    d = tl.arange(0, W)
    m = tl.full((), NEG, tl.float32)
    t = tl.full((), 0.0, tl.float32)
    acc = tl.zeros([W], tl.float32)
    end = tl.minimum((tl.program_id(0) + 1) * PER, N)
    for first in range(tl.program_id(0) * PER, end, NB):
        n = first + tl.arange(0, NB)
        at = (i.to(tl.int64) * N + n) * H + h
        s_n = tl.load(s + at, mask=n < end, other=NEG)
        new = tl.maximum(m, tl.max(s_n, 0))
        k = tl.where(new == NEG, 0.0, new)
        w = tl.exp2(s_n - k)
        x = tl.load(v + at[:, None] * D + d[None, :], mask=(w > 0)[:, None] & (d < D)[None, :], other=0.0)
        acc = acc * tl.exp2(m - k) + tl.sum(x.to(tl.float32) * w[:, None], 0)
        t = t * tl.exp2(m - k) + tl.sum(w, 0)
        m = new
    if m > NEG:
        while tl.atomic_cas(lock + row, 0, 1) != 0:
            pass
        m_old = tl.load(m_out + row, volatile=True)
        t_old = tl.load(t_out + row, volatile=True)
        acc_old = tl.load(acc_out + row.to(tl.int64) * W + d, volatile=True)
        new = tl.maximum(m, m_old)
        tl.store(acc_out + row.to(tl.int64) * W + d, acc * tl.exp2(m - new) + acc_old * tl.exp2(m_old - new))
        tl.store(t_out + row, t * tl.exp2(m - new) + t_old * tl.exp2(m_old - new))
        tl.store(m_out + row, new)
        tl.debug_barrier()
        tl.atomic_xchg(lock + row, 0)


@triton.jit
def finish(m_in, t_in, acc_in, v, s, rows, D, R: tl.constexpr, W: tl.constexpr):
    i = (tl.program_id(0) * R + tl.arange(0, R)).to(tl.int64)
    d = tl.arange(0, W)[None, :]
    t = tl.load(t_in + i, mask=i < rows, other=1.0)
    t = tl.where(t == 0.0, 1.0, t)
    acc = tl.load(acc_in + i[:, None] * W + d, mask=(i < rows)[:, None], other=0.0)
    tl.store(v + i[:, None] * D + d, (acc / t[:, None]).to(v.dtype.element_ty), mask=(i < rows)[:, None] & (d < D))
    tl.store(s + i, tl.load(m_in + i, mask=i < rows, other=0.0) + tl.log2(t), mask=i < rows)


def merge_states(v, s):
    S, N, H, D = v.shape
    if N <= 256:
        ends = torch.arange(S + 1, device=v.device, dtype=torch.int32) * N
        return variable_length_merge_states(v.reshape(S * N, H, D), s.reshape(S * N, H), ends)
    v, s = v.contiguous(), s.contiguous()
    rows, W = S * H, triton.next_power_of_2(D)
    out = State(v.new_empty(S, H, D), s.new_empty(S, H))
    if rows == 0:
        return out
    m = s.new_full((rows,), float("-inf"))
    t, acc = s.new_zeros(rows), s.new_zeros(rows, W)
    lock = torch.zeros(rows, dtype=torch.int32, device=v.device)
    if N:
        PER = 256
        locked[triton.cdiv(N, PER), rows](v, s, lock, m, t, acc, N, H, D, PER, NB=16, W=W)
    finish[(triton.cdiv(rows, 4),)](m, t, acc, out.v, out.s, rows, D, R=4, W=W)
    return out


@triton.jit
def run_sum(v, s, indptr, out_v, out_s, H, D, W: tl.constexpr):
    h, i = tl.program_id(0), tl.program_id(1)
    begin, end = tl.load(indptr + i), tl.load(indptr + i + 1)
    m = tl.full([], NEG, tl.float32)
    for j in range(begin, end):
        m = tl.maximum(m, tl.load(s + j.to(tl.int64) * H + h))
    k = tl.where(m == NEG, 0.0, m)
    d = tl.arange(0, W)
    t = 0.0
    acc = tl.zeros([W], tl.float32)
    for j in range(begin, end):
        at = j.to(tl.int64) * H + h
        w = tl.exp2(tl.load(s + at) - k)
        t += w
        acc = tl.fma(
            tl.load(v + at * D + d, mask=(d < D) & (w > 0), other=0.0).to(tl.float32),
            tl.zeros([W], tl.float32) + w,
            acc,
        )
    t = tl.where(t == 0.0, 1.0, t)
    at = i * H + h
    tl.store(out_v + at.to(tl.int64) * D + d, (acc / t).to(out_v.dtype.element_ty), mask=d < D)
    tl.store(out_s + at, m + tl.log2(t))


def variable_length_merge_states(v, s, indptr):
    S = indptr.shape[0] - 1
    _, H, D = v.shape
    out = State(
        torch.empty((S, H, D), dtype=v.dtype, device=v.device),
        torch.empty((S, H), dtype=torch.float32, device=v.device),
    )
    if S > 0:
        v, s, indptr = v.contiguous(), s.contiguous(), indptr.contiguous()
        run_sum[(H, S)](v, s, indptr, *out, H, D, triton.next_power_of_2(D))
    return out
