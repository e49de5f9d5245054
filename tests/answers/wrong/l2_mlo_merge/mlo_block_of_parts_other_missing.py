"""Parts past N are masked without other, and their lanes are summed.

exercise: merge_mlo
level: memory
diagnosis: masked_lane
"""

import torch
import triton
import triton.language as tl


@triton.jit
def mlo_kernel(m_ptr, l_ptr, o_n_ptr, o_ptr, N, H, D, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr):
    head = tl.program_id(0).to(tl.int64)
    n = tl.arange(0, BLOCK_N)
    d = tl.arange(0, BLOCK_D)
    row = n * H + head
    m_n = tl.load(m_ptr + row, mask=n < N, other=float("-inf"))
    l_n = tl.load(l_ptr + row, mask=n < N)
    m = tl.max(m_n, axis=0)
    w = tl.exp(m_n - tl.where(m == float("-inf"), 0.0, m)) * l_n
    used = (n < N) & (w > 0)
    o_n = tl.load(o_n_ptr + row[:, None] * D + d[None, :], mask=used[:, None] & (d < D)[None, :], other=0.0)
    total = tl.sum(w, axis=0)
    o = tl.sum(w[:, None] * o_n.to(tl.float32), axis=0) / tl.where(total > 0, total, 1.0)
    tl.store(o_ptr + head * D + d, o, mask=d < D)


def merge_mlo(m, l, o):
    N, H, D = o.shape
    m, l, o = m.contiguous(), l.contiguous(), o.contiguous()
    out = torch.empty((H, D), dtype=o.dtype, device=o.device)
    mlo_kernel[(H,)](m, l, o, out, N, H, D, triton.next_power_of_2(max(N, 2)), triton.next_power_of_2(D))
    return out
