"""The first column is handed back as m and as l.

exercise: softmax_stats
level: value
diagnosis: wrong_value
"""

import torch
import triton
import triton.language as tl


@triton.jit
def first_kernel(x_ptr, m_ptr, l_ptr, N):
    row = tl.program_id(0).to(tl.int64)
    x = tl.load(x_ptr + row * N).to(tl.float32)
    tl.store(m_ptr + row, x)
    tl.store(l_ptr + row, x)


def softmax_stats(x, block=1024):
    M, N = x.shape
    x = x.contiguous()
    m = torch.zeros(M, dtype=torch.float32, device=x.device)
    l = torch.zeros(M, dtype=torch.float32, device=x.device)
    if M > 0 and N > 0:
        first_kernel[(M,)](x, m, l, N)
    return m, l
