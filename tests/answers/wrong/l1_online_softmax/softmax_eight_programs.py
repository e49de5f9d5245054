"""At most 8 rows: min(M, 8) programs of a row each.

exercise: softmax
level: memory
diagnosis: unwritten
"""

import torch
import triton
import triton.language as tl


@triton.jit
def persistent_softmax_kernel(x, y, M, N, sr, sc, WIDTH: tl.constexpr):
    col = tl.arange(0, WIDTH)
    inside = col < N
    for row in range(tl.program_id(0), tl.program_id(0) + 1):
        at = x + tl.cast(row, tl.int64) * sr + col.to(tl.int64) * sc
        t = tl.load(at, mask=inside, other=float("-inf")).to(tl.float32) * 1.4426950408889634
        top = tl.max(t)
        p = tl.exp2(t - tl.where(top == float("-inf"), 0.0, top))
        total = tl.sum(p)
        p = p * (1.0 / tl.where(total > 0.0, total, 1.0))
        tl.store(y + tl.cast(row, tl.int64) * N + col, p.to(y.dtype.element_ty), mask=inside)


def softmax(x, block=1024):
    M, N = x.shape
    y = torch.empty((M, N), dtype=x.dtype, device=x.device)
    if x.numel() == 0:
        return y
    persistent_softmax_kernel[(min(M, 8),)](x, y, M, N, x.stride(0), x.stride(1), WIDTH=triton.next_power_of_2(N))
    return y
