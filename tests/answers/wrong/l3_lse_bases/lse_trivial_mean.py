"""The row's mean is handed back.

exercise: lse
level: value
diagnosis: wrong_value
"""

import torch
import triton
import triton.language as tl


@triton.jit
def lse_kernel(
    x_ptr,  # [M, N]
    lse_ptr,  # [M]
    N,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    m = 0.0
    l = 0.0
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * N + cols, mask=cols < N, other=float("-inf")).to(tl.float32)
        m_new = m
        shift = 0.0
        l += tl.sum(tl.where(cols < N, x - shift, 0.0), axis=0)
        m = m_new
    tl.store(lse_ptr + row, l / N)


def lse(x):
    M, N = x.shape
    x = x.contiguous()
    out = torch.empty(M, dtype=torch.float32, device=x.device)
    if M > 0:
        lse_kernel[(M,)](x, out, N, 256)
    return out
