"""A step is cut in two halves, of which a block of one score has none.

exercise: softmax_stats
level: edge
diagnosis: exception
"""

import torch
import triton
import triton.language as tl


@triton.jit
def stats_kernel(
    x_ptr,  # [M, N]
    m_ptr,  # [M]
    l_ptr,  # [M]
    N,
    stride_m, stride_n,
    BLOCK: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    m = float("-inf")
    l = 0.0
    for start in range(0, N, BLOCK):
        col = start + tl.arange(0, 2)[:, None] * (BLOCK // 2) + tl.arange(0, BLOCK // 2)[None, :]
        x = tl.load(x_ptr + row * stride_m + col.to(tl.int64) * stride_n, mask=col < N, other=float("-inf"))
        x = x.to(tl.float32)
        m_new = tl.maximum(m, tl.max(x))
        shift = tl.where(m_new == float("-inf"), 0.0, m_new)
        l = l * tl.exp(m - shift) + tl.sum(tl.exp(x - shift))
        m = m_new
    tl.store(m_ptr + row, m)
    tl.store(l_ptr + row, l)


def softmax_stats(x, block=1024):
    M, N = x.shape
    m = torch.empty(M, dtype=torch.float32, device=x.device)
    l = torch.empty(M, dtype=torch.float32, device=x.device)
    if M > 0:
        BLOCK = min(block, triton.next_power_of_2(max(N, 1)))
        stats_kernel[(M,)](x, m, l, N, x.stride(0), x.stride(1), BLOCK)
    return m, l
