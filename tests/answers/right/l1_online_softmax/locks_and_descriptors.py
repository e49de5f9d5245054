"""Chunks pour their sums into the row's under a lock (tl.atomic_cas); softmax by descriptors where rows allow."""

import torch
import triton
import triton.language as tl


@triton.jit
def locked_kernel(x_ptr, m_ptr, l_ptr, lock_ptr, N, sr, sc, BLOCK: tl.constexpr):
    row = tl.program_id(1)
    n = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row.to(tl.int64) * sr + n.to(tl.int64) * sc, mask=n < N, other=float("-inf")).to(tl.float32)
    m = tl.max(x, 0)
    l = tl.sum(tl.where(m == float("-inf"), 0.0, tl.exp(x - m)), 0)
    while tl.atomic_cas(lock_ptr + row, 0, 1) == 1:
        pass
    old_m = tl.load(m_ptr + row)
    old_l = tl.load(l_ptr + row)
    new = tl.maximum(m, old_m)
    ref = tl.where(new == float("-inf"), 0.0, new)
    tl.store(m_ptr + row, new)
    tl.store(l_ptr + row, l * tl.exp(m - ref) + old_l * tl.exp(old_m - ref))
    tl.debug_barrier()
    tl.atomic_xchg(lock_ptr + row, 0)


def softmax_stats(x, block=1024):
    M, N = x.shape
    m = torch.full((M,), float("-inf"), device=x.device)
    l = torch.zeros(M, device=x.device)
    if M and N:
        lock = torch.zeros(M, dtype=torch.int32, device=x.device)
        locked_kernel[triton.cdiv(N, 256), M](x, m, l, lock, N, x.stride(0), x.stride(1), 256)
    elif M:
        locked_kernel[1, M](
            x, m, l, torch.zeros(M, dtype=torch.int32, device=x.device), N, x.stride(0), x.stride(1), 256
        )
    return m, l


@triton.jit
def get(x_ptr, x_desc, first, c, M, N, s0, s1, ROWS: tl.constexpr, BLOCK: tl.constexpr, DESC: tl.constexpr):
    col = c + tl.arange(0, BLOCK)
    if DESC:
        x = x_desc.load([first, c])
        return tl.where((col < N)[None, :], x.to(tl.float32), float("-inf"))
    else:
        row = first.to(tl.int64) + tl.arange(0, ROWS)
        at = x_ptr + row[:, None] * s0 + col[None, :].to(tl.int64) * s1
        x = tl.load(at, mask=(row < M)[:, None] & (col < N)[None, :], other=float("-inf"))
        return x.to(tl.float32)


@triton.jit
def soft(x_ptr, y_ptr, M, N, s0, s1, ROWS: tl.constexpr, BLOCK: tl.constexpr, DESC: tl.constexpr):
    first = tl.program_id(0) * ROWS
    if DESC:
        x_desc = tl.make_tensor_descriptor(x_ptr, shape=[M, N], strides=[N, 1], block_shape=[ROWS, BLOCK])
    else:
        x_desc = x_ptr
    m = tl.full([ROWS], float("-inf"), tl.float32)
    l = tl.zeros([ROWS], tl.float32)
    for c in range(0, N, BLOCK):
        x = get(x_ptr, x_desc, first, c, M, N, s0, s1, ROWS, BLOCK, DESC)
        new = tl.maximum(m, tl.max(x, 1))
        ref = tl.where(new == float("-inf"), 0.0, new)
        l = l * tl.exp(m - ref) + tl.sum(tl.exp(x - ref[:, None]), 1)
        m = new
    ref = tl.where(m == float("-inf"), 0.0, m)
    l = tl.where(l == 0.0, 1.0, l)
    row = first.to(tl.int64) + tl.arange(0, ROWS)
    for c in range(0, N, BLOCK):
        x = get(x_ptr, x_desc, first, c, M, N, s0, s1, ROWS, BLOCK, DESC)
        y = (tl.exp(x - ref[:, None]) / l[:, None]).to(y_ptr.dtype.element_ty)
        col = c + tl.arange(0, BLOCK)
        tl.store(y_ptr + row[:, None] * N + col[None, :], y, mask=(row < M)[:, None] & (col < N)[None, :])


