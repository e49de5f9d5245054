"""The running sum starts in the result's half precision and turns into float32 in the loop, which no compiler takes.

exercise: merge_states
level: compile
diagnosis: compile_error
"""

import torch
import triton
import triton.language as tl

NEG: tl.constexpr = tl.constexpr(float("-inf"))


@triton.jit
def weight(s, m):
    return tl.where(s == NEG, 0.0, tl.exp2(s - m))


@triton.jit
def tiles(
    v, s, ptr, out, so, S, N, H: tl.constexpr, HB: tl.constexpr, D: tl.constexpr, DB: tl.constexpr, RAGGED: tl.constexpr
):
    """Programs by (position, column block), loop over blocks of heads, then over states one at a time."""
    i = tl.program_id(1).to(tl.int64)
    d = tl.program_id(0) * DB + tl.arange(0, DB)
    if RAGGED:
        lo = tl.load(ptr + i).to(tl.int64)
        hi = tl.load(ptr + i + 1).to(tl.int64)
    else:
        lo = i * N
        hi = lo + N
    for h0 in tl.static_range(0, H, HB):
        h = h0 + tl.arange(0, HB)
        m = tl.full([HB], NEG, tl.float32)
        z = tl.full([HB], 0, tl.float32)
        acc = tl.zeros([HB, DB], out.dtype.element_ty)
        for n in range(lo, hi):
            a = tl.load(s + n * H + h, h < H, NEG)
            new = tl.maximum(m, a)
            w = weight(a, new)
            f = weight(m, new)
            x = tl.load(v + (n * H + h)[:, None] * D + d[None, :], ((h < H) & (w > 0))[:, None] & (d < D)[None, :], 0.0)
            acc = acc * f[:, None] + x.to(tl.float32) * w[:, None]
            z = z * f + w
            m = new
        ok = (h < H)[:, None] & (d < D)[None, :]
        tl.store(out + (i * H + h)[:, None] * D + d[None, :], tl.where(z > 0, 1 / z, 0.0)[:, None] * acc, ok)
        if tl.program_id(0) == 0:
            tl.store(so + i * H + h, tl.where(z > 0, m + tl.log2(z), NEG), h < H)


def _tiles(v, s, ptr, S, N):
    H, D = v.shape[-2:]
    v, s = v.contiguous(), s.contiguous()
    out = torch.empty((S, H, D), dtype=v.dtype, device=v.device)
    so = torch.empty((S, H), dtype=torch.float32, device=v.device)
    DB = min(64, triton.next_power_of_2(D))
    if S:
        tiles[(triton.cdiv(D, DB), S)](
            v, s, ptr, out, so, S, N, H, min(4, triton.next_power_of_2(H)), D, DB, ptr is not None
        )
    return out, so


def merge_states(v, s):
    return _tiles(v, s, None, v.shape[0], v.shape[1])
