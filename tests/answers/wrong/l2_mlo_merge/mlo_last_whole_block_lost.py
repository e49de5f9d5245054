"""Blocks of 64 parts, then the rest: where there is no rest, the last block is lost.

exercise: merge_mlo
level: edge
diagnosis: wrong_value
"""

import torch
import triton
import triton.language as tl


@triton.jit
def mlo_kernel(
    m_ptr,  # [N, H]
    l_ptr,  # [N, H]
    o_n_ptr,  # [N, H, D]
    o_ptr,  # [H, D]
    N,
    H,
    D,
    BLOCK_D: tl.constexpr,
):
    head = tl.program_id(0).to(tl.int64)
    d = tl.arange(0, BLOCK_D)
    m = float("-inf")
    total = 0.0
    acc = tl.zeros([BLOCK_D], dtype=tl.float32)
    for n in range(0, N - 64 * (N % 64 == 0)):
        row = n * H + head
        m_n = tl.load(m_ptr + row)
        l_n = tl.load(l_ptr + row)
        m_new = tl.maximum(m, m_n)
        shift = tl.where(m_new == float("-inf"), 0.0, m_new)
        keep = tl.exp(m - shift)
        w_n = tl.exp(m_n - shift) * l_n
        o_n = tl.load(o_n_ptr + row * D + d, mask=(d < D) & (w_n > 0), other=0.0).to(tl.float32)
        acc = acc * keep + w_n * o_n
        total = total * keep + w_n
        m = m_new
    o = acc / tl.where(total > 0, total, 1.0)
    tl.store(o_ptr + head * D + d, o, mask=d < D)


def merge_mlo(m, l, o):
    N, H, D = o.shape
    m, l, o = m.contiguous(), l.contiguous(), o.contiguous()
    out = torch.empty((H, D), dtype=o.dtype, device=o.device)
    mlo_kernel[(H,)](m, l, o, out, N, H, D, triton.next_power_of_2(D))
    return out