def softmax(x, block=1024):
    M, N = x.shape
    y = torch.empty(M, N, dtype=x.dtype, device=x.device)
    if not x.numel():
        return y
    # a descriptor's rows begin at multiples of 16 bytes
    desc = N * x.element_size() % 16 == 0 and x.data_ptr() % 16 == 0 and x.is_contiguous()
    triton.set_allocator(lambda size, alignment, stream: torch.empty(size, device=x.device, dtype=torch.int8))
    soft[(triton.cdiv(M, 8),)](x, y, M, N, *x.stride(), ROWS=8, BLOCK=min(256, max(16, block)), DESC=desc)
    return y


@triton.jit
def att(
    s_ptr,
    v_ptr,
    acc_ptr,
    m_ptr,
    l_ptr,
    lock_ptr,
    N,
    sr,
    sc,
    vn,
    vd,
    D: tl.constexpr,
    BLOCK: tl.constexpr,
    P: tl.constexpr,
):
    row = tl.program_id(1)
    n = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    d = tl.arange(0, P)
    s = tl.load(s_ptr + row.to(tl.int64) * sr + n.to(tl.int64) * sc, mask=n < N, other=float("-inf")).to(tl.float32)
    v = tl.load(
        v_ptr + n.to(tl.int64)[:, None] * vn + d[None, :] * vd, mask=(n < N)[:, None] & (d < D)[None, :], other=0.0
    )
    m = tl.max(s, 0)
    p = tl.exp(s - tl.where(m == float("-inf"), 0.0, m))
    l = tl.sum(p, 0)
    acc = tl.sum(p[:, None] * v.to(tl.float32), 0)
    while tl.atomic_cas(lock_ptr + row, 0, 1) == 1:
        pass
    old_m = tl.load(m_ptr + row)
    old_l = tl.load(l_ptr + row)
    old_acc = tl.load(acc_ptr + row * D + d, mask=d < D, other=0.0)
    new = tl.maximum(m, old_m)
    ref = tl.where(new == float("-inf"), 0.0, new)
    tl.store(m_ptr + row, new)
    tl.store(l_ptr + row, l * tl.exp(m - ref) + old_l * tl.exp(old_m - ref))
    tl.store(acc_ptr + row * D + d, acc * tl.exp(m - ref) + old_acc * tl.exp(old_m - ref), mask=d < D)
    tl.debug_barrier()
    tl.atomic_xchg(lock_ptr + row, 0)


@triton.jit
def divide(acc_ptr, l_ptr, o_ptr, total, D, P: tl.constexpr):
    i = tl.program_id(0) * P + tl.arange(0, P)
    l = tl.load(l_ptr + i // D, mask=i < total, other=1.0)
    acc = tl.load(acc_ptr + i, mask=i < total, other=0.0)
    tl.store(o_ptr + i, (acc / tl.where(l == 0, 1.0, l)).to(o_ptr.dtype.element_ty), mask=i < total)


def attend(scores, v, block=64):
    M, N = scores.shape
    D = v.shape[1]
    acc = torch.zeros(M, D, device=v.device)
    m, l = torch.full((M,), float("-inf"), device=v.device), torch.zeros(M, device=v.device)
    lock = torch.zeros(M, dtype=torch.int32, device=v.device)
    o = torch.empty(M, D, dtype=v.dtype, device=v.device)
    if M:
        if N:
            att[triton.cdiv(N, block), M](
                scores, v, acc, m, l, lock, N, *scores.stride(), *v.stride(), D, block, triton.next_power_of_2(D)
            )
        divide[(triton.cdiv(M * D, 256),)](acc, l, o, M * D, D, P=256)
    return o
