"""The offset of a row is computed in 32 bits.

exercise: softmax_stats
level: memory
diagnosis: out_of_bounds
"""

import torch
import triton
import triton.language as tl


@triton.jit
def lanes_kernel(x_ptr, m_ptr, l_ptr, M, N, sr, sc, R: tl.constexpr, C: tl.constexpr):
    rows = tl.program_id(0) * R + tl.arange(0, R)
    lanes = tl.arange(0, C)
    m = tl.full((R, C), float("-inf"), tl.float32)
    l = tl.zeros((R, C), tl.float32)
    for i in range(tl.cdiv(N, C)):
        cols = i * C + lanes
        ok = (rows < M)[:, None] & (cols < N)[None, :]
        x = tl.load(x_ptr + rows[:, None] * sr + cols.to(tl.int64)[None, :] * sc, mask=ok, other=float("-inf")).to(
            tl.float32
        )
        # each lane keeps its own pair; the lanes are merged once, at the end
        mn = tl.maximum(m, x)
        empty = mn == float("-inf")
        l = tl.where(empty, 0.0, l * tl.exp(m - mn) + tl.exp(x - mn))
        m = mn
    top = tl.max(m, 1)
    w = tl.where(m == float("-inf"), 0.0, tl.exp(m - top[:, None]))
    total = tl.sum(l * w, 1)
    tl.store(m_ptr + rows, top, mask=rows < M)
    tl.store(l_ptr + rows, total, mask=rows < M)


def softmax_stats(x, block=1024):
    M, N = x.shape
    m = torch.empty((M,), dtype=torch.float32, device=x.device)
    l = torch.empty_like(m)
    if M:
        lanes_kernel[(triton.cdiv(M, 4),)](x, m, l, M, N, x.stride(0), x.stride(1), R=4, C=min(block, 128))
    return m, l
