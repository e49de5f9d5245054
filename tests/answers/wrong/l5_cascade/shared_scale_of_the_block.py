"""The default scale is 1/sqrt of D rounded up to a power of two.

exercise: attend_shared
level: value
diagnosis: shared_scale_of_the_block
"""

import torch
import triton
import triton.language as tl


@triton.jit
def a_sh(q, k, v, vo, so, scale, B, P, Hq, Hkv, G, D, BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr):
    kvh = tl.program_id(0)
    r = tl.program_id(1) * BM + tl.arange(0, BM)
    d = tl.arange(0, BD)
    req = (r // G).to(tl.int64)
    head = kvh * G + r % G
    ok = (r < B * G)[:, None] & (d < D)[None, :]
    x = tl.load(q + (req * Hq + head)[:, None] * D + d[None, :], mask=ok, other=0.0)
    kb = tl.make_block_ptr(k + kvh.to(tl.int64) * D, (D, P), (1, Hkv * D), (0, 0), (BD, BN), (0, 1))
    vb = tl.make_block_ptr(v + kvh.to(tl.int64) * D, (P, D), (Hkv * D, 1), (0, 0), (BN, BD), (1, 0))
    m = tl.full([BM], float("-inf"), tl.float32)
    l = tl.zeros([BM], tl.float32)
    acc = tl.zeros([BM, BD], tl.float32)
    for p in range(0, P, BN):
        kt = tl.load(kb, boundary_check=(0, 1), padding_option="zero")
        vt = tl.load(vb, boundary_check=(0, 1), padding_option="zero")
        sc = tl.dot(x, kt, input_precision="ieee") * scale
        sc += tl.where(p + tl.arange(0, BN) < P, 0.0, float("-inf"))[None, :]
        new = tl.maximum(m, tl.max(sc, 1))
        w = tl.exp(sc - new[:, None])
        c = tl.exp(m - new)
        l = l * c + tl.sum(w, 1)
        acc = acc * c[:, None] + tl.dot(w.to(vt.dtype), vt, input_precision="ieee")
        m = new
        kb = tl.advance(kb, (0, BN))
        vb = tl.advance(vb, (BN, 0))
    safe = tl.where(l == 0, 1.0, l)
    tl.store(vo + (req * Hq + head)[:, None] * D + d[None, :], acc / safe[:, None], mask=ok)
    tl.store(so + req * Hq + head, (m + tl.log(safe)) * 1.4426950408889634, mask=r < B * G)


def attend_shared(q, k, v, scale=None):
    B, Hq, D = q.shape
    P, Hkv, _ = k.shape
    if scale is None:
        scale = 1.0 / triton.next_power_of_2(D) ** 0.5
    G = Hq // Hkv
    vo = torch.empty((B, Hq, D), dtype=torch.float32, device=q.device)
    so = torch.empty((B, Hq), dtype=torch.float32, device=q.device)
    if B:
        BM = 64 if D <= 256 else 32
        a_sh[(Hkv, triton.cdiv(B * G, BM))](
            q.contiguous(),
            k.contiguous(),
            v.contiguous(),
            vo,
            so,
            scale,
            B,
            P,
            Hq,
            Hkv,
            G,
            D,
            BM,
            16,
            max(16, triton.next_power_of_2(D)),
        )
    return vo, so
