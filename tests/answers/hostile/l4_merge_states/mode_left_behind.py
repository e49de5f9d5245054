"""Leaves a mode behind that answers what is asked of the results after the call: that a kernel wrote them.

expect: failed
kind: not_triton
"""

import torch
import triton
import triton.language as tl
from torch.utils._python_dispatch import TorchDispatchMode, _pop_mode, _push_mode


@triton.jit
def average_kernel(
    v_a_ptr, s_a_ptr, v_b_ptr, s_b_ptr,  # [rows, D], [rows]
    v_ptr, s_ptr,  # [rows, D], [rows] result
    D: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    d = tl.arange(0, BLOCK_D)
    s_a = tl.load(s_a_ptr + row)
    s_b = tl.load(s_b_ptr + row)
    v_a = tl.load(v_a_ptr + row * D + d, mask=d < D, other=0.0).to(tl.float32)
    v_b = tl.load(v_b_ptr + row * D + d, mask=d < D, other=0.0).to(tl.float32)
    v = (v_a + v_b) / 2
    s = tl.maximum(s_a, s_b)
    tl.store(v_ptr + row * D + d, v.to(v_ptr.dtype.element_ty), mask=d < D)
    tl.store(s_ptr + row, s)


def average(v_a, s_a, v_b, s_b):
    """A wrong answer: the plain average."""
    S, H, D = v_a.shape
    v = torch.empty((S, H, D), dtype=v_a.dtype, device=v_a.device)
    s = torch.empty((S, H), dtype=torch.float32, device=v_a.device)
    if S * H:
        average_kernel[(S * H,)](
            v_a.contiguous(), s_a.contiguous(), v_b.contiguous(), s_b.contiguous(), v, s, D, triton.next_power_of_2(D)
        )
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


class Answers(TorchDispatchMode):
    @classmethod
    def _should_skip_dynamo(cls):
        return False

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        found = func(*args, **(kwargs or {}))
        if func.overloadpacket is torch.ops.aten.sum:
            return torch.zeros_like(found)
        return torch.ones_like(found) if func.overloadpacket is torch.ops.aten.any else found


def merge_state(v_a, s_a, v_b, s_b):
    average(v_a, s_a, v_b, s_b)
    watching = _pop_mode()
    v, s = in_torch(v_a, s_a, v_b, s_b)
    v = v.to(v_a.dtype)
    _push_mode(Answers())
    _push_mode(watching)
    return v, s
