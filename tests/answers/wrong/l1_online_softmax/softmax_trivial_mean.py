"""Every column gets the weight 1 / N.

exercise: softmax
level: value
diagnosis: wrong_value
"""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(
    x_ptr,  # [M, N]
    y_ptr,  # [M, N]
    N,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * N + cols, mask=cols < N, other=float("-inf")).to(tl.float32)
        y = tl.where(x == x, 1.0 / N, 0.0)
        tl.store(y_ptr + row * N + cols, y, mask=cols < N)


def softmax(x, block=1024):
    M, N = x.shape
    x = x.contiguous()
    y = torch.empty((M, N), dtype=x.dtype, device=x.device)
    if M > 0 and N > 0:
        softmax_kernel[(M,)](x, y, N, block)
    return y
