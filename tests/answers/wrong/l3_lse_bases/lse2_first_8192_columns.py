"""One tile a row, at most 8,192 columns wide, and no loop.

exercise: lse2
level: value
diagnosis: wrong_value
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
    for start in range(0, BLOCK, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * N + cols, mask=cols < N, other=float("-inf")).to(tl.float32)
        x = x * 1.4426950408889634
        m_new = tl.maximum(m, tl.max(x, axis=0))
        shift = tl.where(m_new == float("-inf"), 0.0, m_new)
        l = l * tl.exp2(m - shift) + tl.sum(tl.exp2(x - shift), axis=0)
        m = m_new
    tl.store(s_ptr + row, m + tl.log2(tl.where(l > 0, l, 1.0)))


def lse2(x):
    M, N = x.shape
    x = x.contiguous()
    s = torch.empty(M, dtype=torch.float32, device=x.device)
    if M > 0:
        lse2_kernel[(M,)](x, s, N, min(8192, triton.next_power_of_2(max(N, 1))))
    return s
