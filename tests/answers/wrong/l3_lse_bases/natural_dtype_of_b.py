"""o takes the dtype of o_b in place of that of o_a.

exercise: merge_natural
level: edge
diagnosis: wrong_form
"""

import torch
import triton
import triton.language as tl


@triton.jit
def merge_kernel(o_a, lse_a, o_b, lse_b, o, lse, D: tl.constexpr, BLOCK_D: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    d = tl.arange(0, BLOCK_D)
    a = tl.load(lse_a + row)
    b = tl.load(lse_b + row)
    top = tl.maximum(a, b)
    shift = tl.where(top == float("-inf"), 0.0, top)
    a = tl.exp(a - shift)
    b = tl.exp(b - shift)
    of_a = tl.load(o_a + row * D + d, mask=(d < D) & (a > 0), other=0.0).to(tl.float32)
    of_b = tl.load(o_b + row * D + d, mask=(d < D) & (b > 0), other=0.0).to(tl.float32)
    total = a + b
    merged = (of_a * a + of_b * b) / tl.where(total > 0, total, 1.0)
    tl.store(o + row * D + d, merged.to(o.dtype.element_ty), mask=d < D)
    tl.store(lse + row, shift + tl.log(total))


def merge_natural(o_a, lse_a, o_b, lse_b):
    S, H, D = o_a.shape
    args = [x.contiguous() for x in (o_a, lse_a, o_b, lse_b)]
    o, lse = torch.empty_like(args[2]), torch.empty_like(args[3])
    if S * H:
        merge_kernel[(S * H,)](*args, o, lse, D, triton.next_power_of_2(D))
    return o, lse
