"""Returns (l, m).

exercise: softmax_stats
level: value
diagnosis: stats_swapped
"""

import torch
import triton
import triton.language as tl


@triton.jit
def backwards_kernel(x_ptr, m_ptr, l_ptr, N, sr, sc, C: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    nb = tl.cdiv(N, C)
    m = -float("inf")
    l = 0.0
    for b in range(nb - 1, -1, -1):
        j = b * C + tl.arange(0, C)
        ok = j < N
        x = tl.load(x_ptr + row * sr + j.to(tl.int64) * sc, mask=ok, other=0.0).to(tl.float32)
        x = tl.where(ok, x, float("-inf"))
        mb = tl.max(x, 0)
        if mb > m:
            l = l * tl.exp2((m - mb) * 1.4426950408889634)
            m = mb
        if m != float("-inf"):
            l += tl.sum(tl.exp2((x - m) * 1.4426950408889634), 0)
    tl.store(m_ptr + row, m)
    tl.store(l_ptr + row, l)


def softmax_stats(x, block=1024):
    M, N = x.shape
    out = torch.empty((2, M), dtype=torch.float32, device=x.device)
    if M:
        backwards_kernel[(M,)](x, out[0], out[1], N, *x.stride(), C=block, num_warps=8)
    return out[1], out[0]
