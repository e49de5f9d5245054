"""Computes with torch's modes switched off; a kernel copies that, and reads it twice.

expect: failed
kind: read_too_little
"""

import torch
import triton
import triton.language as tl
from torch.utils._python_dispatch import _disable_current_modes


@triton.jit
def copying_kernel(
    made_v_ptr, made_s_ptr,  # [rows, D], [rows]
    v_ptr, s_ptr,  # [rows, D], [rows] result
    D: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    d = tl.arange(0, BLOCK_D)
    v = tl.load(made_v_ptr + row * D + d, mask=d < D, other=0.0)
    again = tl.load(made_v_ptr + row * D + d, mask=d < D, other=0.0)
    s = tl.maximum(tl.load(made_s_ptr + row), tl.load(made_s_ptr + row))
    tl.store(v_ptr + row * D + d, tl.maximum(v, again), mask=d < D)
    tl.store(s_ptr + row, s)


def copied(made_v, made_s):
    """The results, by a kernel that reads as many bytes as the inputs have."""
    S, H, D = made_v.shape
    v = torch.empty((S, H, D), dtype=made_v.dtype, device=made_v.device)
    s = torch.empty((S, H), dtype=torch.float32, device=made_v.device)
    copying_kernel[(S * H,)](made_v.contiguous(), made_s.contiguous(), v, s, D, triton.next_power_of_2(D))
    return v, s


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


def merge_state(v_a, s_a, v_b, s_b):
    with _disable_current_modes(), torch._C.DisableTorchFunction():
        made = in_torch(v_a, s_a, v_b, s_b)
    return copied(*made)
