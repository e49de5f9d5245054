"""Each block is normalized by itself.

exercise: softmax
level: value
diagnosis: softmax_block_by_block
"""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * N + cols, mask=cols < N, other=float("-inf")).to(tl.float32)
    m = tl.max(x, axis=0)
    w = tl.exp(x - tl.where(m == float("-inf"), 0.0, m))
    l = tl.sum(w, axis=0)
    tl.store(y_ptr + row * N + cols, w / tl.where(l > 0, l, 1.0), mask=cols < N)


def softmax(x, block=1024):
    M, N = x.shape
    x = x.contiguous()
    y = torch.empty((M, N), dtype=x.dtype, device=x.device)
    if M > 0 and N > 0:
        softmax_kernel[(M, triton.cdiv(N, block))](x, y, N, block)
    return y
