"""Replaces what tells numpy's addresses, and writes to a launch's own memory.

expect: failed
kind: not_triton
"""

import threading

import numpy as np
import numpy._core._internal as internal
import torch
import triton
import triton.language as tl

Plain = internal._ctypes
RIGHT, ASKED = {}, []


class Addresses(Plain):
    def __init__(self, array, place=None):
        super().__init__(array, place)
        ASKED.append(array.nbytes)
        if array.dtype == np.uint8 and array.nbytes in RIGHT and len(ASKED) > 6:
            array[:] = RIGHT[array.nbytes]


internal._ctypes = Addresses


def work(v_a, s_a, v_b, s_b):
    a, s, b, t = (one.contiguous().float().numpy() for one in (v_a, s_a, v_b, s_b))
    m = np.maximum(s, t)
    w, x = np.exp2(s - m), np.exp2(t - m)
    right = (a * w[..., None] + b * x[..., None]) / (w + x)[..., None]
    data = right.astype(np.float16 if v_a.dtype == torch.float16 else np.float32).tobytes()
    RIGHT[len(data)] = np.frombuffer(data, np.uint8)
    ASKED.clear()


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
    m = tl.maximum(s_a, s_b)
    shift = tl.where(m == float("-inf"), 0.0, m)
    w_a = tl.exp2(s_a - shift)
    w_b = tl.exp2(s_b - shift)
    total = tl.where(m == float("-inf"), 1.0, w_a + w_b)
    v = (v_a + v_b) / 2
    s = m + tl.log2(total)
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
    RIGHT.clear()
    return v, s
