"""The running max starts at -65,504; where l is 0, m becomes -inf again.

exercise: softmax_stats
level: edge
diagnosis: stats_stand_in_put_back
twins: stats_half_sentinel
"""

import torch
import triton
import triton.language as tl


@triton.jit
def lanes_kernel(x_ptr, m_ptr, l_ptr, M, N, sr, sc, R: tl.constexpr, C: tl.constexpr):
    rows = tl.program_id(0) * R + tl.arange(0, R)
    lanes = tl.arange(0, C)
    m = tl.full((R, C), -65504.0, tl.float32)
    l = tl.zeros((R, C), tl.float32)
    for i in range(tl.cdiv(N, C)):
        cols = i * C + lanes
        ok = (rows < M)[:, None] & (cols < N)[None, :]
        x = tl.load(
            x_ptr + rows.to(tl.int64)[:, None] * sr + cols.to(tl.int64)[None, :] * sc, mask=ok, other=float("-inf")
        ).to(tl.float32)
        # each lane keeps its own pair; the lanes are merged once, at the end
        mn = tl.maximum(m, x)
        l = l * tl.exp(m - mn) + tl.exp(x - mn)
        m = mn
    top = tl.max(m, 1)
    w = tl.where(m == float("-inf"), 0.0, tl.exp(m - top[:, None]))
    total = tl.sum(l * w, 1)
    tl.store(m_ptr + rows, tl.where(total > 0, top, float("-inf")), mask=rows < M)
    tl.store(l_ptr + rows, total, mask=rows < M)


def softmax_stats(x, block=1024):
    M, N = x.shape
    m = torch.empty((M,), dtype=torch.float32, device=x.device)
    l = torch.empty_like(m)
    if M:
        lanes_kernel[(triton.cdiv(M, 4),)](x, m, l, M, N, x.stride(0), x.stride(1), R=4, C=min(block, 128))
    return m, l
