"""mask=None is taken to mean that no position changes.

exercise: merge_state_in_place
level: value
diagnosis: nothing_without_mask
"""

import triton
import triton.language as tl


@triton.jit
def k_ip(
    v,
    s,
    vo,
    so,
    mask,
    H,
    D,
    v0,
    v1,
    v2,
    s0,
    s1,
    w0,
    w1,
    w2,
    t0,
    t1,
    m0,
    HAS: tl.constexpr,
    BH: tl.constexpr,
    BD: tl.constexpr,
):
    i = tl.program_id(0).to(tl.int64)
    on = tl.load(mask + i * m0) if HAS else 1
    if on == 0:
        return
    d = tl.arange(0, BD).to(tl.int64)
    for h0 in range(0, H, BH):
        for j in tl.static_range(BH):
            h = (h0 + j).to(tl.int64)
            live = h < H
            a = tl.load(s + i * s0 + h * s1, mask=live, other=0.0)
            b = tl.load(so + i * t0 + h * t1, mask=live, other=0.0)
            top = tl.maximum(a, b)
            top = tl.where(top == float("-inf"), 0.0, top)
            wa = tl.exp2(a - top)
            wb = tl.exp2(b - top)
            t = wa + wb
            ok = (d < D) & live
            p = v + i * v0 + h * v1 + d * v2
            x = tl.load(p, mask=ok, other=0.0).to(tl.float32)
            y = tl.load(vo + i * w0 + h * w1 + d * w2, mask=ok, other=0.0).to(tl.float32)
            x = tl.where(wa > 0, x * wa, 0.0) + tl.where(wb > 0, y * wb, 0.0)
            tl.store(p, (x / tl.where(t > 0, t, 1.0)).to(v.dtype.element_ty), mask=ok)
            tl.store(s + i * s0 + h * s1, top + tl.log2(t), mask=live)


def merge_state_in_place(v, s, v_other, s_other, mask=None):
    S, H, D = v.shape
    if mask is None or S == 0 or H == 0:
        return
    k_ip[(S,)](
        v,
        s,
        v_other,
        s_other,
        mask,
        H,
        D,
        *v.stride(),
        *s.stride(),
        *v_other.stride(),
        *s_other.stride(),
        mask.stride(0) if mask is not None else 0,
        mask is not None,
        2,
        triton.next_power_of_2(D),
        num_warps=1,
    )
