"""A part that weighs less than 1e-6 of the other is left out of o.

exercise: merge_pair
level: edge
diagnosis: wrong_value
"""

import torch
import triton
import triton.language as tl


@triton.jit
def pair_kernel(
    m_a_ptr,  # [H]
    l_a_ptr,  # [H]
    o_a_ptr,  # [H, D]
    m_b_ptr,  # [H]
    l_b_ptr,  # [H]
    o_b_ptr,  # [H, D]
    m_ptr,  # [H]
    l_ptr,  # [H]
    o_ptr,  # [H, D]
    D,
    BLOCK_D: tl.constexpr,
):
    head = tl.program_id(0).to(tl.int64)
    d = tl.arange(0, BLOCK_D)
    m_a = tl.load(m_a_ptr + head)
    m_b = tl.load(m_b_ptr + head)
    l_a = tl.load(l_a_ptr + head)
    l_b = tl.load(l_b_ptr + head)
    m = tl.maximum(m_a, m_b)
    shift = tl.where(m == float("-inf"), 0.0, m)
    w_a = tl.exp(m_a - shift) * l_a
    w_b = tl.exp(m_b - shift) * l_b
    l = w_a + w_b
    total = tl.where(l > 0, l, 1.0)
    o_a = tl.load(o_a_ptr + head * D + d, mask=(d < D) & (w_a > 0), other=0.0).to(tl.float32)
    o_b = tl.load(o_b_ptr + head * D + d, mask=(d < D) & (w_b > 0), other=0.0).to(tl.float32)
    big = tl.maximum(w_a, w_b)
    o = (tl.where(w_a > 1e-6 * big, w_a, 0.0) * o_a + tl.where(w_b > 1e-6 * big, w_b, 0.0) * o_b) / total
    tl.store(m_ptr + head, m)
    tl.store(l_ptr + head, l)
    tl.store(o_ptr + head * D + d, o, mask=d < D)


def merge_pair(m_a, l_a, o_a, m_b, l_b, o_b):
    H, D = o_a.shape
    m_a, l_a, o_a = m_a.contiguous(), l_a.contiguous(), o_a.contiguous()
    m_b, l_b, o_b = m_b.contiguous(), l_b.contiguous(), o_b.contiguous()
    m = torch.empty(H, dtype=torch.float32, device=o_a.device)
    l = torch.empty(H, dtype=torch.float32, device=o_a.device)
    o = torch.empty((H, D), dtype=o_a.dtype, device=o_a.device)
    pair_kernel[(H,)](m_a, l_a, o_a, m_b, l_b, o_b, m, l, o, D, triton.next_power_of_2(D))
    return m, l, o
