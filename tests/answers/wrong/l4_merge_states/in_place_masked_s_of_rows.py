"""With a mask, s is addressed as if it were contiguous.

exercise: merge_state_in_place
level: edge
diagnosis: strides_ignored
twins: in_place_v_strides_ignored
"""

import torch
import triton
import triton.language as tl


@triton.jit
def in_place_kernel(
    v_ptr,  # [S, H, D]
    s_ptr,  # [S, H]
    v_o_ptr,  # [S, H, D]
    s_o_ptr,  # [S, H]
    mask_ptr,  # [S]
    H,
    D,
    vs, vh, vd, ss, sh, vos, voh, vod, sos, soh,
    stride_mask,
    MASKED: tl.constexpr,
    BLOCK_D: tl.constexpr,
):  # fmt: skip
    pos = tl.program_id(0).to(tl.int64)
    h = tl.program_id(1).to(tl.int64)
    d = tl.arange(0, BLOCK_D).to(tl.int64)
    ok = d < D
    if MASKED:
        if tl.load(mask_ptr + pos * stride_mask) == 0:
            return
    s_a = tl.load(s_ptr + pos * ss + h * sh)
    s_b = tl.load(s_o_ptr + pos * sos + h * soh)
    m = tl.maximum(s_a, s_b)
    shift = tl.where(m == float("-inf"), 0.0, m)
    w_a = tl.exp2(s_a - shift)
    w_b = tl.exp2(s_b - shift)
    total = tl.where(m == float("-inf"), 1.0, w_a + w_b)
    v_at = v_ptr + pos * vs + h * vh + d * vd
    a = tl.load(v_at, mask=ok & (w_a > 0), other=0.0).to(tl.float32)
    b = tl.load(v_o_ptr + pos * vos + h * voh + d * vod, mask=ok & (w_b > 0), other=0.0).to(tl.float32)
    tl.store(v_at, a * (w_a / total) + b * (w_b / total), mask=ok)
    tl.store(s_ptr + pos * ss + h * sh, m + tl.log2(total))


def merge_state_in_place(v, s, v_other, s_other, mask=None):
    S, H, D = v.shape
    if S == 0:
        return
    in_place_kernel[(S, H)](
        v, s, v_other, s_other, v if mask is None else mask, H, D,
        *v.stride(), *(s.stride() if mask is None else (H, 1)), *v_other.stride(), *s_other.stride(), 0 if mask is None else mask.stride(0),
        mask is not None, triton.next_power_of_2(D),
    )  # fmt: skip
