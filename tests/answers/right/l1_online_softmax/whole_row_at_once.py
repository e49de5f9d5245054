"""The whole row in one tile: no loop and no running max; attend loops, and a program takes 64 columns of v."""

import torch
import triton
import triton.language as tl


@triton.jit
def stats_kernel(x_ptr, m_ptr, l_ptr, N, stride_m, stride_n, WIDE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    n = tl.arange(0, WIDE)
    x = tl.load(x_ptr + row * stride_m + n.to(tl.int64) * stride_n, mask=n < N, other=-float("inf")).to(tl.float32)
    m = tl.max(x)
    w = tl.where(x == -float("inf"), 0.0, tl.exp(x - m))
    tl.store(m_ptr + row, m)
    tl.store(l_ptr + row, tl.sum(w))


def softmax_stats(x, block=1024):
    M, N = x.shape
    m = x.new_empty(M, dtype=torch.float32)
    l = x.new_empty(M, dtype=torch.float32)
    if M:
        stats_kernel[(M,)](x, m, l, N, *x.stride(), WIDE=triton.next_power_of_2(max(1, N)))
    return m, l


@triton.jit
def softmax_kernel(x_ptr, y_ptr, N, stride_m, stride_n, WIDE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    n = tl.arange(0, WIDE)
    x = tl.load(x_ptr + row * stride_m + n.to(tl.int64) * stride_n, mask=n < N, other=-float("inf")).to(tl.float32)
    w = tl.where(x == -float("inf"), 0.0, tl.exp(x - tl.max(x)))
    l = tl.sum(w)
    y = w / tl.where(l == 0.0, 1.0, l)
    tl.store(y_ptr + row * N + n, y.to(y_ptr.dtype.element_ty), mask=n < N)


def softmax(x, block=1024):
    M, N = x.shape
    y = torch.empty_like(x, memory_format=torch.contiguous_format)
    if x.numel():
        softmax_kernel[(M,)](x, y, N, *x.stride(), WIDE=triton.next_power_of_2(N))
    return y


@triton.jit
def attend_kernel(s_ptr, v_ptr, o_ptr, N, D, sm, sn, vn, vd, BLOCK: tl.constexpr, WIDE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    d = tl.program_id(1) * WIDE + tl.arange(0, WIDE)
    m = tl.full((), -float("inf"), tl.float32)
    l = tl.full((), 0.0, tl.float32)
    o = tl.zeros((WIDE,), tl.float32)
    for n0 in range(0, N, BLOCK):
        n = n0 + tl.arange(0, BLOCK)
        s = tl.load(s_ptr + row * sm + n.to(tl.int64) * sn, mask=n < N, other=-float("inf")).to(tl.float32)
        v = tl.load(v_ptr + n[:, None].to(tl.int64) * vn + d[None, :] * vd, mask=(n[:, None] < N) & (d[None, :] < D), other=0)
        top = tl.maximum(m, tl.max(s))
        keep = tl.where(m == -float("inf"), 0.0, tl.exp(m - top))
        w = tl.where(s == -float("inf"), 0.0, tl.exp(s - top))
        l = l * keep + tl.sum(w)
        o = o * keep + tl.sum(w[:, None] * v, 0)
        m = top
    o = tl.where(l == 0.0, 0.0, o / l)
    tl.store(o_ptr + row * D + d, o.to(o_ptr.dtype.element_ty), mask=d < D)


def attend(scores, v, block=64):
    (M, N), D = scores.shape, v.shape[1]
    o = v.new_empty(M, D)
    if M:
        grid = (M, triton.cdiv(D, 64))
        attend_kernel[grid](scores, v, o, N, D, *scores.stride(), *v.stride(), BLOCK=min(block, 128), WIDE=64)
    return o
