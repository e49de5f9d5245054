"""A kernel that computes with torch inside: the interpreter would run it, no compiler takes it.

expect: failed
"""

import torch
import triton
import triton.language as tl


def in_torch(v_a, s_a, v_b, s_b):
    """The right values, but not by a kernel."""
    m = torch.maximum(s_a, s_b)
    shift = torch.where(m == float("-inf"), 0.0, m)
    w_a, w_b = torch.exp2(s_a - shift), torch.exp2(s_b - shift)
    total = torch.where(m == float("-inf"), 1.0, w_a + w_b)
    v_a = torch.where((w_a > 0)[..., None], v_a.float(), 0.0)
    v_b = torch.where((w_b > 0)[..., None], v_b.float(), 0.0)
    v = v_a * (w_a / total)[..., None] + v_b * (w_b / total)[..., None]
    return v, m + torch.log2(total)


@triton.jit
def python_kernel(v_a, s_a, v_b, s_b, v, s):
    import torch

    print(tl.load(v_a))


def merge_state(v_a, s_a, v_b, s_b):
    v, s = torch.empty_like(v_a), torch.empty(s_a.shape)
    if v.numel():
        python_kernel[(1,)](v_a, s_a, v_b, s_b, v, s)
    return v, s
