"""The scores are scaled in their own dtype, which rounds them in half precision.

exercise: lse2
level: value
diagnosis: lse2_in_half
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
        x = tl.load(x_ptr + row * N + cols, mask=cols < N, other=float("-inf"))
        x = (x * 1.4426950408889634).to(x_ptr.dtype.element_ty).to(tl.float32)
        m_new = tl.maximum(m, tl.max(x, axis=0))
        shift = tl.where(m_new == float("-inf"), 0.0, m_new)
        l = l * tl.exp2(m - shift) + tl.sum(tl.exp2(x - shift), axis=0)
        m = m_new
    total = tl.where(l > 0, l, 1.0)
    tl.store(s_ptr + row, m + tl.log2(total))


def lse2(x):
    M, N = x.shape
    x = x.contiguous()
    s = torch.empty(M, dtype=torch.float32, device=x.device)
    if M > 0:
        lse2_kernel[(M,)](x, s, N, 256)
    return s
