"""(-inf) - (-inf) is made 0, so that l of a masked row is N.

exercise: softmax_stats
level: edge
diagnosis: stats_masked_row_counts
"""

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
        bm = tl.max(x, 0)
        mn = tl.maximum(m, bm)
        d = tl.where(x == mn, 0.0, x - mn)
        g = tl.where(m == mn, 0.0, m - mn)
        l = l * tl.exp(g) + tl.sum(tl.where(j < N, tl.exp(d), 0.0), 0)
        m = mn
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
