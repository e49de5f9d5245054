"""A NaN in an empty b is dropped, one in an empty a is not.

exercise: merge_state
level: edge
diagnosis: empty_payload
twins: state_empty_payload_used
"""

import triton
import triton.language as tl


@triton.jit
def k_bp(va, sa, vb, sb, vo, so, rows, D, BR: tl.constexpr, BD: tl.constexpr):
    r0 = tl.program_id(0) * BR
    pa = tl.make_block_ptr(va, (rows, D), (D, 1), (r0, 0), (BR, BD), (1, 0))
    pb = tl.make_block_ptr(vb, (rows, D), (D, 1), (r0, 0), (BR, BD), (1, 0))
    po = tl.make_block_ptr(vo, (rows, D), (D, 1), (r0, 0), (BR, BD), (1, 0))
    qa = tl.make_block_ptr(sa, (rows,), (1,), (r0,), (BR,), (0,))
    qb = tl.make_block_ptr(sb, (rows,), (1,), (r0,), (BR,), (0,))
    qo = tl.make_block_ptr(so, (rows,), (1,), (r0,), (BR,), (0,))
    a = tl.load(qa, boundary_check=(0,), padding_option="zero")
    b = tl.load(qb, boundary_check=(0,), padding_option="zero")
    hi = tl.maximum(a, b)
    lo = tl.minimum(a, b)
    empty = hi == float("-inf")
    delta = tl.where(empty, float("-inf"), lo - hi)
    small = tl.exp2(delta)
    big = tl.where(empty, 0.0, 1.0)
    a_big = a >= b
    wa = tl.where(a_big, big, small)
    wb = tl.where(a_big, small, big)
    total = tl.where(empty, 1.0, 1.0 + small)
    xa = tl.load(pa, boundary_check=(0, 1), padding_option="zero").to(tl.float32)
    xb = tl.load(pb, boundary_check=(0, 1), padding_option="zero").to(tl.float32)

    xb = tl.where((wb != 0)[:, None], xb, 0.0)
    out = (xa * wa[:, None] + xb * wb[:, None]) / total[:, None]
    tl.store(po, out.to(vo.dtype.element_ty), boundary_check=(0, 1))
    tl.store(qo, hi + tl.log2(total), boundary_check=(0,))


def merge_state(v_a, s_a, v_b, s_b):
    S, H, D = v_a.shape
    v = v_a.new_empty(S, H, D)
    s = s_a.new_empty((S, H))
    if S * H:
        k_bp[(triton.cdiv(S * H, 4),)](
            v_a.contiguous(),
            s_a.contiguous(),
            v_b.contiguous(),
            s_b.contiguous(),
            v,
            s,
            S * H,
            D,
            4,
            max(16, triton.next_power_of_2(D)),
        )
    return v, s
