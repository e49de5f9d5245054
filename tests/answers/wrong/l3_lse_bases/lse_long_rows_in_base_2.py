"""Rows of more than 8,192 columns go another way, whose result is in base 2.

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
    m = float("-inf")
    l = 0.0
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * N + cols, mask=cols < N, other=float("-inf")).to(tl.float32)
        m_new = tl.maximum(m, tl.max(x, axis=0))
        shift = tl.where(m_new == float("-inf"), 0.0, m_new)
        l = l * tl.exp(m - shift) + tl.sum(tl.exp(x - shift), axis=0)
        m = m_new
    tl.store(lse_ptr + row, (m + tl.log(tl.where(l > 0, l, 1.0))) * (1.0 if N <= 8192 else 1.4426950408889634))


def lse(x):
    M, N = x.shape
    x = x.contiguous()
    out = torch.empty(M, dtype=torch.float32, device=x.device)
    if M > 0:
        lse_kernel[(M,)](x, out, N, 256)
    return out
