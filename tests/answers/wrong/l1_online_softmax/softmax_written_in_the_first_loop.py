"""Each block is divided by what l is by then, in the loop that still adds it up.

exercise: softmax
level: value
diagnosis: softmax_as_it_goes
"""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, y_ptr, N, stride_row, stride_col, BLOCK: tl.constexpr, STAGES: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    m = float("-inf")
    l = 0.0
    for start in range(0, N, BLOCK):
        n = (start + tl.arange(0, BLOCK)).to(tl.int64)
        x = tl.load(x_ptr + row * stride_row + n * stride_col, mask=n < N, other=float("-inf")).to(tl.float32)
        m_new = tl.maximum(m, tl.max(x, axis=0))
        shift = tl.where(m_new == float("-inf"), 0.0, m_new)
        l = l * tl.exp(m - shift) + tl.sum(tl.exp(x - shift), axis=0)
        m = m_new
        y = tl.exp(x - shift) / tl.where(l > 0, l, 1.0)
        tl.store(y_ptr + row * N + n, y, mask=n < N)


def softmax(x: torch.Tensor, block: int = 1024) -> torch.Tensor:
    M, N = x.shape
    y = torch.empty((M, N), dtype=x.dtype, device=x.device)
    if M and N:
        softmax_kernel[(M,)](x, y, N, *x.stride(), min(block, triton.next_power_of_2(N)), 1)
    return y
