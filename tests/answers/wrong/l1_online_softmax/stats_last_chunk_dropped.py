"""N // block chunks: the last, shorter one is left out.

exercise: softmax_stats
level: value
diagnosis: stats_tail_dropped
"""

import torch
import triton
import triton.language as tl


@triton.jit
def chunk_kernel(x_ptr, wm_ptr, wl_ptr, N, sr, sc, CHUNKS, PER: tl.constexpr):
    row = tl.program_id(1).to(tl.int64)
    c = tl.program_id(0)
    j = c * PER + tl.arange(0, PER)
    x = tl.load(x_ptr + row * sr + j.to(tl.int64) * sc, mask=j < N, other=float("-inf")).to(tl.float32)
    m = tl.max(x)
    s = tl.where(m > float("-inf"), m, 0.0)
    tl.store(wm_ptr + row * CHUNKS + c, m)
    tl.store(wl_ptr + row * CHUNKS + c, tl.sum(tl.exp(x - s)))


@triton.jit
def fold_kernel(wm_ptr, wl_ptr, m_ptr, l_ptr, CHUNKS, P: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    c = tl.arange(0, P)
    wm = tl.load(wm_ptr + row * CHUNKS + c, mask=c < CHUNKS, other=float("-inf"))
    wl = tl.load(wl_ptr + row * CHUNKS + c, mask=c < CHUNKS, other=0)
    m = tl.max(wm, axis=0)
    s = tl.where(m > float("-inf"), m, 0.0)
    tl.store(m_ptr + row, m)
    tl.store(l_ptr + row, tl.sum(wl * tl.exp(wm - s), axis=0))


def softmax_stats(x, block=1024):
    M, N = x.shape
    m = torch.full((M,), float("-inf"), dtype=torch.float32, device=x.device)
    l = torch.zeros((M,), dtype=torch.float32, device=x.device)
    if M == 0 or N == 0:
        return m, l
    per = max(16, min(block, 256))
    chunks = max(1, N // per)
    wm = torch.empty((M, chunks), dtype=torch.float32, device=x.device)
    wl = torch.empty((M, chunks), dtype=torch.float32, device=x.device)
    chunk_kernel[(chunks, M)](x, wm, wl, N, x.stride(0), x.stride(1), chunks, PER=per)
    fold_kernel[(M,)](wm, wl, m, l, chunks, P=triton.next_power_of_2(chunks))
    return m, l
