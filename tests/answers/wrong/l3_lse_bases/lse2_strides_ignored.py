"""x is read as if it were contiguous.

exercise: lse2
level: memory
diagnosis: out_of_bounds
"""

import torch
import triton
import triton.language as tl


@triton.jit
def lse2_kernel(
    x_ptr,  # [M, N]
    s_ptr,  # [M]
    N,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    m = float("-inf")
    l = 0.0
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * N + cols, mask=cols < N, other=float("-inf")).to(tl.float32)
        x = x * 1.4426950408889634
        m_new = tl.maximum(m, tl.max(x, axis=0))
        shift = tl.where(m_new == float("-inf"), 0.0, m_new)
        l = l * tl.exp2(m - shift) + tl.sum(tl.exp2(x - shift), axis=0)
        m = m_new
    total = tl.where(l > 0, l, 1.0)
    tl.store(s_ptr + row, m + tl.log2(total))


def lse2(x):
    M, N = x.shape
    s = torch.empty(M, dtype=torch.float32, device=x.device)
    if M > 0:
        lse2_kernel[(M,)](x, s, N, 256)
    return s
