"""The program of the last part merges what the others stored, as if they had come before it.

exercise: variable_length_merge_states
level: memory
diagnosis: read_race
"""

import torch
import triton
import triton.language as tl


@triton.jit
def last_arrives(
    v,
    s,
    ptr,
    out,
    so,
    part_v,
    part_m,
    part_l,
    count,
    H,
    D: tl.constexpr,
    B: tl.constexpr,
    P: tl.constexpr,
    K: tl.constexpr,
):
    i = tl.program_id(0).to(tl.int64)
    h = tl.program_id(1)
    k = tl.program_id(2)
    lo = tl.load(ptr + i).to(tl.int64)
    hi = tl.load(ptr + i + 1).to(tl.int64)
    c = tl.arange(0, P)
    m = tl.full([], float("-inf"), tl.float32)
    l = tl.zeros([], tl.float32)
    acc = tl.zeros([P], tl.float32)
    for n0 in range(lo + k * B, hi, K * B):
        n = n0 + tl.arange(0, B)
        a = tl.load(s + n * H + h, mask=n < hi, other=float("-inf"))
        new = tl.maximum(m, tl.max(a, 0))
        ref = tl.where(new == float("-inf"), 0.0, new)
        w = tl.exp2(a - ref)
        x = tl.load(v + (n * H + h)[:, None] * D + c, mask=(w > 0)[:, None] & (c < D), other=0.0).to(tl.float32)
        f = tl.exp2(m - ref)
        acc = acc * f + tl.sum(x * w[:, None], 0)
        l = l * f + tl.sum(w, 0)
        m = new
    row = i * H + h
    if K > 1:
        tl.store(part_v + (row * K + k) * D + c, acc, mask=c < D)
        tl.store(part_m + row * K + k, m)
        tl.store(part_l + row * K + k, l)
        tl.debug_barrier()
        tl.atomic_add(count + row, 1, sem="acq_rel")
        if k == K - 1:
            tl.debug_barrier()
            j = tl.arange(0, K)
            ms = tl.load(part_m + row * K + j)
            ls = tl.load(part_l + row * K + j)
            vs = tl.load(part_v + (row * K + j)[:, None] * D + c, mask=(c < D)[None, :], other=0.0)
            m = tl.max(ms, 0)
            ref = tl.where(m == float("-inf"), 0.0, m)
            w = tl.exp2(ms - ref)
            l = tl.sum(ls * w, 0)
            z = tl.where(l == 0, 1.0, l)
            o = tl.sum(vs * w[:, None], 0) / z
            tl.store(out + row * D + c, o.to(out.dtype.element_ty), mask=c < D)
            tl.store(so + row, m + tl.log2(z))
    else:
        z = tl.where(l == 0, 1.0, l)
        tl.store(out + row * D + c, (acc / z).to(out.dtype.element_ty), mask=c < D)
        tl.store(so + row, m + tl.log2(z))


def _ragged(v, s, indptr, K):
    H, D = v.shape[1:]
    S = indptr.shape[0] - 1
    out = torch.empty((S, H, D), dtype=v.dtype, device=v.device)
    so = torch.empty((S, H), dtype=torch.float32, device=v.device)
    if S:
        pv = torch.empty((S, H, K, D), dtype=torch.float32, device=v.device)
        pm = torch.empty((S, H, K), dtype=torch.float32, device=v.device)
        pl = torch.empty((S, H, K), dtype=torch.float32, device=v.device)
        count = torch.zeros((S, H), dtype=torch.int32, device=v.device)
        last_arrives[(S, H, K)](v, s, indptr, out, so, pv, pm, pl, count, H, D, 4, triton.next_power_of_2(D), K)
    return out, so


def variable_length_merge_states(v, s, indptr):
    return _ragged(v.contiguous(), s.contiguous(), indptr.contiguous(), 2)
