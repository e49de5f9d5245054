"""v takes the dtype of v_b in place of that of v_a.

exercise: merge_state
level: edge
diagnosis: wrong_form
"""

import torch
import triton
import triton.language as tl


@triton.jit
def merge_kernel(v_a, s_a, v_b, s_b, v, s, D: tl.constexpr, BLOCK_D: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    d = tl.arange(0, BLOCK_D)
    a = tl.load(s_a + row)
    b = tl.load(s_b + row)
    top = tl.maximum(a, b)
    shift = tl.where(top == float("-inf"), 0.0, top)
    a = tl.exp2(a - shift)
    b = tl.exp2(b - shift)
    of_a = tl.load(v_a + row * D + d, mask=(d < D) & (a > 0), other=0.0).to(tl.float32)
    of_b = tl.load(v_b + row * D + d, mask=(d < D) & (b > 0), other=0.0).to(tl.float32)
    total = a + b
    merged = (of_a * a + of_b * b) / tl.where(total > 0, total, 1.0)
    tl.store(v + row * D + d, merged.to(v.dtype.element_ty), mask=d < D)
    tl.store(s + row, shift + tl.log2(total))


def merge_state(v_a, s_a, v_b, s_b):
    S, H, D = v_a.shape
    args = [x.contiguous() for x in (v_a, s_a, v_b, s_b)]
    v, s = torch.empty_like(args[2]), torch.empty_like(args[3])
    if S * H:
        merge_kernel[(S * H,)](*args, v, s, D, triton.next_power_of_2(D))
    return v, s
