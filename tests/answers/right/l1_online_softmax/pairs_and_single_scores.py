"""(m, l) pairs joined by tl.reduce, block pointers over tiles of two rows, one score a step with branches."""

import torch
import triton
import triton.language as tl


@triton.jit
def join(ma, la, mb, lb):
    m = tl.maximum(ma, mb)
    safe = tl.where(m == float("-inf"), 0.0, m)
    return m, la * tl.exp(ma - safe) + lb * tl.exp(mb - safe)


@triton.jit
def pair_kernel(x_ptr, m_ptr, l_ptr, N, sr, sc, C: tl.constexpr):
    pid = tl.program_id(0)
    base = x_ptr + pid.to(tl.int64) * sr
    m = float("-inf")
    l = 0.0
    start = 0
    while start < N:
        j = start + tl.arange(0, C)
        x = tl.load(base + j.to(tl.int64) * sc, mask=j < N, other=float("-inf")).to(tl.float32)
        one = tl.where(x == float("-inf"), 0.0, 1.0)
        bm, bl = tl.reduce((x, one), 0, join)
        m, l = join(m, l, bm, bl)
        start += C
    tl.store(m_ptr + pid, m)
    tl.store(l_ptr + pid, l)


def softmax_stats(x, block=1024):
    M, N = x.shape
    m = torch.empty(M, dtype=torch.float32, device=x.device)
    l = torch.empty(M, dtype=torch.float32, device=x.device)
    if M > 0:
        pair_kernel[(M,)](x, m, l, N, x.stride(0), x.stride(1), block)
    return m, l


@triton.jit
def bp_kernel(x_ptr, y_ptr, M, N, sr, sc, R: tl.constexpr, C: tl.constexpr):
    r0 = tl.program_id(0) * R
    src = tl.make_block_ptr(x_ptr, shape=(M, N), strides=(sr, sc), offsets=(r0, 0), block_shape=(R, C), order=(1, 0))
    dst = tl.make_block_ptr(y_ptr, shape=(M, N), strides=(N, 1), offsets=(r0, 0), block_shape=(R, C), order=(1, 0))
    m = tl.full((R,), float("-inf"), tl.float32)
    l = tl.zeros((R,), tl.float32)
    first = src
    for c in range(0, N, C):
        x = tl.load(first, boundary_check=(0, 1), padding_option="zero").to(tl.float32)
        x = tl.where((c + tl.arange(0, C) < N)[None, :], x, float("-inf"))
        mn = tl.maximum(m, tl.max(x, 1))
        z = tl.where(mn == float("-inf"), 0.0, mn)
        l = l * tl.exp(m - z) + tl.sum(tl.exp(x - z[:, None]), 1)
        m = mn
        first = tl.advance(first, (0, C))
    z = tl.where(m == float("-inf"), 0.0, m)
    inv = tl.where(l == 0.0, 0.0, 1.0 / l)
    for c in range(0, N, C):
        x = tl.load(src, boundary_check=(0, 1), padding_option="zero").to(tl.float32)
        y = tl.exp(x - z[:, None]) * inv[:, None]
        tl.store(dst, y.to(y_ptr.dtype.element_ty), boundary_check=(0, 1))
        src = tl.advance(src, (0, C))
        dst = tl.advance(dst, (0, C))


def softmax(x, block=1024):
    M, N = x.shape
    y = torch.empty((M, N), dtype=x.dtype, device=x.device)
    if y.numel():
        bp_kernel[(triton.cdiv(M, 2),)](x, y, M, N, x.stride(0), x.stride(1), R=2, C=min(block, 256))
    return y


@triton.jit
def scalar_kernel(s_ptr, v_ptr, o_ptr, N, ss0, ss1, sv0, sv1, D: tl.constexpr, W: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    d = tl.arange(0, W)
    m = tl.full((), float("-inf"), tl.float32)
    l = tl.full((), 0.0, tl.float32)
    acc = tl.zeros((W,), tl.float32)
    for n in range(N):
        wide = tl.cast(n, tl.int64)
        s = tl.load(s_ptr + row * ss0 + wide * ss1).to(tl.float32)
        v = tl.load(v_ptr + wide * sv0 + d.to(tl.int64) * sv1, mask=d < D, other=0.0).to(tl.float32)
        if s > m:
            keep = tl.exp(m - s)
            acc = acc * keep + v
            l = l * keep + 1.0
            m = s
        elif s > float("-inf"):
            p = tl.exp(s - m)
            acc += p * v
            l += p
    tl.store(o_ptr + row * D + d, acc / tl.where(l > 0, l, 1.0), mask=d < D)


def attend(scores, v, block=64):
    M, N = scores.shape
    D = v.shape[1]
    o = torch.empty((M, D), dtype=v.dtype, device=v.device)
    if M:
        scalar_kernel[(M,)](scores, v, o, N, *scores.stride(), *v.stride(), D, triton.next_power_of_2(D), num_warps=1)
    return o
