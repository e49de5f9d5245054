"""A state with s below -1,000 is taken to be empty.

exercise: merge_state
level: edge
diagnosis: finite_stand_in
twins: state_finite_sentinel
"""

import torch
import triton
import triton.language as tl


@triton.jit
def k_3d(
    va,
    sa,
    vb,
    sb,
    vo,
    so,
    S,
    H,
    D,
    va0,
    va1,
    va2,
    sa0,
    sa1,
    vb0,
    vb1,
    vb2,
    sb0,
    sb1,
    BS: tl.constexpr,
    BH: tl.constexpr,
    BD: tl.constexpr,
):
    i = (tl.program_id(1) * BS + tl.arange(0, BS)).to(tl.int64)[:, None, None]
    h = (tl.program_id(0) * BH + tl.arange(0, BH)).to(tl.int64)[None, :, None]
    d = tl.arange(0, BD).to(tl.int64)[None, None, :]
    ok2 = (i < S) & (h < H)
    ok3 = ok2 & (d < D)
    a = tl.load(sa + i * sa0 + h * sa1, mask=ok2, other=-float("inf"))
    b = tl.load(sb + i * sb0 + h * sb1, mask=ok2, other=-float("inf"))
    m = tl.maximum(a, b)
    wa = tl.where(a < -1000.0, 0.0, tl.exp2(a - m))
    wb = tl.where(b < -1000.0, 0.0, tl.exp2(b - m))
    total = wa + wb
    xa = tl.load(va + i * va0 + h * va1 + d * va2, mask=ok3 & (wa > 0), other=0.0).to(tl.float32)
    xb = tl.load(vb + i * vb0 + h * vb1 + d * vb2, mask=ok3 & (wb > 0), other=0.0).to(tl.float32)
    some = total > 0
    safe = tl.where(some, total, 1.0)
    tl.store(vo + (i * H + h) * D + d, (xa * wa + xb * wb) / safe, mask=ok3)
    tl.store(so + i * H + h, tl.where(some, m + tl.log2(safe), -float("inf")), mask=ok2)


def merge_state(v_a, s_a, v_b, s_b):
    S, H, D = v_a.shape
    v = torch.zeros((S, H, D), dtype=v_a.dtype, device=v_a.device)
    s = torch.full((S, H), -float("inf"), dtype=torch.float32, device=v_a.device)
    if 0 in v.shape:
        return v, s
    k_3d[(triton.cdiv(H, 4), triton.cdiv(S, 2))](
        v_a,
        s_a,
        v_b,
        s_b,
        v,
        s,
        S,
        H,
        D,
        *v_a.stride(),
        *s_a.stride(),
        *v_b.stride(),
        *s_b.stride(),
        BS=2,
        BH=4,
        BD=triton.next_power_of_2(D),
    )
    return v, s
