"""s_other is read with the strides of s.

exercise: merge_state_in_place
level: edge
diagnosis: wrong_value
told: s_other was read with a stride that is not its own
"""

import triton
import triton.language as tl


@triton.jit
def merge_in_place_kernel(
    v_ptr,  # [S, H, D]
    s_ptr,  # [S, H]
    v_other_ptr,  # [S, H, D]
    s_other_ptr,  # [S, H]
    mask_ptr,  # [S]
    v_s,
    v_h,
    v_d,
    s_s,
    s_h,
    vo_s,
    vo_h,
    vo_d,
    so_s,
    so_h,
    mask_s,
    H,
    D,
    HAS_MASK: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    position = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1).to(tl.int64)
    cols = tl.arange(0, BLOCK_D)
    live = True
    if HAS_MASK:
        live = tl.load(mask_ptr + position * mask_s) != 0
    if live:
        inside = cols < D
        s_a = tl.load(s_ptr + position * s_s + head * s_h)
        s_b = tl.load(s_other_ptr + position * s_s + head * s_h)
        s_max = tl.maximum(s_a, s_b)
        shift = tl.where(s_max == float("-inf"), 0.0, s_max)
        w_a = tl.exp2(s_a - shift)
        w_b = tl.exp2(s_b - shift)
        total = w_a + w_b
        denom = tl.where(total > 0, total, 1.0)
        at = position * v_s + head * v_h + cols * v_d
        at_other = position * vo_s + head * vo_h + cols * vo_d
        v_a = tl.load(v_ptr + at, mask=inside & (w_a > 0), other=0.0).to(tl.float32)
        v_b = tl.load(v_other_ptr + at_other, mask=inside & (w_b > 0), other=0.0).to(tl.float32)
        v = (w_a * v_a + w_b * v_b) / denom
        tl.store(v_ptr + at, v, mask=inside)
        tl.store(s_ptr + position * s_s + head * s_h, tl.where(total > 0, shift + tl.log2(denom), float("-inf")))


def merge_state_in_place(v, s, v_other, s_other, mask=None):
    S, H, D = v.shape
    if S == 0:
        return
    merge_in_place_kernel[(S, H)](
        v,
        s,
        v_other,
        s_other,
        v if mask is None else mask,
        *v.stride(),
        *s.stride(),
        *v_other.stride(),
        *s_other.stride(),
        0 if mask is None else mask.stride(0),
        H,
        D,
        mask is not None,
        triton.next_power_of_2(D),
    )
