"""A right answer whose kernel takes what it needs from everywhere: captured, as constants, by other names.

expect: passed
"""

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from triton.language import exp2 as power
from triton.language import float32 as wide
from triton.language.extra import libdevice


class Names(NamedTuple):
    least: float
    rows: int


LEAST = tl.constexpr(float("-inf"))
HALF = tl.constexpr(0.5)


@triton.constexpr_function
def doubled(x):
    return 2 * x


@triton.jit
def weight(s, shift):
    return power(s - shift)


def made(kind, kinds, finish):
    @triton.jit
    def the_kernel(
        v_a_ptr, s_a_ptr, v_b_ptr, s_b_ptr,  # [rows, D], [rows]
        v_ptr, s_ptr,  # [rows, D], [rows] result
        D: tl.constexpr,
        BLOCK_D: tl.constexpr,
        KIND: tl.constexpr,
        NAMES: tl.constexpr,
        WEIGHT: tl.constexpr,
    ):
        row = tl.program_id(0).to(tl.int64)
        d = tl.arange(0, BLOCK_D)
        s_a = tl.load(s_a_ptr + row)
        s_b = tl.load(s_b_ptr + row)
        v_a = tl.load(v_a_ptr + row * D + d, mask=d < D, other=0.0).to(kind)
        v_b = tl.load(v_b_ptr + row * D + d, mask=d < D, other=0.0).to(kinds[0])
        m = tl.maximum(s_a, s_b)
        shift = tl.where(m == LEAST, 0.0, m)
        w_a = WEIGHT(s_a, shift)
        w_b = weight(s_b, shift) * doubled(HALF)
        v_a = tl.where(w_a > 0, v_a, 0.0)
        v_b = tl.where(w_b > 0, v_b, 0.0).to(wide)
        total = tl.where(m == NAMES[0], 1.0, w_a + w_b).to(KIND)
        v = v_a * (w_a / total) + v_b * (w_b / total)
        tl.store(v_ptr + row * D + d, v.to(v_ptr.dtype.element_ty), mask=d < D)
        tl.store(s_ptr + row, finish(m, total))

    return the_kernel


@triton.jit
def finished(m, total):
    return m + libdevice.log2(total)


the_kernel = made(tl.float32, tl.constexpr((tl.float32, tl.float16)), finished)


def merge_state(v_a, s_a, v_b, s_b):
    S, H, D = v_a.shape
    v = torch.empty((S, H, D), dtype=v_a.dtype, device=v_a.device)
    s = torch.empty((S, H), dtype=torch.float32, device=v_a.device)
    inputs = [one.contiguous() for one in (v_a, s_a, v_b, s_b)]
    if S * H:
        names = Names(float("-inf"), S)
        the_kernel[(S * H,)](*inputs, v, s, D, triton.next_power_of_2(D), tl.float32, names, weight)
    return v, s
