"""Rows of v past the end are loaded without other and multiplied by 0.

exercise: attend
level: memory
diagnosis: masked_lane
"""

import torch
import triton
import triton.language as tl


@triton.jit
def dot_kernel(s_ptr, v_ptr, o_ptr, M, N, ss0, ss1, sv0, sv1, D, R: tl.constexpr, C: tl.constexpr, W: tl.constexpr):
    r = (tl.program_id(0) * R + tl.arange(0, R)).to(tl.int64)
    d = tl.arange(0, W).to(tl.int64)
    m = tl.full((R,), float("-inf"), tl.float32)
    l = tl.full((R,), 0.0, tl.float32)
    acc = tl.zeros((R, W), tl.float32)
    for c in range(0, N, C):
        n = (c + tl.arange(0, C)).to(tl.int64)
        s = tl.load(
            s_ptr + r[:, None] * ss0 + n[None, :] * ss1, mask=(r < M)[:, None] & (n < N)[None, :], other=float("-inf")
        ).to(tl.float32)
        v = tl.load(v_ptr + n[:, None] * sv0 + d[None, :] * sv1, mask=(n < N)[:, None] & (d < D)[None, :])
        mn = tl.maximum(m, tl.max(s, 1))
        z = tl.where(mn == float("-inf"), 0.0, mn)
        p = tl.exp(s - z[:, None])
        a = tl.exp(m - z)
        l = l * a + tl.sum(p, 1)
        acc = tl.dot(p.to(v.dtype), v, acc * a[:, None], input_precision="ieee")
        m = mn
    acc = acc / tl.where(l == 0.0, 1.0, l)[:, None]
    tl.store(
        o_ptr + r[:, None] * D + d[None, :], acc.to(o_ptr.dtype.element_ty), mask=(r < M)[:, None] & (d < D)[None, :]
    )


def attend(scores, v, block=64):
    M, N = scores.shape
    D = v.shape[1]
    o = torch.empty((M, D), dtype=v.dtype, device=v.device)
    if M:
        dot_kernel[(triton.cdiv(M, 16),)](
            scores,
            v,
            o,
            M,
            N,
            *scores.stride(),
            *v.stride(),
            D,
            R=16,
            C=max(16, min(block, 32)),
            W=max(16, triton.next_power_of_2(D)),
        )
    return o
