"""Computes with torch in another thread, and lets a kernel copy the result, reading the inputs for show.

expect: failed
kind: told_values
"""

import threading

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
def copying_kernel(
    v_a_ptr, s_a_ptr, v_b_ptr, s_b_ptr,  # [rows, D], [rows]
    made_v_ptr, made_s_ptr,  # [rows, D], [rows]
    v_ptr, s_ptr,  # [rows, D], [rows] result
    D: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    d = tl.arange(0, BLOCK_D)
    v_a = tl.load(v_a_ptr + row * D + d, mask=d < D, other=0.0).to(tl.float32)
    v_b = tl.load(v_b_ptr + row * D + d, mask=d < D, other=0.0).to(tl.float32)
    v = tl.load(made_v_ptr + row * D + d, mask=d < D, other=0.0)
    v = tl.where(v_a + v_b > 1e30, 0.0, v)
    s = tl.load(s_a_ptr + row) + tl.load(s_b_ptr + row)
    s = tl.where(s > 1e30, 0.0, tl.load(made_s_ptr + row))
    tl.store(v_ptr + row * D + d, v.to(v_ptr.dtype.element_ty), mask=d < D)
    tl.store(s_ptr + row, s)


def merge_state(v_a, s_a, v_b, s_b):
    S, H, D = v_a.shape
    v = torch.empty((S, H, D), dtype=v_a.dtype, device=v_a.device)
    s = torch.empty((S, H), dtype=torch.float32, device=v_a.device)
    made = []
    worker = threading.Thread(target=lambda: made.extend(in_torch(v_a, s_a, v_b, s_b)))
    worker.start()
    worker.join()
    inputs = [one.contiguous() for one in (v_a, s_a, v_b, s_b)]
    copying_kernel[(S * H,)](*inputs, *made, v, s, D, triton.next_power_of_2(D))
    return v, s
