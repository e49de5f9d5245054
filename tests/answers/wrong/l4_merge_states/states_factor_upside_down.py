"""The old sums are scaled by 2^(m_new - m_old).

exercise: merge_states
level: value
diagnosis: factor_upside_down
"""

import torch
import triton
import triton.language as tl


@triton.heuristics(
    {"BD": lambda a: triton.next_power_of_2(a["D"]), "BN": lambda a: min(16, triton.next_power_of_2(max(a["N"], 2)))}
)
@triton.jit
def k_heur(v, s, vo, so, N, H, D: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr):
    i = tl.program_id(0).to(tl.int64)
    h = tl.program_id(1)
    d = tl.arange(0, BD)[None, :]
    m = tl.full([1], -float("inf"), tl.float32)
    l = tl.zeros([1], tl.float32)
    acc = tl.zeros([BD], tl.float32)
    for start in tl.range(0, N, BN, num_stages=2):
        n = start + tl.arange(0, BN)
        row = (i * N + n) * H + h
        x = tl.load(s + row, mask=n < N, other=-float("inf"))
        new = tl.maximum(m, tl.max(x, 0, keep_dims=True))
        z = tl.maximum(new, -3.0e38)
        w = tl.exp2(x - z)
        y = tl.load(v + row[:, None] * D + d, mask=(w > 0)[:, None] & (d < D), other=0.0)
        c = tl.exp2(tl.where(m == -float("inf"), -float("inf"), z - m))
        acc = acc * c + tl.sum(w[:, None] * y, 0)
        l = l * c + tl.sum(w, 0)
        m = new
    d1 = tl.arange(0, BD)
    tl.store(vo + (i * H + h) * D + d1, acc / tl.maximum(l, 1e-30), mask=d1 < D)
    tl.store(so + i * H + h + tl.arange(0, 1), m + tl.log2(l))


def merge_states(v, s):
    S, N, H, D = v.shape
    out = torch.empty(S, H, D, dtype=v.dtype, device=v.device)
    lse = torch.empty(S, H, dtype=torch.float32, device=v.device)
    if S:
        k_heur[(S, H)](v.contiguous(), s.contiguous(), out, lse, N, H, D)
    return out, lse
