"""An LSE of 0 is taken for an empty row.

exercise: to_flashinfer
level: edge
diagnosis: not_finite
"""

import torch
import triton
import triton.language as tl


@triton.jit
def elem_kernel(x_ptr, s_ptr, n, B: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * B + tl.arange(0, B)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    y = x / 0.6931471805599453
    tl.store(s_ptr + i, tl.where((x == float("inf")) | (x == 0.0), -float("inf"), y), mask=i < n)


def to_flashinfer(lse):
    x = lse.t().contiguous()
    s = torch.empty_like(x)
    if x.numel():
        elem_kernel[(triton.cdiv(x.numel(), 512),)](x, s, x.numel(), B=512)
    return s
