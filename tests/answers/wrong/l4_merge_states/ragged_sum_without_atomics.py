"""Programs of one run add to its sum of weights with a load and a store.

exercise: variable_length_merge_states
level: memory
diagnosis: race
"""

import torch
import triton
import triton.language as tl


@triton.jit
def owner(ptr, S, row):
    lo = 0
    hi = S
    while lo < hi:
        mid = (lo + hi) // 2
        if tl.load(ptr + mid + 1) > row:
            hi = mid
        else:
            lo = mid + 1
    return lo


@triton.jit
def k_max(s, ptr, top, S, H, BH: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    h = tl.arange(0, BH)
    if row >= tl.load(ptr) and row < tl.load(ptr + S):
        i = owner(ptr, S, row)
        tl.atomic_max(top + i * H + h, tl.load(s + row * H + h, mask=h < H, other=float("-inf")), mask=h < H)


@triton.jit
def k_add(v, s, ptr, top, tot, acc, S, H, D, BH: tl.constexpr, BD: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    h = tl.arange(0, BH)
    d = tl.arange(0, BD)
    if row >= tl.load(ptr) and row < tl.load(ptr + S):
        i = owner(ptr, S, row)
        x = tl.load(s + row * H + h, mask=h < H, other=float("-inf"))
        m = tl.load(top + i * H + h, mask=h < H, other=0.0)
        w = tl.where(x > float("-inf"), tl.exp2(x - m), 0.0)
        live = (w > 0)[:, None] & (d < D)[None, :]
        y = tl.load(v + (row * H + h)[:, None] * D + d, mask=live, other=0.0).to(tl.float32)
        tl.store(tot + i * H + h, tl.load(tot + i * H + h, mask=w > 0, other=0.0) + w, mask=w > 0)
        tl.atomic_add(acc + (i * H + h)[:, None] * D + d, y * w[:, None], mask=live)


@triton.jit
def k_end(top, tot, acc, vo, so, H, D, BD: tl.constexpr):
    r = tl.program_id(0).to(tl.int64)
    d = tl.arange(0, BD)
    t = tl.load(tot + r)
    safe = tl.where(t > 0, t, 1.0)
    tl.store(vo + r * D + d, tl.load(acc + r * D + d, mask=d < D, other=0.0) / safe, mask=d < D)
    tl.store(so + r, tl.load(top + r) + tl.log2(safe))


def variable_length_merge_states(v, s, indptr):
    M, H, D = v.shape
    S = len(indptr) - 1
    v, s, indptr = v.contiguous(), s.contiguous(), indptr.to(torch.int64).contiguous()
    top = torch.full((S, H), float("-inf"), device=v.device)
    tot = torch.zeros((S, H), device=v.device)
    acc = torch.zeros((S, H, D), device=v.device)
    out = torch.empty((S, H, D), dtype=v.dtype, device=v.device)
    lse = torch.empty((S, H), device=v.device)
    if S == 0:
        return out, lse
    BH, BD = triton.next_power_of_2(H), triton.next_power_of_2(D)
    if M:
        k_max[(M,)](s, indptr, top, S, H, BH)
        k_add[(M,)](v, s, indptr, top, tot, acc, S, H, D, BH, BD)
    k_end[(S * H,)](top, tot, acc, out, lse, H, D, BD)
    return out, lse
