"""Every result is NaN; the kernel looks at nothing.

exercise: softmax_stats
level: value
diagnosis: not_finite
"""

import torch
import triton
import triton.language as tl


@triton.jit
def fill_kernel(m_ptr, l_ptr):
    row = tl.program_id(0)
    tl.store(m_ptr + row, float("nan"))
    tl.store(l_ptr + row, float("nan"))


def softmax_stats(x, block=1024):
    m = torch.empty(x.shape[0], dtype=torch.float32, device=x.device)
    l = torch.empty(x.shape[0], dtype=torch.float32, device=x.device)
    if x.shape[0] > 0:
        fill_kernel[(x.shape[0],)](m, l)
    return m, l
