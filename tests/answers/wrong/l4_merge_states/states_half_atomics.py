"""Shares are added to the result by atomics in half precision.

exercise: merge_states
level: value
diagnosis: summed_in_half
twins: states_half_accumulation
"""

import torch
import triton
import triton.language as tl


@triton.jit
def k_m(s, m, N, H):
    i = tl.program_id(0)
    h = tl.program_id(1)
    top = -float("inf")
    for n in range(N):
        top = tl.maximum(top, tl.load(s + (i * N + n) * H + h))
    t = 0.0
    z = tl.where(top == -float("inf"), 0.0, top)
    for n in range(N):
        t += tl.exp2(tl.load(s + (i * N + n) * H + h) - z)
    tl.store(m + i * H + h, z + tl.log2(t))


@triton.jit
def k_a(v, s, m, vo, N, H, D: tl.constexpr, BD: tl.constexpr):
    i = tl.program_id(0).to(tl.int64)
    n = tl.program_id(1)
    h = tl.program_id(2)
    d = tl.arange(0, BD)
    x = tl.load(s + (i * N + n) * H + h)
    if x > -float("inf"):
        w = tl.exp2(x - tl.load(m + i * H + h))
        y = tl.load(v + ((i * N + n) * H + h) * D + d, mask=d < D, other=0.0).to(tl.float32) * w
        tl.atomic_add(vo + (i * H + h) * D + d, y.to(vo.dtype.element_ty), mask=d < D)


def merge_states(v, s):
    S, N, H, D = v.shape
    out = torch.zeros(S, H, D, dtype=v.dtype, device=v.device)
    lse = torch.empty((S, H), dtype=torch.float32, device=v.device)
    if S:
        k_m[(S, H)](s.contiguous(), lse, N, H)
        if N:
            k_a[(S, N, H)](v.contiguous(), s.contiguous(), lse, out, N, H, D, triton.next_power_of_2(D))
    return out, lse
