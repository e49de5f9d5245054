"""The chunks of a row are programs that carry m and l on through memory, one after the other.

exercise: softmax_stats
level: memory
diagnosis: race
"""

import torch
import triton
import triton.language as tl


@triton.jit
def chain_kernel(x_ptr, m_ptr, l_ptr, N, sr, sc, C: tl.constexpr):
    row = tl.program_id(1).to(tl.int64)
    c = tl.program_id(0)
    j = (c * C + tl.arange(0, C)).to(tl.int64)
    x = tl.load(x_ptr + row * sr + j * sc, mask=j < N, other=float("-inf")).to(tl.float32)
    m = tl.load(m_ptr + row)
    l = tl.load(l_ptr + row)
    mn = tl.maximum(m, tl.max(x, 0))
    z = tl.where(mn == float("-inf"), 0.0, mn)
    tl.store(m_ptr + row, mn)
    tl.store(l_ptr + row, l * tl.exp(m - z) + tl.sum(tl.exp(x - z), 0))


def softmax_stats(x, block=1024):
    M, N = x.shape
    m = torch.full((M,), float("-inf"), dtype=torch.float32, device=x.device)
    l = torch.zeros((M,), dtype=torch.float32, device=x.device)
    if M and N:
        chain_kernel[(triton.cdiv(N, block), M)](x, m, l, N, *x.stride(), C=block)
    return m, l
