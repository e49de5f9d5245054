"""0 is subtracted where a block has no score, even if earlier ones had some.

exercise: softmax_stats
level: edge
diagnosis: wrong_value
"""

import torch
import triton
import triton.language as tl

LOG2E = tl.constexpr(1.4426950408889634)


@triton.jit
def fold(x, m, l):
    """A tile x[R, B] into the running m[R] and l[R]. Also returns the weights [R, B] and the old sums' factor [R]."""
    top = tl.maximum(m, tl.max(x, 1))
    base = tl.where(tl.max(x, 1) == float("-inf"), 0.0, top)
    keep = tl.exp2((m - base) * LOG2E)
    w = tl.exp2((x - base[:, None]) * LOG2E)
    return top, l * keep + tl.sum(w, 1), w, keep


@triton.jit
def stats_kernel(x_ptr, m_ptr, l_ptr, M, N, R: tl.constexpr, B: tl.constexpr):
    r = tl.program_id(0) * R + tl.arange(0, R)
    c = tl.arange(0, B)
    m = tl.full([R], float("-inf"), tl.float32)
    l = tl.zeros([R], tl.float32)
    at = x_ptr + r[:, None].to(tl.int64) * N + c[None, :]
    for c0 in range(0, N, B):
        x = tl.load(at, mask=(r < M)[:, None] & (c0 + c < N)[None, :], other=float("-inf"))
        m, l, _, _ = fold(x.to(tl.float32), m, l)
        at += B
    tl.store(m_ptr + r, m, mask=r < M)
    tl.store(l_ptr + r, l, mask=r < M)


def softmax_stats(x, block=1024):
    M, N = x.shape
    m, l = (torch.empty(M, dtype=torch.float32, device=x.device) for _ in range(2))
    if M > 0:
        stats_kernel[(triton.cdiv(M, 16),)](x.contiguous(), m, l, M, N, R=16, B=min(block, 128))
    return m, l
