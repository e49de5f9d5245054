"""exp of scores that carry log2(e).

exercise: lse2
level: value
diagnosis: lse2_exp_of_base_2
"""

import torch
import triton
import triton.language as tl

LOG2E = tl.constexpr(1.4426950408889634)


@triton.jit
def join2(ma, la, mb, lb):
    m = tl.maximum(ma, mb)
    z = tl.where(m == float("-inf"), 0.0, m)
    return m, la * tl.exp(ma - z) + lb * tl.exp(mb - z)


@triton.jit
def scan_kernel(x_ptr, out_ptr, N, sr, sc, C: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    j = tl.arange(0, C)
    m = tl.full((C,), float("-inf"), tl.float32)
    l = tl.zeros((C,), tl.float32)
    for c in range(0, N, C):
        k = (c + j).to(tl.int64)
        x = tl.load(x_ptr + row * sr + k * sc, mask=k < N, other=float("-inf")).to(tl.float32) * LOG2E
        m, l = join2(m, l, x, tl.where(x == float("-inf"), 0.0, 1.0))
    pm, pl = tl.associative_scan((m, l), 0, join2)
    s = tl.where(j == C - 1, tl.where(pl > 0, pm + tl.log2(pl), float("-inf")), float("-inf"))
    tl.store(out_ptr + row, tl.max(s, 0))


def lse2(x):
    M, N = x.shape
    out = torch.empty(M, dtype=torch.float32, device=x.device)
    if M:
        scan_kernel[(M,)](x, out, N, *x.stride(), C=32)
    return out
