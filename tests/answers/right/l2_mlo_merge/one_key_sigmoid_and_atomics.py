"""One key a step in a while loop, a pair merged by a sigmoid of log-weights, parts poured together with atomics."""

import math

import torch
import triton
import triton.language as tl


@triton.jit
def onekey_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    m_ptr,
    l_ptr,
    o_ptr,
    L,
    T,
    scale,
    qh,
    qd,
    kl,
    kh,
    kd,
    vl,
    vh,
    vd,
    D: tl.constexpr,
    W: tl.constexpr,
):
    n = tl.program_id(0)
    h = tl.program_id(1).to(tl.int64)
    H = tl.num_programs(1)
    d = tl.arange(0, W).to(tl.int64)
    ok = d < D
    q = tl.load(q_ptr + h * qh + d * qd, mask=ok, other=0.0).to(tl.float32)
    m = float("-inf")
    l = 0.0
    acc = tl.zeros((W,), tl.float32)
    j = (n * T).to(tl.int64)
    end = tl.minimum(L, n * T + T)
    while j < end:
        k = tl.load(k_ptr + j * kl + h * kh + d * kd, mask=ok, other=0.0).to(tl.float32)
        v = tl.load(v_ptr + j * vl + h * vh + d * vd, mask=ok, other=0.0).to(tl.float32)
        s = tl.sum(q * k) * scale
        mn = tl.maximum(m, s)
        a = tl.exp(m - mn)
        p = tl.exp(s - mn)
        acc = acc * a + p * v
        l = l * a + p
        m = mn
        j += 1
    at = n * H + h
    tl.store(m_ptr + at, m)
    tl.store(l_ptr + at, l)
    if l > 0:
        acc = acc / l
    tl.store(o_ptr + at * D + d, acc, mask=ok)


def partial_attention(q, k, v, num_splits, scale=None):
    H, D = q.shape
    L = k.shape[0]
    m = torch.empty((num_splits, H), dtype=torch.float32, device=q.device)
    l = torch.empty((num_splits, H), dtype=torch.float32, device=q.device)
    o = torch.empty((num_splits, H, D), dtype=torch.float32, device=q.device)
    if scale is None:
        scale = 1 / math.sqrt(D)
    onekey_kernel[(num_splits, H)](
        q,
        k,
        v,
        m,
        l,
        o,
        L,
        triton.cdiv(L, num_splits),
        scale,
        *q.stride(),
        *k.stride(),
        *v.stride(),
        D,
        triton.next_power_of_2(D),
    )
    return m, l, o


@triton.jit
def sigmoid_pair_kernel(ma, la, oa, mb, lb, ob, m, l, o, D: tl.constexpr, W: tl.constexpr):
    h = tl.program_id(0).to(tl.int64)
    d = tl.arange(0, W)
    m_a, l_a, m_b, l_b = tl.load(ma + h), tl.load(la + h), tl.load(mb + h), tl.load(lb + h)
    x_a = tl.load(oa + h * D + d, mask=d < D, other=0.0).to(tl.float32)
    x_b = tl.load(ob + h * D + d, mask=d < D, other=0.0).to(tl.float32)
    a_ok = m_a > float("-inf")
    b_ok = m_b > float("-inf")
    if a_ok:
        if b_ok:
            t = tl.sigmoid((m_b - m_a) + tl.log(l_b / l_a))  # b's share
            top = tl.maximum(m_a, m_b)
            tl.store(m + h, top)
            tl.store(l + h, l_a * tl.exp(m_a - top) + l_b * tl.exp(m_b - top))
            tl.store(o + h * D + d, x_a * (1.0 - t) + x_b * t, mask=d < D)
        else:
            tl.store(m + h, m_a)
            tl.store(l + h, l_a)
            tl.store(o + h * D + d, x_a, mask=d < D)
    else:
        tl.store(m + h, m_b)
        tl.store(l + h, tl.where(b_ok, l_b, 0.0))
        tl.store(o + h * D + d, tl.where(b_ok, x_b, 0.0), mask=d < D)


def merge_pair(m_a, l_a, o_a, m_b, l_b, o_b):
    H, D = o_a.shape
    m = torch.empty_like(m_a, memory_format=torch.contiguous_format)
    l = torch.empty_like(m)
    o = torch.empty((H, D), dtype=o_a.dtype, device=o_a.device)
    sigmoid_pair_kernel[(H,)](
        m_a.contiguous(),
        l_a.contiguous(),
        o_a.contiguous(),
        m_b.contiguous(),
        l_b.contiguous(),
        o_b.contiguous(),
        m,
        l,
        o,
        D,
        triton.next_power_of_2(D),
        num_warps=1,
    )
    return m, l, o


@triton.jit
def top_kernel(m_ptr, top_ptr, N, m0, m1):
    h = tl.program_id(0).to(tl.int64)
    top = float("-inf")
    for n in range(N):
        top = tl.maximum(top, tl.load(m_ptr + tl.cast(n, tl.int64) * m0 + h * m1))
    tl.store(top_ptr + h, top)


@triton.jit
def pour_kernel(
    m_ptr, l_ptr, o_ptr, top_ptr, sum_ptr, acc_ptr, m0, m1, l0, l1, o0, o1, o2, D: tl.constexpr, W: tl.constexpr
):
    n = tl.program_id(0).to(tl.int64)
    h = tl.program_id(1).to(tl.int64)
    m = tl.load(m_ptr + n * m0 + h * m1)
    if m > float("-inf"):
        w = tl.exp(m - tl.load(top_ptr + h)) * tl.load(l_ptr + n * l0 + h * l1)
        tl.atomic_add(sum_ptr + h, w)
        d = tl.arange(0, W)
        o = tl.load(o_ptr + n * o0 + h * o1 + d * o2, mask=d < D, other=0.0).to(tl.float32)
        tl.atomic_add(acc_ptr + h * D + d, w * o, mask=d < D)


@triton.jit
def divide_kernel(sum_ptr, acc_ptr, out_ptr, D: tl.constexpr, W: tl.constexpr):
    h = tl.program_id(0).to(tl.int64)
    d = tl.arange(0, W)
    s = tl.load(sum_ptr + h)
    o = tl.load(acc_ptr + h * D + d, mask=d < D, other=0.0) / tl.where(s > 0, s, 1.0)
    tl.store(out_ptr + h * D + d, o, mask=d < D)


def merge_mlo(m, l, o):
    N, H, D = o.shape
    top = torch.empty(H, dtype=torch.float32, device=o.device)
    total = torch.zeros(H, dtype=torch.float32, device=o.device)
    acc = torch.zeros((H, D), dtype=torch.float32, device=o.device)
    out = torch.empty((H, D), dtype=o.dtype, device=o.device)
    W = triton.next_power_of_2(D)
    top_kernel[(H,)](m, top, N, *m.stride())
    if N:
        pour_kernel[(N, H)](m, l, o, top, total, acc, *m.stride(), *l.stride(), *o.stride(), D, W)
    divide_kernel[(H,)](total, acc, out, D, W)
    return out
