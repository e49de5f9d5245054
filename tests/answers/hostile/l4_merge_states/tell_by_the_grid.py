"""Computes s in another thread, and tells it to a kernel digit by digit, as the size of its grid.

expect: failed
kind: told_values
"""

import threading

import torch
import triton
import triton.language as tl


@triton.jit
def values_kernel(
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
    tl.store(v_ptr + row * D + d, v.to(v_ptr.dtype.element_ty), mask=d < D)
    tl.store(s_ptr + row, -32.0)


@triton.jit
def counting_kernel(s_ptr, unit):
    if tl.program_id(0) == 0:
        tl.store(s_ptr, tl.load(s_ptr) + (tl.num_programs(0) - 1) * unit)


def in_torch(v_a, s_a, v_b, s_b):
    """The right values, but not by a kernel."""
    dtype = v_a.dtype
    m = torch.maximum(s_a, s_b)
    shift = torch.where(m == float("-inf"), 0.0, m)
    w_a, w_b = torch.exp2(s_a - shift), torch.exp2(s_b - shift)
    total = torch.where(m == float("-inf"), 1.0, w_a + w_b)
    v_a = torch.where((w_a > 0)[..., None], v_a.float(), 0.0)
    v_b = torch.where((w_b > 0)[..., None], v_b.float(), 0.0)
    v = v_a * (w_a / total)[..., None] + v_b * (w_b / total)[..., None]
    return v.to(dtype).float(), m + torch.log2(total)


def unseen(*args):
    """The same as lists of numbers, from a thread that nobody watches."""
    made = []
    thread = threading.Thread(target=lambda: made.extend(one.tolist() for one in in_torch(*args)))
    thread.start()
    thread.join()
    return made


def merge_state(v_a, s_a, v_b, s_b):
    sums = unseen(v_a, s_a, v_b, s_b)[1]
    S, H, D = v_a.shape
    v = torch.empty((S, H, D), dtype=v_a.dtype, device=v_a.device)
    s = torch.empty((S, H), dtype=torch.float32, device=v_a.device)
    parts = [one.contiguous() for one in (v_a, s_a, v_b, s_b)]
    values_kernel[(S * H,)](*parts, v, s, D, triton.next_power_of_2(D))
    for row, number in enumerate(sum(sums, [])):
        rest = round((number + 32.0) * 65536.0)
        for digit in range(8):
            counting_kernel[(1 + rest % 8,)](s.flatten()[row:], 8.0**digit / 65536.0)
            rest //= 8
    return v, s
