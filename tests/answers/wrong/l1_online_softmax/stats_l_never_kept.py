"""The new sum goes into a variable of its own, by a slip of the keyboard: l stays 0.

exercise: softmax_stats
level: value
diagnosis: wrong_value
told: is what the loop adds kept
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
        ll = l * tl.exp(m - shift) + tl.sum(tl.exp(x - shift), axis=0)
        m = m_new
    tl.store(m_ptr + row, m)
    tl.store(l_ptr + row, l)


def softmax_stats(x, block=1024):
    M, N = x.shape
    x = x.contiguous()
    m = torch.empty(M, dtype=torch.float32, device=x.device)
    l = torch.empty(M, dtype=torch.float32, device=x.device)
    if M > 0:
        stats_kernel[(M,)](x, m, l, N, block)
    return m, l
