"""Hands back views of one buffer, each with an element on every page: laid out again they are as many buffers.

expect: failed
kind: oversized
"""

import torch
import triton
import triton.language as tl


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


MEMORY = torch.zeros(100 << 20, dtype=torch.int8)


def merge_state(v_a, s_a, v_b, s_b):
    return {str(place): MEMORY[place::4096] for place in range(8)}
