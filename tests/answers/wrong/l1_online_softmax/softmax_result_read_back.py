"""exp(x - m) is stored, summed up, read back, divided and stored again.

exercise: softmax
level: traffic
diagnosis: traffic
"""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, y_ptr, N, sr: tl.int64, sc: tl.int64, B: tl.constexpr):
    row = tl.program_id(0)
    x_row = x_ptr + row * sr
    y_row = y_ptr + row.to(tl.int64) * N
    hi = tl.full([B], float("-inf"), tl.float32)
    for i in range(tl.cdiv(N, B)):
        c = i * B + tl.arange(0, B)
        ok = c < N
        p = tl.where(ok, c, 0)
        x = tl.load(x_row + p * sc).to(tl.float32)
        hi = tl.maximum(hi, tl.where(ok, x, float("-inf")))
    m = tl.max(hi, axis=0)
    m = tl.where(m == float("-inf"), 0.0, m)
    tot = tl.zeros([B], tl.float32)
    i = 0
    while i < N:
        c = i + tl.arange(0, B)
        x = tl.load(x_row + c * sc, mask=c < N, other=float("-inf")).to(tl.float32)
        e = tl.exp(x - m)
        tot += e
        tl.store(y_row + c, e.to(y_ptr.dtype.element_ty), mask=c < N)
        i += B
    t = tl.sum(tot)
    inv = tl.where(t > 0, tl.math.div_rn(1.0, t), 0.0)
    for i in tl.range(0, N, B):
        c = i + tl.arange(0, B)
        y = tl.load(y_row + c, mask=c < N, other=0.0)
        tl.store(y_row + c, (y.to(tl.float32) * inv).to(y.dtype), mask=c < N)


def softmax(x, block=1024):
    M, N = x.shape
    y = torch.empty((M, N), dtype=x.dtype, device=x.device)
    if M and N:
        softmax_kernel[(M,)](x, y, N, x.stride(0), x.stride(1), B=min(block, 256))
    return y
