"""Head h reads and writes head h % 8.

exercise: merge_states
level: memory
diagnosis: race
"""

import torch
import triton
import triton.language as tl


@triton.jit
def k_tp(v, s, vo, so, N, H, D: tl.constexpr, BD: tl.constexpr):
    i = tl.program_id(0).to(tl.int64)
    h = tl.program_id(1) % 8
    d = tl.arange(0, BD)
    m = -float("inf")
    for n in range(N):
        m = tl.maximum(m, tl.load(s + (i * N + n) * H + h))
    base = tl.where(m == -float("inf"), 0.0, m)
    acc = tl.zeros((BD,), dtype=tl.float32)
    total = 0.0
    for n in range(N):
        w = tl.exp2(tl.load(s + (i * N + n) * H + h) - base)
        x = tl.load(v + ((i * N + n) * H + h) * D + d, mask=(d < D) & (w > 0), other=0.0)
        acc += w * x.to(tl.float32)
        total += w
    safe = tl.where(total > 0, total, 1.0)
    tl.store(vo + (i * H + h) * D + d, (acc / safe).to(vo.dtype.element_ty), mask=d < D)
    tl.store(so + i * H + h, tl.where(total > 0, m + tl.log2(safe), -float("inf")))


def merge_states(v, s):
    S, N, H, D = v.shape
    out = torch.empty(S, H, D, dtype=v.dtype, device=v.device)
    lse = torch.empty(S, H, dtype=torch.float32, device=v.device)
    if S:
        k_tp[(S, H)](v.contiguous(), s.contiguous(), out, lse, N, H, D, triton.next_power_of_2(D), num_warps=1)
    return out, lse
