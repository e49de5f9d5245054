"""Only the first 16 queries.

exercise: partial_states
level: memory
diagnosis: unwritten
"""

import math

import torch
import triton
import triton.language as tl


@triton.jit
def ps_kernel(
    q,
    k,
    v,
    ov,
    os,
    S,
    N,
    H,
    L,
    T,
    scale,
    qs,
    qh,
    qd,
    kl,
    kh,
    kd,
    vl,
    vh,
    vd,
    D: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BD: tl.constexpr,
):
    n = tl.program_id(0).to(tl.int64)
    h = tl.program_id(1).to(tl.int64)
    r = tl.program_id(2).to(tl.int64) * BM + tl.arange(0, BM)
    c = tl.arange(0, BD).to(tl.int64)
    qt = tl.load(q + r[:, None] * qs + h * qh + c[None, :] * qd, mask=(r < S)[:, None] & (c < D)[None, :], other=0.0)
    m = tl.full([BM], float("-inf"), tl.float32)
    l = tl.zeros([BM], tl.float32)
    acc = tl.zeros([BM, BD], tl.float32)
    hi = tl.minimum((n + 1) * T, L)
    for at in range(n * T, hi, BN):
        j = at + tl.arange(0, BN)
        ok = (j < hi)[:, None] & (c < D)[None, :]
        kt = tl.load(k + j[:, None] * kl + h * kh + c[None, :] * kd, mask=ok, other=0.0)
        vt = tl.load(v + j[:, None] * vl + h * vh + c[None, :] * vd, mask=ok, other=0.0)
        t = tl.dot(qt, tl.trans(kt), input_precision="ieee") * scale
        t = tl.where((j < hi)[None, :], t, float("-inf"))
        new = tl.maximum(m, tl.max(t, 1))
        p = tl.exp(t - new[:, None])
        f = tl.exp(m - new)
        l = l * f + tl.sum(p, 1)
        acc = acc * f[:, None] + tl.dot(p.to(vt.dtype), vt, input_precision="ieee")
        m = new
    l1 = tl.where(l > 0, l, 1.0)
    at_out = (r * N + n) * H + h
    tl.store(ov + at_out[:, None] * D + c[None, :], acc / l1[:, None], mask=(r < S)[:, None] & (c < D)[None, :])
    tl.store(os + at_out, (m + tl.log(l1)) * 1.4426950408889634, mask=r < S)


def partial_states(q, k, v, num_splits, scale=None):
    S, H, D = q.shape
    L = k.shape[0]
    scale = 1 / math.sqrt(D) if scale is None else scale
    ov = torch.empty(S, num_splits, H, D, dtype=torch.float32, device=q.device)
    os = torch.empty(S, num_splits, H, dtype=torch.float32, device=q.device)
    if S == 0:
        return ov, os
    ps_kernel[(num_splits, H, 1)](
        q,
        k,
        v,
        ov,
        os,
        S,
        num_splits,
        H,
        L,
        triton.cdiv(L, num_splits),
        scale,
        *q.stride(),
        *k.stride(),
        *v.stride(),
        D=D,
        BM=16,
        BN=16,
        BD=max(16, triton.next_power_of_2(D)),
    )
    return ov, os
