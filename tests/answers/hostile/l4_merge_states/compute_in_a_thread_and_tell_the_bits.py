"""Computes in another thread; a kernel copies the bits of the results, which are told to it as integers.

expect: failed
kind: read_too_little
"""

import threading

import torch
import triton
import triton.language as tl


@triton.jit
def copying_kernel(
    bits_v_ptr,
    bits_s_ptr,  # [rows, D], [rows] integers
    v_ptr,
    s_ptr,  # [rows, D], [rows] result
    D: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    d = tl.arange(0, BLOCK_D)
    v = tl.load(bits_v_ptr + row * D + d, mask=d < D, other=0)
    again = tl.load(bits_v_ptr + row * D + d, mask=d < D, other=0)
    s = tl.maximum(tl.load(bits_s_ptr + row), tl.load(bits_s_ptr + row))
    tl.store(v_ptr + row * D + d, tl.maximum(v, again).to(v_ptr.dtype.element_ty, bitcast=True), mask=d < D)
    tl.store(s_ptr + row, s.to(tl.float32, bitcast=True))


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
    return v.to(dtype), m + torch.log2(total)


def as_bits(tensor):
    """Its memory as a list of integers."""
    kind = torch.int32 if tensor.dtype == torch.float32 else torch.int16
    return kind, tensor.contiguous().view(kind).tolist()


def merge_state(v_a, s_a, v_b, s_b):
    made = []
    thread = threading.Thread(target=lambda: made.extend(map(as_bits, in_torch(v_a, s_a, v_b, s_b))))
    thread.start()
    thread.join()
    S, H, D = v_a.shape
    v = torch.empty((S, H, D), dtype=v_a.dtype, device=v_a.device)
    s = torch.empty((S, H), dtype=torch.float32, device=v_a.device)
    bits_v, bits_s = (torch.tensor(bits, dtype=kind) for kind, bits in made)
    if S * H:
        copying_kernel[(S * H,)](bits_v, bits_s, v, s, D, triton.next_power_of_2(D))
    return v, s
