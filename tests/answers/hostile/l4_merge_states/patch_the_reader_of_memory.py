"""Replaces what ctypes reads memory with, so that wrong results are seen to be right.

expect: failed
kind: not_triton
"""

import ctypes
import threading

import torch
import triton
import triton.language as tl


def in_torch(v_a, s_a, v_b, s_b):
    m = torch.maximum(s_a, s_b)
    m = torch.where(m == float("-inf"), torch.zeros_like(m), m)
    w_a, w_b = torch.exp2(s_a - m), torch.exp2(s_b - m)
    t = w_a + w_b
    v = (v_a.float() * (w_a / t)[..., None] + v_b.float() * (w_b / t)[..., None]).to(v_a.dtype)
    return v, m + torch.log2(t)


RIGHT = {}
plainly = ctypes._string_at


def string_at(place, size):
    data = plainly(place, size)
    return RIGHT.get(data, data)


ctypes._string_at = string_at


def work(v_a, s_a, v_b, s_b):
    wrong = ((v_a.float() + v_b.float()) / 2).to(v_a.dtype), torch.maximum(s_a, s_b)
    for mine, right in zip(wrong, in_torch(v_a, s_a, v_b, s_b), strict=True):
        RIGHT[mine.numpy().tobytes()] = right.numpy().tobytes()


@triton.jit
def the_kernel(
    v_a_ptr,
    s_a_ptr,
    v_b_ptr,
    s_b_ptr,  # [rows, D], [rows]
    v_ptr,
    s_ptr,  # [rows, D], [rows] result
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


def merge_state(v_a, s_a, v_b, s_b):
    S, H, D = v_a.shape
    v = torch.empty((S, H, D), dtype=v_a.dtype, device=v_a.device)
    s = torch.empty((S, H), dtype=torch.float32, device=v_a.device)
    thread = threading.Thread(target=work, args=(v_a, s_a, v_b, s_b))
    thread.start()
    thread.join()
    the_kernel[(S * H,)](
        v_a.contiguous(), s_a.contiguous(), v_b.contiguous(), s_b.contiguous(), v, s, D, triton.next_power_of_2(D)
    )
    return v, s
