"""A row with no score gives 0.

exercise: lse
level: edge
diagnosis: lse_empty_zero
"""

import torch
import triton
import triton.language as tl


@triton.jit
def lse_two_kernel(x_ptr, out_ptr, N, sr, sc, C: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    top = tl.full((C,), float("-inf"), tl.float32)
    for c in range(0, N, C):
        j = (c + tl.arange(0, C)).to(tl.int64)
        top = tl.maximum(top, tl.load(x_ptr + row * sr + j * sc, mask=j < N, other=float("-inf")).to(tl.float32))
    m = tl.max(top, 0)
    z = tl.where(m > float("-inf"), m, 0.0)
    acc = tl.zeros((C,), tl.float32)
    for c in range(0, N, C):
        j = (c + tl.arange(0, C)).to(tl.int64)
        acc += tl.exp(tl.load(x_ptr + row * sr + j * sc, mask=j < N, other=float("-inf")).to(tl.float32) - z)
    l = tl.sum(acc, 0)
    tl.store(out_ptr + row, z + tl.log(tl.where(l > 0, l, 1.0)))


def lse(x):
    M, N = x.shape
    out = torch.empty(M, dtype=torch.float32, device=x.device)
    if M:
        lse_two_kernel[(M,)](x, out, N, x.stride(0), x.stride(1), C=256)
    return out
