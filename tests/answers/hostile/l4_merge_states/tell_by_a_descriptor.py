"""Computes s in another thread, and tells it as a descriptor's shape, which is another when it is looked at.

expect: failed
"""

import threading

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


def in_torch(v_a, s_a, v_b, s_b):
    m = torch.maximum(s_a, s_b)
    m = torch.where(m == float("-inf"), torch.zeros_like(m), m)
    w_a, w_b = torch.exp2(s_a - m), torch.exp2(s_b - m)
    t = w_a + w_b
    v = (v_a.float() * (w_a / t)[..., None] + v_b.float() * (w_b / t)[..., None]).to(v_a.dtype)
    return v, m + torch.log2(t)


class TwoFaced(TensorDescriptor):
    def __getattribute__(self, name):
        if name == "shape" and "right" in vars(self):
            vars(self)["asked"] += 1
            return [vars(self)["right"] if vars(self)["asked"] > 1 else 16, 4]
        return super().__getattribute__(name)


@triton.jit
def told_kernel(
    v_a_ptr,
    s_a_ptr,
    v_b_ptr,
    s_b_ptr,  # [D], [1]
    v_ptr,
    s_ptr,  # [D], [1] result
    told,  # [16, 4]
    D: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    row = tl.program_id(0)
    d = tl.arange(0, BLOCK_D)
    s_a = tl.load(s_a_ptr + row)
    s_b = tl.load(s_b_ptr + row)
    v_a = tl.load(v_a_ptr + row * D + d, mask=d < D, other=0.0).to(tl.float32)
    v_b = tl.load(v_b_ptr + row * D + d, mask=d < D, other=0.0).to(tl.float32)
    m = tl.maximum(s_a, s_b)
    shift = tl.where(m == float("-inf"), 0.0, m)
    w_a = tl.exp2(s_a - shift)
    w_b = tl.exp2(s_b - shift)
    total = tl.where(m == float("-inf"), 1.0, w_a + w_b)
    v = v_a * (w_a / total) + v_b * (w_b / total)
    s = m + tl.log2(total)
    tl.store(v_ptr + row * D + d, v.to(v_ptr.dtype.element_ty), mask=d < D)
    tl.store(s_ptr + row, told.shape[0] / 1048576.0 - 64.0)


def merge_state(v_a, s_a, v_b, s_b):
    S, H, D = v_a.shape
    v = torch.empty((S, H, D), dtype=v_a.dtype, device=v_a.device)
    s = torch.empty((S, H), dtype=torch.float32, device=v_a.device)
    found = []
    thread = threading.Thread(target=lambda: found.extend(in_torch(v_a, s_a, v_b, s_b)[1].flatten().tolist()))
    thread.start()
    thread.join()
    given = [one.contiguous().flatten(0, 1) for one in (v_a, s_a, v_b, s_b, v, s)]
    for row, right in enumerate(found):
        told = TwoFaced(torch.empty(16, 4), [16, 4], [4, 1], [16, 4])
        vars(told).update(right=round((right + 64.0) * 1048576.0), asked=0)
        told_kernel[(1,)](*(one[row:] for one in given), told, D, triton.next_power_of_2(D))
    return v, s
