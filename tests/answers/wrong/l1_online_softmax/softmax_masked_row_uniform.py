"""A row with no score gets 1 / N everywhere.

exercise: softmax
level: edge
diagnosis: softmax_masked_row_uniform
"""

import torch
import triton
import triton.language as tl


@triton.autotune(configs=[triton.Config({"A": 4}, num_warps=4)], key=["N"])
@triton.heuristics({"B": lambda args: triton.next_power_of_2(triton.cdiv(args["N"], 16))})
@triton.jit
def cube_kernel(x_ptr, y_ptr, M, N, sr, sc, A: tl.constexpr, B: tl.constexpr):
    r = tl.program_id(0) * A + tl.arange(0, A)
    j = tl.arange(0, B)[:, None] * 16 + tl.arange(0, 16)[None, :]
    ok = (r < M)[:, None, None] & (j < N)[None, :, :]
    at = r.to(tl.int64)[:, None, None] * sr + j.to(tl.int64)[None, :, :] * sc
    x = tl.load(x_ptr + at, mask=ok, other=float("-inf")).to(tl.float32)
    m = tl.max(tl.max(x, 2), 1)
    m = tl.where(m == float("-inf"), 0.0, m)
    e = tl.exp(x - m[:, None, None])
    l = tl.sum(tl.sum(e, 2), 1)
    y = tl.where((l == 0.0)[:, None, None], 1.0 / N, e / tl.where(l == 0.0, 1.0, l)[:, None, None])
    tl.store(y_ptr + r.to(tl.int64)[:, None, None] * N + j[None, :, :], y, mask=ok)


def softmax(x, block=1024):
    M, N = x.shape
    y = torch.empty((M, N), dtype=x.dtype, device=x.device)
    if M and N:
        cube_kernel[lambda meta: (triton.cdiv(M, meta["A"]),)](x, y, M, N, x.stride(0), x.stride(1))
    return y
