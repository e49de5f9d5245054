"""scale = 0 or None: `scale or 1/sqrt(D)`.

exercise: attend_shared
level: value
diagnosis: shared_scale_zero_is_none
"""

import torch
import triton
import triton.language as tl

LOG2E = 1.4426950408889634


@triton.jit
def shared_kernel(
    q,
    k,
    v,
    m0,
    vo,
    so,
    scale,
    B,
    P,
    HQ,
    HKV,
    qb,
    qh,
    qd,
    kn,
    kh,
    kd,
    vn,
    vh,
    vd,
    HAVE: tl.constexpr,
    G: tl.constexpr,
    D: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BD: tl.constexpr,
):
    g = tl.program_id(1).to(tl.int64)
    r = tl.program_id(0).to(tl.int64) * BM + tl.arange(0, BM)
    b = r // G
    h = g * G + r % G
    c = tl.arange(0, BD).to(tl.int64)
    live = b < B
    io = live[:, None] & (c < D)[None, :]
    row = b * HQ + h
    qt = tl.load(q + b[:, None] * qb + h[:, None] * qh + c[None, :] * qd, mask=io, other=0.0)
    if HAVE:
        m = tl.load(so + row, mask=live, other=float("-inf"))
        l = tl.where(m == float("-inf"), 0.0, 1.0)
        acc = tl.load(m0 + row[:, None] * D + c[None, :], mask=io & (l > 0)[:, None], other=0.0)
    else:
        m = tl.full([BM], float("-inf"), tl.float32)
        l = tl.zeros([BM], tl.float32)
        acc = tl.zeros([BM, BD], tl.float32)
    kb = tl.make_block_ptr(k + g * kh, (D, P), (kd, kn), (0, 0), (BD, BN), (0, 1))
    vb = tl.make_block_ptr(v + g * vh, (P, D), (vn, vd), (0, 0), (BN, BD), (1, 0))
    for at in range(0, P, BN):
        t = tl.dot(qt, tl.load(kb, boundary_check=(0, 1), padding_option="zero"), input_precision="ieee") * scale
        t = tl.where((at + tl.arange(0, BN) < P)[None, :], t, float("-inf"))
        new = tl.maximum(m, tl.max(t, 1))
        p = tl.exp2(t - new[:, None])
        f = tl.exp2(m - new)
        l = l * f + tl.sum(p, 1)
        vt = tl.load(vb, boundary_check=(0, 1), padding_option="zero")
        acc = acc * f[:, None] + tl.dot(p.to(vt.dtype), vt, input_precision="ieee")
        m = new
        kb = tl.advance(kb, (0, BN))
        vb = tl.advance(vb, (BN, 0))
    l = tl.where(l > 0, l, 1.0)
    tl.store(vo + row[:, None] * D + c[None, :], (acc / l[:, None]).to(vo.dtype.element_ty), mask=io)
    tl.store(so + row, m + tl.log2(l), mask=live)


def run_shared(q, k, v, scale, have, out, s):
    B, HQ, D = q.shape
    P, HKV, _ = k.shape
    if B == 0:
        return
    G = HQ // HKV
    bm = min(64, max(16, triton.next_power_of_2(B * G)))
    shared_kernel[(triton.cdiv(B * G, bm), HKV)](
        q,
        k,
        v,
        have,
        out,
        s,
        scale * LOG2E,
        B,
        P,
        HQ,
        HKV,
        *q.stride(),
        *k.stride(),
        *v.stride(),
        HAVE=have is not None,
        G=G,
        D=D,
        BM=bm,
        BN=16,
        BD=max(16, triton.next_power_of_2(D)),
    )


def attend_shared(q, k, v, scale=None):
    B, HQ, D = q.shape
    scale = scale or D**-0.5
    out = torch.empty(B, HQ, D, dtype=torch.float32, device=q.device)
    s = torch.empty(B, HQ, dtype=torch.float32, device=q.device)
    run_shared(q, k, v, scale, None, out, s)
    return out, s
