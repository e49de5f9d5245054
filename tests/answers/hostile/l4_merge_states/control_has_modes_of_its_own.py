"""A control: a right answer under modes of its own, which count what torch is asked, with tensors of a class of its own.

expect: passed
"""

import torch
import triton
import triton.language as tl
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode


@triton.jit
def merged_kernel(
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
    m = tl.maximum(s_a, s_b)
    shift = tl.where(m == float("-inf"), 0.0, m)
    w_a = tl.exp2(s_a - shift)
    w_b = tl.exp2(s_b - shift)
    v_a = tl.where(w_a > 0, v_a, 0.0)
    v_b = tl.where(w_b > 0, v_b, 0.0)
    total = tl.where(m == float("-inf"), 1.0, w_a + w_b)
    v = v_a * (w_a / total) + v_b * (w_b / total)
    s = m + tl.log2(total)
    tl.store(v_ptr + row * D + d, v.to(v_ptr.dtype.element_ty), mask=d < D)
    tl.store(s_ptr + row, s)


def merged(v_a, s_a, v_b, s_b):
    """A right answer."""
    S, H, D = v_a.shape
    v = torch.empty((S, H, D), dtype=v_a.dtype, device=v_a.device)
    s = torch.empty((S, H), dtype=torch.float32, device=v_a.device)
    if S * H:
        merged_kernel[(S * H,)](
            v_a.contiguous(), s_a.contiguous(), v_b.contiguous(), s_b.contiguous(), v, s, D, triton.next_power_of_2(D)
        )
    return v, s


class Counts(TorchDispatchMode):
    @classmethod
    def _should_skip_dynamo(cls):
        return False

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        counted.append(func)
        return func(*args, **(kwargs or {}))


class Hears(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        counted.append(func)
        return func(*args, **(kwargs or {}))


class Named(torch.Tensor):
    """A tensor of a name of its own."""


counted = []


def merge_state(v_a, s_a, v_b, s_b):
    with torch.inference_mode(), torch.device("cpu"), Hears(), Counts():
        results = merged(torch.nn.Parameter(v_a, False), s_a.as_subclass(Named), v_b, s_b)
        assert counted
    return results
