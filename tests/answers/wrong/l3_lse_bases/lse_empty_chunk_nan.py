"""A chunk without a score has a sum of NaN.

exercise: lse
level: edge
diagnosis: lse_nan
twins: lse_inf_minus_inf
"""

import math

import torch
import triton
import triton.language as tl


LOG2E = tl.constexpr(1.4426950408889634)


@triton.jit
def chunk_kernel(
    x_ptr,  # [M, N]
    m_ptr,  # [M, chunks]
    l_ptr,  # [M, chunks]
    N,
    stride_m, stride_n,
    BLOCK: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    chunk = tl.program_id(1)
    col = chunk * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride_m + col.to(tl.int64) * stride_n, mask=col < N, other=float("-inf"))
    x = x.to(tl.float32)
    m = tl.max(x, axis=0)
    l = tl.sum(tl.exp(x - m), axis=0)
    at = row * tl.num_programs(1) + chunk
    tl.store(m_ptr + at, m)
    tl.store(l_ptr + at, l)


@triton.jit
def join_kernel(
    m_ptr,  # [M, chunks]
    l_ptr,  # [M, chunks]
    out_ptr,  # [M]
    chunks,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    c = tl.arange(0, BLOCK)
    m_c = tl.load(m_ptr + row * chunks + c, mask=c < chunks, other=float("-inf"))
    l_c = tl.load(l_ptr + row * chunks + c, mask=c < chunks, other=0.0)
    m = tl.max(m_c, axis=0)
    l = tl.sum(l_c * tl.exp(m_c - tl.where(m == float("-inf"), 0.0, m)), axis=0)
    tl.store(out_ptr + row, m + tl.log(tl.where(l > 0, l, 1.0)))


def lse(x):
    M, N = x.shape
    out = torch.empty(M, dtype=torch.float32, device=x.device)
    if M > 0:
        BLOCK = min(1024, triton.next_power_of_2(max(1, N)))
        chunks = max(1, triton.cdiv(N, BLOCK))
        m = torch.empty((M, chunks), dtype=torch.float32, device=x.device)
        l = torch.empty((M, chunks), dtype=torch.float32, device=x.device)
        chunk_kernel[(M, chunks)](x, m, l, N, *x.stride(), BLOCK)
        join_kernel[(M,)](m, l, out, chunks, triton.next_power_of_2(chunks))
    return out
