"""A tile of rows has one running max, that of all its rows.

exercise: softmax
level: edge
diagnosis: wrong_value
"""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(
    x_ptr,  # [M, N]
    y_ptr,  # [M, N]
    M,
    N,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    m = float("-inf")
    l = tl.zeros([ROWS], dtype=tl.float32)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        ok = (row < M)[:, None] & (cols < N)[None, :]
        x = tl.load(x_ptr + row[:, None] * N + cols[None, :], mask=ok, other=float("-inf")).to(tl.float32)
        m_new = tl.maximum(m, tl.max(x))
        shift = tl.where(m_new == float("-inf"), 0.0, m_new)
        l = l * tl.exp(m - shift) + tl.sum(tl.exp(x - shift), axis=1)
        m = m_new
    shift = tl.where(m == float("-inf"), 0.0, m)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        ok = (row < M)[:, None] & (cols < N)[None, :]
        x = tl.load(x_ptr + row[:, None] * N + cols[None, :], mask=ok, other=float("-inf")).to(tl.float32)
        y = tl.exp(x - shift) / tl.where(l > 0, l, 1.0)[:, None]
        tl.store(y_ptr + row[:, None] * N + cols[None, :], y, mask=ok)


def softmax(x, block=1024):
    M, N = x.shape
    x = x.contiguous()
    y = torch.empty((M, N), dtype=x.dtype, device=x.device)
    if M > 0 and N > 0:
        softmax_kernel[(triton.cdiv(M, 4),)](x, y, M, N, 4, min(block, 1024))
    return y
