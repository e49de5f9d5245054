"""log2(l + 1e-4), guarded for rows with no score.

exercise: lse
level: value
diagnosis: lse_epsilon
twins: lse_epsilon_in_log
"""

import torch
import triton
import triton.language as tl


@triton.jit
def lse_exp2_kernel(x_ptr, out_ptr, M, N, sr, sc, R: tl.constexpr, C: tl.constexpr):
    r = (tl.program_id(0) * R + tl.arange(0, R)).to(tl.int64)
    m = tl.full((R,), float("-inf"), tl.float32)
    l = tl.zeros((R,), tl.float32)
    for c in range(0, N, C):
        j = (c + tl.arange(0, C)).to(tl.int64)
        x = tl.load(
            x_ptr + r[:, None] * sr + j[None, :] * sc, mask=(r < M)[:, None] & (j < N)[None, :], other=float("-inf")
        ).to(tl.float32)
        mn = tl.maximum(m, tl.max(x, 1))
        z = tl.where(mn == float("-inf"), 0.0, mn)
        l = l * tl.exp2((m - z) * 1.4426950408889634) + tl.sum(tl.exp2((x - z[:, None]) * 1.4426950408889634), 1)
        m = mn
    out = tl.where(l > 0, m + tl.log2(l + 1e-4) * 0.6931471805599453, float("-inf"))
    tl.store(out_ptr + r, out, mask=r < M)


def lse(x):
    M, N = x.shape
    out = torch.empty(M, dtype=torch.float32, device=x.device)
    if M:
        lse_exp2_kernel[(triton.cdiv(M, 8),)](x, out, M, N, x.stride(0), x.stride(1), R=8, C=64)
    return out
