"""o takes the dtype of o_b in place of that of o_a.

exercise: merge_pair
level: edge
diagnosis: wrong_form
"""

import torch
import triton
import triton.language as tl


@triton.jit
def pair_kernel(m_a, l_a, o_a, m_b, l_b, o_b, m, l, o, D: tl.constexpr, BLOCK_D: tl.constexpr):
    h = tl.program_id(0)
    d = tl.arange(0, BLOCK_D)
    top = tl.maximum(tl.load(m_a + h), tl.load(m_b + h))
    shift = tl.where(top == float("-inf"), 0.0, top)
    a = tl.load(l_a + h) * tl.exp(tl.load(m_a + h) - shift)
    b = tl.load(l_b + h) * tl.exp(tl.load(m_b + h) - shift)
    of_a = tl.load(o_a + h * D + d, mask=(d < D) & (a > 0), other=0.0).to(tl.float32)
    of_b = tl.load(o_b + h * D + d, mask=(d < D) & (b > 0), other=0.0).to(tl.float32)
    total = a + b
    merged = (of_a * a + of_b * b) / tl.where(total > 0, total, 1.0)
    tl.store(o + h * D + d, merged.to(o.dtype.element_ty), mask=d < D)
    tl.store(m + h, top)
    tl.store(l + h, total)


def merge_pair(m_a, l_a, o_a, m_b, l_b, o_b):
    H, D = o_a.shape
    args = [x.contiguous() for x in (m_a, l_a, o_a, m_b, l_b, o_b)]
    m, l, o = (torch.empty_like(x) for x in args[3:])
    if H:
        pair_kernel[(H,)](*args, m, l, o, D, triton.next_power_of_2(D))
    return m, l, o
