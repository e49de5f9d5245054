"""indices of a stride are read as if contiguous.

exercise: attend_paged
level: memory
diagnosis: out_of_bounds
"""

import torch
import triton
import triton.language as tl

LOG2E = 1.4426950408889634


@triton.jit
def paged_kernel(
    q,
    kv,
    members,
    ptr,
    idx,
    last,
    vo,
    so,
    scale,
    groups,
    N,
    HQ,
    page,
    qb,
    qh,
    qd,
    kp,
    k2,
    kn,
    kh,
    kd,
    GROUPED: tl.constexpr,
    G: tl.constexpr,
    D: tl.constexpr,
    SLOTS: tl.constexpr,
    COLS: tl.constexpr,
):
    b = tl.program_id(0).to(tl.int64)
    h = tl.program_id(1).to(tl.int64)
    c = tl.arange(0, COLS).to(tl.int64)
    lo = b * 0
    hi = b * 0
    tail = b * 0
    if GROUPED:
        for g in range(0, groups):
            first = tl.load(members + g)
            end = tl.load(members + g + 1)
            if (first <= b) & (b < end):
                lo = tl.load(ptr + g).to(tl.int64)
                hi = tl.load(ptr + g + 1).to(tl.int64)
                if hi > lo:
                    tail = tl.load(last + g).to(tl.int64)
    else:
        lo = tl.load(ptr + b).to(tl.int64)
        hi = tl.load(ptr + b + 1).to(tl.int64)
        if hi > lo:
            tail = tl.load(last + b).to(tl.int64)
    qv = tl.load(q + b * qb + h * qh + c * qd, mask=c < D, other=0.0).to(tl.float32) * scale
    m = tl.full([], float("-inf"), tl.float32)
    l = tl.full([], 0.0, tl.float32)
    acc = tl.zeros([COLS], tl.float32)
    for j in range(lo, hi):
        number = tl.load(idx + j).to(tl.int64)
        length = tl.where(j == hi - 1, tail, page)
        base = kv + number * kp + (h // G) * kh
        for at in range(0, length, SLOTS):
            t = at + tl.arange(0, SLOTS).to(tl.int64)
            ok = (t < length)[:, None] & (c < D)[None, :]
            kt = tl.load(base + t[:, None] * kn + c[None, :] * kd, mask=ok, other=0.0).to(tl.float32)
            vt = tl.load(base + k2 + t[:, None] * kn + c[None, :] * kd, mask=ok, other=0.0).to(tl.float32)
            x = tl.where(t < length, tl.sum(kt * qv[None, :], 1), float("-inf"))
            new = tl.maximum(m, tl.max(x, 0))
            f = tl.exp2(m - new)
            p = tl.exp2(x - new)
            l = l * f + tl.sum(p, 0)
            acc = acc * f + tl.sum(p[:, None] * vt, 0)
            m = new
    l = tl.where(l > 0, l, 1.0)
    at_out = (b * N) * HQ + h
    tl.store(vo + at_out * D + c, acc / l, mask=c < D)
    tl.store(so + at_out, m + tl.log2(l))


def run_paged(q, kv, members, ptr, idx, last, scale, out, s, parts):
    B, HQ, D = q.shape
    page, HKV = kv.shape[2], kv.shape[3]
    if B:
        paged_kernel[(B, HQ)](
            q,
            kv,
            members,
            ptr.contiguous(),
            idx,
            last.contiguous(),
            out,
            s,
            scale * LOG2E,
            ptr.shape[0] - 1,
            parts,
            HQ,
            page,
            *q.stride(),
            *kv.stride(),
            GROUPED=members is not None,
            G=HQ // HKV,
            D=D,
            SLOTS=8,
            COLS=triton.next_power_of_2(D),
        )


def attend_paged(q, kv_cache, indptr, indices, last_page_len, scale=None):
    B, HQ, D = q.shape
    scale = D**-0.5 if scale is None else scale
    out = torch.empty(B, HQ, D, dtype=torch.float32, device=q.device)
    s = torch.empty(B, HQ, dtype=torch.float32, device=q.device)
    run_paged(q, kv_cache, None, indptr, indices, last_page_len, scale, out, s, 1)
    return out, s
