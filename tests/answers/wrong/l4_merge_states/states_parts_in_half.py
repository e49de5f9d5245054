"""Many states are merged in parts by a first launch, which leaves their v in half precision.

exercise: merge_states
level: value
diagnosis: parts_in_half
"""

import torch
import triton
import triton.language as tl


@triton.jit
def part_kernel(
    v, s, starts, part_v, part_s, N, per, H, RAGGED: tl.constexpr, D: tl.constexpr, BN: tl.constexpr, P: tl.constexpr
):
    i, h, k = tl.program_id(0).to(tl.int64), tl.program_id(1), tl.program_id(2)
    K = tl.num_programs(2)
    if RAGGED:
        lo = tl.load(starts + i).to(tl.int64)
        hi = tl.load(starts + i + 1).to(tl.int64)
    else:
        lo = i * N
        hi = (i + 1) * N
    n_in_part = tl.cdiv(hi - lo, K)
    first = tl.minimum(lo + k * n_in_part, hi)
    last = tl.minimum(first + n_in_part, hi)
    c = tl.arange(0, P)
    peak = tl.full((), float("-inf"), tl.float32)
    mass = tl.full((), 0, tl.float32)
    acc = tl.full((P,), 0, tl.float32)
    n0 = first
    while n0 < last:
        n = n0 + tl.arange(0, BN)
        sn = tl.load(s + n * H + h, mask=n < last, other=float("-inf"))
        higher = tl.maximum(peak, tl.max(sn))
        ref = tl.where(higher == float("-inf"), 0.0, higher)
        w = tl.exp2(sn - ref)
        x = tl.load(v + (n * H + h)[:, None] * D + c[None, :], mask=(w > 0)[:, None] & (c < D)[None, :], other=0.0)
        shrink = tl.exp2(peak - ref)
        acc = acc * shrink + tl.sum(x.to(tl.float32) * w[:, None], 0)
        mass = mass * shrink + tl.sum(w)
        peak = higher
        n0 += BN
    empty = mass == 0
    div = tl.where(empty, 1.0, mass)
    at = (i * K + k) * H + h
    tl.store(part_v + at * D + c, (acc / div).to(part_v.dtype.element_ty), mask=c < D)
    tl.store(part_s + at, tl.where(empty, float("-inf"), peak + tl.log2(div)))


def _merge(v, s, starts, S, N, H, D):
    out = torch.empty((S, H, D), dtype=v.dtype, device=v.device)
    out_s = torch.empty((S, H), dtype=torch.float32, device=v.device)
    if S == 0:
        return out, out_s
    P = triton.next_power_of_2(D)
    v, s = v.contiguous(), s.contiguous()
    parts = min(4, N // 128) if starts is None else 3
    if parts < 2:
        part_kernel[(S, H, 1)](v, s, starts, out, out_s, N, 0, H, starts is not None, D, 4, P)
    else:
        work = torch.empty((S, parts, H, D), dtype=v.dtype, device=v.device)
        work_s = torch.empty((S, parts, H), dtype=torch.float32, device=v.device)
        part_kernel[(S, H, parts)](v, s, starts, work, work_s, N, 0, H, starts is not None, D, 16, P)
        part_kernel[(S, H, 1)](work, work_s, None, out, out_s, parts, 0, H, False, D, 4, P)
    return out, out_s


def merge_states(v, s):
    S, N, H, D = v.shape
    return _merge(v, s, None, S, N, H, D)
