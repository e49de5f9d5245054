"""Where part a is empty, the result is empty, whatever b is.

exercise: merge_pair
level: edge
diagnosis: pair_empty_wins
"""

import torch
import triton
import triton.language as tl


@triton.jit
def sigmoid_pair_kernel(ma, la, oa, mb, lb, ob, m, l, o, D: tl.constexpr, W: tl.constexpr):
    h = tl.program_id(0).to(tl.int64)
    d = tl.arange(0, W)
    m_a, l_a, m_b, l_b = tl.load(ma + h), tl.load(la + h), tl.load(mb + h), tl.load(lb + h)
    x_a = tl.load(oa + h * D + d, mask=d < D, other=0.0).to(tl.float32)
    x_b = tl.load(ob + h * D + d, mask=d < D, other=0.0).to(tl.float32)
    a_ok = m_a > float("-inf")
    b_ok = m_b > float("-inf")
    if a_ok:
        if b_ok:
            t = tl.sigmoid((m_b - m_a) + tl.log(l_b / l_a))  # b's share
            top = tl.maximum(m_a, m_b)
            tl.store(m + h, top)
            tl.store(l + h, l_a * tl.exp(m_a - top) + l_b * tl.exp(m_b - top))
            tl.store(o + h * D + d, x_a * (1.0 - t) + x_b * t, mask=d < D)
        else:
            tl.store(m + h, m_a)
            tl.store(l + h, l_a)
            tl.store(o + h * D + d, x_a, mask=d < D)
    else:
        tl.store(m + h, m_a)
        tl.store(l + h, 0.0)
        tl.store(o + h * D + d, tl.zeros((W,), tl.float32), mask=d < D)


def merge_pair(m_a, l_a, o_a, m_b, l_b, o_b):
    H, D = o_a.shape
    m = torch.empty_like(m_a, memory_format=torch.contiguous_format)
    l = torch.empty_like(m)
    o = torch.empty((H, D), dtype=o_a.dtype, device=o_a.device)
    sigmoid_pair_kernel[(H,)](
        m_a.contiguous(),
        l_a.contiguous(),
        o_a.contiguous(),
        m_b.contiguous(),
        l_b.contiguous(),
        o_b.contiguous(),
        m,
        l,
        o,
        D,
        triton.next_power_of_2(D),
        num_warps=1,
    )
    return m, l, o
