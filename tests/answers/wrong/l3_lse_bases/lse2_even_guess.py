"""EVEN is decided by N % 32: the tail is read unmasked.

exercise: lse2
level: memory
diagnosis: out_of_bounds
"""

import torch
import triton
import triton.language as tl


def configs():
    return [triton.Config({"BLOCK": 64}, num_warps=1)]


@triton.autotune(configs=configs(), key=["N"])
@triton.heuristics({"EVEN": lambda args: args["N"] % 32 == 0})
@triton.jit
def lse2_tuned_kernel(x, out, N, sr, sc, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    m = tl.full([], float("-inf"), tl.float32)
    l = tl.full([], 0.0, tl.float32)
    for at in range(0, N, BLOCK):
        c = at + tl.arange(0, BLOCK)
        p = x + row * sr + c.to(tl.int64) * sc
        if EVEN:
            t = tl.load(p)
        else:
            t = tl.load(p, mask=c < N, other=float("-inf"))
        t = t.to(tl.float32) * 1.4426950408889634
        new = tl.maximum(m, tl.max(t, 0))
        base = tl.where(new == float("-inf"), 0.0, new)
        l = l * tl.exp2(m - base) + tl.sum(tl.exp2(t - base), 0)
        m = new
    tl.store(out + row, m + tl.log2(l))


def lse2(x):
    M, N = x.shape
    out = torch.empty(M, dtype=torch.float32, device=x.device)
    if M:
        lse2_tuned_kernel[(M,)](x, out, N, x.stride(0), x.stride(1))
    return out
