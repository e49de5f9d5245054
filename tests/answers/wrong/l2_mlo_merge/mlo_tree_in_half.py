"""A tree of launches that keeps o in its own dtype on the way.

exercise: merge_mlo
level: edge
diagnosis: wrong_value
"""

import torch
import triton
import triton.language as tl


@triton.jit
def level_kernel(m_ptr, l_ptr, o_ptr, m2_ptr, l2_ptr, o2_ptr, N, H, D: tl.constexpr, W: tl.constexpr):
    p = tl.program_id(0).to(tl.int64)
    h = tl.program_id(1).to(tl.int64)
    d = tl.arange(0, W)
    a = 2 * p * H + h
    b = a + H
    has_b = 2 * p + 1 < N
    m_a = tl.load(m_ptr + a)
    l_a = tl.load(l_ptr + a)
    m_b = tl.load(m_ptr + b, mask=has_b, other=float("-inf"))
    l_b = tl.load(l_ptr + b, mask=has_b, other=0.0)
    top = tl.maximum(m_a, m_b)
    z = tl.where(top == float("-inf"), 0.0, top)
    w_a = tl.exp(m_a - z) * l_a
    w_b = tl.exp(m_b - z) * l_b
    o_a = tl.load(o_ptr + a * D + d, mask=d < D, other=0.0).to(tl.float32)
    o_b = tl.load(o_ptr + b * D + d, mask=(d < D) & has_b, other=0.0).to(tl.float32)
    o_a = tl.where(w_a > 0, o_a, 0.0)
    o_b = tl.where(w_b > 0, o_b, 0.0)
    w = w_a + w_b
    s = tl.where(w > 0, w, 1.0)
    at = p * H + h
    tl.store(m2_ptr + at, top)
    tl.store(l2_ptr + at, w)
    tl.store(o2_ptr + at * D + d, (o_a * w_a + o_b * w_b) / s, mask=d < D)


def merge_mlo(m, l, o):
    N, H, D = o.shape
    out = torch.zeros((H, D), dtype=o.dtype, device=o.device)
    if N == 0:
        return out
    m, l, o = m.contiguous(), l.contiguous(), o.contiguous()
    while True:
        half = (N + 1) // 2
        m2 = torch.empty((half, H), dtype=torch.float32, device=m.device)
        l2 = torch.empty((half, H), dtype=torch.float32, device=m.device)
        o2 = torch.empty((half, H, D), dtype=o.dtype, device=m.device)
        level_kernel[(half, H)](m, l, o, m2, l2, o2, N, H, D, triton.next_power_of_2(D), num_warps=2)
        m, l, o, N = m2, l2, o2, half
        if N == 1:
            break
    return o[0].to(out.dtype)
