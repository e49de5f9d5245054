"""Every result is zero; the kernel looks at nothing.

exercise: merge_pair
level: value
diagnosis: wrong_value
"""

import torch
import triton
import triton.language as tl


@triton.jit
def fill_kernel(m_ptr, l_ptr, o_ptr, D, BLOCK_D: tl.constexpr):
    head = tl.program_id(0)
    d = tl.arange(0, BLOCK_D)
    tl.store(m_ptr + head, 0.0)
    tl.store(l_ptr + head, 0.0)
    tl.store(o_ptr + head * D + d, tl.full([BLOCK_D], 0.0, dtype=tl.float32), mask=d < D)


def merge_pair(m_a, l_a, o_a, m_b, l_b, o_b):
    H, D = o_a.shape
    m = torch.empty(H, dtype=torch.float32, device=o_a.device)
    l = torch.empty(H, dtype=torch.float32, device=o_a.device)
    o = torch.empty((H, D), dtype=o_a.dtype, device=o_a.device)
    fill_kernel[(H,)](m, l, o, D, triton.next_power_of_2(D))
    return m, l, o
