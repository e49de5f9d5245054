"""m starts at -65504, the least finite half, instead of -inf.

exercise: softmax_stats
level: edge
diagnosis: stats_stand_in_put_back
"""

import torch
import triton
import triton.language as tl


@triton.jit
def tile_stats_kernel(x, m_out, l_out, M, N, sr, sc, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    live = rows < M
    at = x + rows.to(tl.int64)[:, None] * sr
    m = tl.full((ROWS,), -65504.0, tl.float32)
    l = tl.zeros((ROWS,), tl.float32)
    for start in tl.range(0, N, BLOCK, num_stages=2):
        col = start + tl.arange(0, BLOCK)
        t = tl.load(at + col.to(tl.int64)[None, :] * sc, mask=live[:, None] & (col < N)[None, :], other=float("-inf"))
        t = t.to(tl.float32)
        m_new = tl.maximum(m, tl.max(t, axis=1))
        p = tl.exp2((t - m_new[:, None]) * 1.4426950408889634)
        p = tl.where(t > float("-inf"), p, 0.0)
        keep = tl.where(m > float("-inf"), tl.exp2((m - m_new) * 1.4426950408889634), 0.0)
        l = l * keep + tl.sum(p, axis=1)
        m = m_new
    m = tl.where(l > 0, m, float("-inf"))
    tl.store(m_out + rows, m, mask=live)
    tl.store(l_out + rows, l, mask=live)


def softmax_stats(x, block=1024):
    M, N = x.shape
    m = x.new_empty((M,), dtype=torch.float32)
    l = torch.empty_like(m)
    tile_stats_kernel[(triton.cdiv(M, 8),)](x, m, l, M, N, *x.stride(), ROWS=8, BLOCK=min(block, 128))
    return m, l
