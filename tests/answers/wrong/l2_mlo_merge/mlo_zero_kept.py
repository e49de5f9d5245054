"""The 0 that is subtracted while the max is -inf stays the max, so that parts far below 0 are lost.

exercise: merge_mlo
level: edge
diagnosis: mlo_zero_kept
"""

import torch
import triton
import triton.language as tl


@triton.jit
def merge_kernel(m_ptr, l_ptr, o_ptr, out_ptr, N, H, D: tl.constexpr, BLOCK_D: tl.constexpr):
    head = tl.program_id(0).to(tl.int64)
    d = tl.arange(0, BLOCK_D)
    m = float("-inf")
    total = 0.0
    acc = tl.zeros((BLOCK_D,), tl.float32)
    for n in range(0, N):
        row = n.to(tl.int64) * H + head
        m_n = tl.load(m_ptr + row)
        m_new = tl.maximum(m, m_n)
        m_new = tl.where(m_new == float("-inf"), 0.0, m_new)
        keep = tl.exp(m - m_new)
        w = tl.exp(m_n - m_new) * tl.load(l_ptr + row)
        o_n = tl.load(o_ptr + row * D + d, mask=(d < D) & (w > 0.0), other=0.0).to(tl.float32)
        acc = acc * keep + w * o_n
        total = total * keep + w
        m = m_new
    acc = acc / tl.where(total > 0.0, total, 1.0)
    tl.store(out_ptr + head * D + d, acc.to(out_ptr.dtype.element_ty), mask=d < D)


def merge_mlo(m, l, o):
    N, H, D = o.shape
    out = torch.empty((H, D), dtype=o.dtype, device=o.device)
    merge_kernel[(H,)](m.contiguous(), l.contiguous(), o.contiguous(), out, N, H, D, triton.next_power_of_2(D))
    return out
