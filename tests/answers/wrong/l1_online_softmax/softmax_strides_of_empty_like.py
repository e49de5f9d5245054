"""y is torch.empty_like(x), and is written as if it were contiguous.

exercise: softmax
level: memory
diagnosis: wrong_value
"""

import torch
import triton
import triton.language as tl

LOWEST = tl.constexpr(-3.4028234663852886e38)


@triton.jit
def lowest_kernel(x_ptr, y_ptr, M, N, sr, sc, C: tl.constexpr):
    for row in range(tl.program_id(0), M, tl.num_programs(0)):
        r = tl.cast(row, tl.int64)
        m = LOWEST  # of use here: x = -inf gives exp(-inf), never (-inf) - (-inf), and no finite score lies below it
        l = 0.0
        for c in range(0, N, C):
            j = c + tl.arange(0, C)
            x = tl.load(x_ptr + r * sr + j.to(tl.int64) * sc, mask=j < N, other=float("-inf")).to(tl.float32)
            mn = tl.maximum(m, tl.max(x, 0))
            l = l * tl.exp(m - mn) + tl.sum(tl.exp(x - mn), 0)
            m = mn
        d = tl.where(l > 0, l, 1.0)
        for c in range(0, N, C):
            j = c + tl.arange(0, C)
            x = tl.load(x_ptr + r * sr + j.to(tl.int64) * sc, mask=j < N, other=float("-inf")).to(tl.float32)
            tl.store(y_ptr + r * N + j, (tl.exp(x - m) / d).to(y_ptr.dtype.element_ty), mask=j < N)


def softmax(x, block=1024):
    M, N = x.shape
    y = torch.empty_like(x)
    if M and N:
        lowest_kernel[(min(M, 3),)](x, y, M, N, x.stride(0), x.stride(1), C=block)
    return y
