"""lse_b is read as if it were contiguous; all else by its strides.

exercise: merge_natural
level: memory
diagnosis: natural_strides_ignored
twins: natural_strides_ignored
"""

import torch
import triton
import triton.language as tl


@triton.jit
def soft_kernel(
    oa, la, ob, lb, o, lse_ptr, H, a0, a1, a2, b0, b1, b2, la0, la1, lb0, lb1, D: tl.constexpr, W: tl.constexpr
):
    s = tl.program_id(0).to(tl.int64)
    h = tl.program_id(1).to(tl.int64)
    d = tl.arange(0, W).to(tl.int64)
    x = tl.load(la + s * la0 + h * la1)
    y = tl.load(lb + s * H + h)
    hi = tl.maximum(x, y)
    lo = tl.minimum(x, y)
    gap = tl.where(lo == float("-inf"), float("-inf"), lo - hi)
    tl.store(lse_ptr + s * H + h, hi + tl.log(1.0 + tl.exp(gap)))
    minor = tl.exp(gap) / (1.0 + tl.exp(gap))
    w_a = tl.where(x >= y, 1.0 - minor, minor)
    w_b = 1.0 - w_a
    w_b = tl.where(x >= y, minor, 1.0 - minor)
    w_a = tl.where(x == float("-inf"), 0.0, w_a)
    w_b = tl.where(y == float("-inf"), 0.0, w_b)
    p = tl.load(oa + s * a0 + h * a1 + d * a2, mask=(d < D) & (w_a > 0.0), other=0.0).to(tl.float32)
    q = tl.load(ob + s * b0 + h * b1 + d * b2, mask=(d < D) & (w_b > 0.0), other=0.0).to(tl.float32)
    tl.store(o + (s * H + h) * D + d, (p * w_a + q * w_b).to(o.dtype.element_ty), mask=d < D)


def merge_natural(o_a, lse_a, o_b, lse_b):
    S, H, D = o_a.shape
    o = torch.empty((S, H, D), dtype=o_a.dtype, device=o_a.device)
    out = torch.empty((S, H), dtype=torch.float32, device=o_a.device)
    if S:
        soft_kernel[(S, H)](
            o_a,
            lse_a,
            o_b,
            lse_b,
            o,
            out,
            H,
            *o_a.stride(),
            *o_b.stride(),
            *lse_a.stride(),
            *lse_b.stride(),
            D,
            triton.next_power_of_2(D),
        )
    return o, out
