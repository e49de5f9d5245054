"""A tile of rows has one running max, that of all its rows.

exercise: lse
level: edge
diagnosis: not_finite
"""

import torch
import triton
import triton.language as tl


@triton.jit
def lse_kernel(
    x_ptr,  # [M, N]
    lse_ptr,  # [M]
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
    result = tl.where(l > 0, m + tl.log(tl.where(l > 0, l, 1.0)), float("-inf"))
    tl.store(lse_ptr + row, result, mask=row < M)


def lse(x):
    M, N = x.shape
    x = x.contiguous()
    out = torch.empty(M, dtype=torch.float32, device=x.device)
    if M > 0:
        lse_kernel[(triton.cdiv(M, 4),)](x, out, M, N, 4, 256)
    return out
