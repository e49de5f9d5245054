"""The weight of b is e^(s_b - m), that of a 2^(s_a - m).

exercise: merge_state
level: value
diagnosis: exp_in_one_weight
"""

import torch
import triton
import triton.language as tl

NEG: tl.constexpr = tl.constexpr(float("-inf"))


@triton.jit
def weight(s, m):
    return tl.where(s == NEG, 0.0, tl.exp2(s - m))


@triton.autotune(configs=[triton.Config({"R": 8}, num_warps=4)], key=["D"])
@triton.heuristics({"P": lambda args: triton.next_power_of_2(args["D"])})
@triton.jit
def persistent_two(va, sa, vb, sb, v, s, rows, D: tl.constexpr, P: tl.constexpr, R: tl.constexpr):
    c = tl.arange(0, P)
    for start in tl.range(tl.program_id(0) * R, rows, tl.num_programs(0) * R, num_stages=2):
        r = start.to(tl.int64) + tl.arange(0, R)
        a = tl.load(sa + r, r < rows, NEG)
        b = tl.load(sb + r, r < rows, NEG)
        m = tl.maximum(a, b)
        p = weight(a, m)
        q = tl.where(b == NEG, 0.0, tl.exp(b - m))
        z = p + q
        p = tl.where(z > 0, p / z, 0.0)[:, None]
        q = tl.where(z > 0, q / z, 0.0)[:, None]
        at = r[:, None] * D + c[None, :]
        ok = (r < rows)[:, None] & (c < D)[None, :]
        x = tl.load(va + at, ok & (p > 0), 0.0).to(tl.float32)
        y = tl.load(vb + at, ok & (q > 0), 0.0).to(tl.float32)
        tl.store(v + at, x * p + y * q, ok)
        tl.store(s + r, tl.where(z > 0, m + tl.log2(z), NEG), r < rows)


def merge_state(v_a, s_a, v_b, s_b):
    S, H, D = v_a.shape
    v_a, s_a, v_b, s_b = (t.contiguous() for t in (v_a, s_a, v_b, s_b))
    v, s = torch.empty_like(v_a), torch.empty_like(s_a)
    if S * H > 0:
        grid = lambda meta: (min(3, triton.cdiv(S * H, meta["R"])),)
        persistent_two[grid](v_a, s_a, v_b, s_b, v, s, S * H, D)
    return v, s
