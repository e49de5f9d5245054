"""Offsets of keys are computed in 32 bits.

exercise: attend_shared
level: memory
diagnosis: out_of_bounds
"""

import torch
import triton
import triton.language as tl

LOG2E = 1.4426950408889634


@triton.jit
def scores_of(x, k, key, P, scale, kvh, k0, k1, k2, d, D: tl.constexpr):
    kt = tl.load(
        k + key[None, :] * k0 + kvh * k1 + d[:, None] * k2, mask=(key < P)[None, :] & (d < D)[:, None], other=0.0
    )
    sc = tl.dot(x, kt, input_precision="ieee")
    return tl.where((key < P)[None, :], sc * scale, float("-inf"))


@triton.jit
def a_tp(
    q,
    k,
    v,
    vo,
    so,
    scale,
    B,
    P,
    Hq,
    q0,
    q1,
    q2,
    k0,
    k1,
    k2,
    v0,
    v1,
    v2,
    G: tl.constexpr,
    D: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BD: tl.constexpr,
):
    kvh = tl.program_id(0)
    r = tl.program_id(1) * BM + tl.arange(0, BM)
    d = tl.arange(0, BD)
    req = r // G
    head = kvh * G + r % G
    ok = (r < B * G)[:, None] & (d < D)[None, :]
    x = tl.load(q + (req * q0 + head * q1)[:, None] + d[None, :] * q2, mask=ok, other=0.0)
    m = tl.full([BM], float("-inf"), tl.float32)
    l = tl.zeros([BM], tl.float32)
    for p in range(0, P, BN):
        key = p + tl.arange(0, BN)
        sc = scores_of(x, k, key, P, scale, kvh, k0, k1, k2, d, D)
        new = tl.maximum(m, tl.max(sc, 1))
        l = l * tl.exp2(m - new) + tl.sum(tl.exp2(sc - new[:, None]), 1)
        m = new
    s = tl.where(l > 0, m + tl.log2(tl.where(l > 0, l, 1.0)), float("-inf"))
    acc = tl.zeros([BM, BD], tl.float32)
    for p in range(0, P, BN):
        key = p + tl.arange(0, BN)
        sc = scores_of(x, k, key, P, scale, kvh, k0, k1, k2, d, D)
        w = tl.exp2(sc - s[:, None])
        vt = tl.load(
            v + key[:, None] * v0 + kvh * v1 + d[None, :] * v2, mask=(key < P)[:, None] & (d < D)[None, :], other=0.0
        )
        acc = tl.dot(w.to(vt.dtype), vt, acc, input_precision="ieee")
    tl.store(vo + (req * Hq + head)[:, None] * D + d[None, :], acc, mask=ok)
    tl.store(so + req * Hq + head, s, mask=r < B * G)


def attend_shared(q, k, v, scale=None):
    B, Hq, D = q.shape
    P, Hkv, _ = k.shape
    scale = (D**-0.5 if scale is None else scale) * LOG2E
    G = Hq // Hkv
    vo = torch.empty((B, Hq, D), dtype=torch.float32, device=q.device)
    so = torch.empty((B, Hq), dtype=torch.float32, device=q.device)
    BM = 64 if D <= 128 else 16
    if B:
        a_tp[(Hkv, triton.cdiv(B * G, BM))](
            q,
            k,
            v,
            vo,
            so,
            scale,
            B,
            P,
            Hq,
            *q.stride(),
            *k.stride(),
            *v.stride(),
            G,
            D,
            BM,
            16,
            max(16, triton.next_power_of_2(D)),
        )
    return vo, so
