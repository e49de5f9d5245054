"""Programs of one row share its columns: one overwrites s while the others still read it.

exercise: merge_state_in_place
level: memory
diagnosis: read_race
"""

import triton
import triton.language as tl


@triton.jit
def k_db(v, s, vo, so, mask, H, D, v0, v1, v2, s0, s1, m0, HAS: tl.constexpr, BD: tl.constexpr):
    i = (tl.program_id(0) // H).to(tl.int64)
    h = (tl.program_id(0) % H).to(tl.int64)
    d = (tl.program_id(1) * BD + tl.arange(0, BD)).to(tl.int64)
    on = True
    if HAS:
        on = tl.load(mask + i * m0) != 0
    if on:
        a = tl.load(s + i * s0 + h * s1)
        b = tl.load(so + i * H + h)
        top = tl.maximum(a, b)
        top = tl.where(top == float("-inf"), 0.0, top)
        wa = tl.exp2(a - top)
        wb = tl.exp2(b - top)
        t = wa + wb
        x = tl.load(v + i * v0 + h * v1 + d * v2, mask=d < D, other=0.0).to(tl.float32)
        y = tl.load(vo + (i * H + h) * D + d, mask=d < D, other=0.0).to(tl.float32)
        x = tl.where(wa > 0, x * wa, 0.0) + tl.where(wb > 0, y * wb, 0.0)
        tl.store(v + i * v0 + h * v1 + d * v2, (x / tl.where(t > 0, t, 1.0)).to(v.dtype.element_ty), mask=d < D)
        if tl.program_id(1) == tl.num_programs(1) - 1:
            tl.store(s + i * s0 + h * s1, top + tl.log2(t))


def merge_state_in_place(v, s, v_other, s_other, mask=None):
    S, H, D = v.shape
    if S:
        BD = min(64, triton.next_power_of_2(D))
        k_db[(S * H, triton.cdiv(D, BD))](
            v,
            s,
            v_other.contiguous(),
            s_other.contiguous(),
            mask,
            H,
            D,
            *v.stride(),
            *s.stride(),
            0 if mask is None else mask.stride(0),
            mask is not None,
            BD,
        )
