"""Every result is NaN, which is what 0 * inf makes of a factor upside down.

exercise: softmax
level: value
diagnosis: softmax_inverted
twins: softmax_factor_upside_down
"""

import torch
import triton
import triton.language as tl


@triton.jit
def fill_kernel(x_ptr, y_ptr, size, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < size, other=0.0).to(tl.float32)
    tl.store(y_ptr + at, tl.where(x == x, float("nan"), 2.0), mask=at < size)


def softmax(x, block=1024):
    x = x.contiguous()
    y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if x.numel() > 0:
        fill_kernel[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), 256)
    return y
