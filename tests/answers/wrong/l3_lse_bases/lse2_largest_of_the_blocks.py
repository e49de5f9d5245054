"""The largest of the blocks' LSEs is returned.

exercise: lse2
level: value
diagnosis: lse2_largest_of_blocks
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
        m_new = tl.max(x, axis=0)
        shift = tl.where(m_new == float("-inf"), 0.0, m_new)
        l = tl.sum(tl.exp2(x - shift), axis=0)
        m = tl.maximum(m, m_new + tl.log2(tl.where(l > 0, l, 1.0)))
    tl.store(s_ptr + row, m)


def lse2(x):
    M, N = x.shape
    x = x.contiguous()
    s = torch.empty(M, dtype=torch.float32, device=x.device)
    if M > 0:
        lse2_kernel[(M,)](x, s, N, 256)
    return s
