"""A row is cut in chunks, a program each, through block pointers; a second kernel merges what they left."""

import torch
import triton
import triton.language as tl

CHUNK = 256


@triton.jit
def chunk_kernel(x_ptr, part_ptr, N, row_stride, col_stride, BLOCK: tl.constexpr):
    """part_ptr: [M, chunks, 2], the m and l of every chunk."""
    row = tl.program_id(0)
    chunk = tl.program_id(1)
    block = tl.make_block_ptr(
        x_ptr + row.to(tl.int64) * row_stride, (N,), (col_stride,), (chunk * BLOCK,), (BLOCK,), (0,)
    )
    x = tl.load(block, boundary_check=(0,), padding_option="zero").to(tl.float32)
    x = tl.where(chunk * BLOCK + tl.arange(0, BLOCK) < N, x, float("-inf"))
    m = tl.max(x, 0)
    l = tl.sum(tl.exp(x - tl.where(m > float("-inf"), m, 0.0)), 0)
    out = part_ptr + (row * tl.num_programs(1) + chunk) * 2
    tl.store(out, m)
    tl.store(out + 1, l)


@triton.jit
def merge_chunks(part_ptr, row, chunks, WIDE: tl.constexpr):
    c = tl.arange(0, WIDE)
    at = part_ptr + (row * chunks + c) * 2
    m_c = tl.load(at, mask=c < chunks, other=float("-inf"))
    l_c = tl.load(at + 1, mask=c < chunks, other=0.0)
    m = tl.max(m_c, 0)
    return m, tl.sum(l_c * tl.exp(m_c - tl.where(m > float("-inf"), m, 0.0)), 0)


@triton.jit
def stats_kernel(part_ptr, m_ptr, l_ptr, chunks, WIDE: tl.constexpr):
    row = tl.program_id(0)
    m, l = merge_chunks(part_ptr, row, chunks, WIDE)
    tl.store(m_ptr + row, m)
    tl.store(l_ptr + row, l)


@triton.jit
def normalize_kernel(x_ptr, part_ptr, y_ptr, N, row_stride, col_stride, BLOCK: tl.constexpr, WIDE: tl.constexpr):
    row = tl.program_id(0)
    chunk = tl.program_id(1)
    m, l = merge_chunks(part_ptr, row, tl.num_programs(1), WIDE)
    x_at = x_ptr + row.to(tl.int64) * row_stride
    y_at = y_ptr + row.to(tl.int64) * N
    x_block = tl.make_block_ptr(x_at, (N,), (col_stride,), (chunk * BLOCK,), (BLOCK,), (0,))
    y_block = tl.make_block_ptr(y_at, (N,), (1,), (chunk * BLOCK,), (BLOCK,), (0,))
    x = tl.load(x_block, boundary_check=(0,), padding_option="zero").to(tl.float32)
    y = tl.exp(x - tl.where(m > float("-inf"), m, 0.0)) / tl.where(l > 0.0, l, 1.0)
    tl.store(y_block, y.to(y_ptr.dtype.element_ty), boundary_check=(0,))


def chunks_of(x):
    """part[M, chunks, 2] of the rows of x."""
    M, N = x.shape
    chunks = max(1, triton.cdiv(N, CHUNK))
    part = torch.empty((M, chunks, 2), dtype=torch.float32, device=x.device)
    chunk_kernel[(M, chunks)](x, part, N, x.stride(0), x.stride(1), BLOCK=CHUNK)
    return part


def softmax_stats(x, block=1024):
    m = torch.empty(x.shape[0], dtype=torch.float32, device=x.device)
    l = torch.empty_like(m)
    if x.shape[0]:
        part = chunks_of(x)
        stats_kernel[(x.shape[0],)](part, m, l, part.shape[1], WIDE=triton.next_power_of_2(part.shape[1]))
    return m, l


def softmax(x, block=1024):
    M, N = x.shape
    y = torch.empty((M, N), dtype=x.dtype, device=x.device)
    if M and N:
        part = chunks_of(x)
        chunks = part.shape[1]
        normalize_kernel[(M, chunks)](
            x, part, y, N, x.stride(0), x.stride(1), BLOCK=CHUNK, WIDE=triton.next_power_of_2(chunks)
        )
    return y


@triton.jit
def attend_kernel(s_ptr, v_ptr, o_ptr, N, D, s_row, s_col, BLOCK: tl.constexpr, BLOCK_D: tl.constexpr):
    row = tl.program_id(0)
    s_block = tl.make_block_ptr(s_ptr + row.to(tl.int64) * s_row, (N,), (s_col,), (0,), (BLOCK,), (0,))
    v_block = tl.make_block_ptr(v_ptr, (N, D), (D, 1), (0, 0), (BLOCK, BLOCK_D), (1, 0))
    m = float("-inf")
    l = 0.0
    o = tl.zeros((BLOCK_D,), tl.float32)
    for n0 in range(0, N, BLOCK):
        s = tl.load(s_block, boundary_check=(0,), padding_option="zero").to(tl.float32)
        s = tl.where(n0 + tl.arange(0, BLOCK) < N, s, float("-inf"))
        v = tl.load(v_block, boundary_check=(0, 1), padding_option="zero").to(tl.float32)
        top = tl.max(s, 0)
        if top > m:  # only then is there anything to rescale
            keep = tl.exp(m - top)
            l *= keep
            o *= keep
            m = top
        w = tl.exp(s - tl.where(m > float("-inf"), m, 0.0))
        l += tl.sum(w, 0)
        o += tl.sum(w[:, None] * v, 0)
        s_block = tl.advance(s_block, (BLOCK,))
        v_block = tl.advance(v_block, (BLOCK, 0))
    o_block = tl.make_block_ptr(o_ptr + row.to(tl.int64) * D, (D,), (1,), (0,), (BLOCK_D,), (0,))
    o = o / tl.where(l > 0.0, l, 1.0)
    tl.store(o_block, o.to(o_ptr.dtype.element_ty), boundary_check=(0,))


def attend(scores, v, block=64):
    M, N = scores.shape
    D = v.shape[1]
    v = v.contiguous()
    o = torch.empty((M, D), dtype=v.dtype, device=v.device)
    if M:
        attend_kernel[(M,)](
            scores, v, o, N, D, scores.stride(0), scores.stride(1), BLOCK=16, BLOCK_D=triton.next_power_of_2(D)
        )
    return o
