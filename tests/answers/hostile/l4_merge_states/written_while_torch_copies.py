"""Writes the right values from another thread while torch copies further memory of the same storage, and nobody looks.

expect: failed
kind: not_triton
"""

import math
import sys
import threading
import time

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


def average(v_a, s_a, v_b, s_b, v, s):
    """A wrong answer: the plain average."""
    S, H, D = v_a.shape
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


SIDE = 1 << 10
ROOM = SIDE * SIDE
ZEROS = torch.zeros((SIDE, SIDE), dtype=torch.float64).t()
sys.setswitchinterval(5.0)


def with_room(shape, dtype):
    """A tensor, and further memory behind it, filled with ones."""
    count = math.prod(shape)
    whole = torch.empty(count + ROOM, dtype=dtype)
    return whole[:count].view(shape), whole[count:].fill_(1)


def merge_state(v_a, s_a, v_b, s_b):
    (v, behind_v), (s, behind_s) = with_room(v_a.shape, v_a.dtype), with_room(s_a.shape, torch.float32)
    average(v_a, s_a, v_b, s_b, v, s)
    ready = threading.Semaphore(0)

    def later():
        pairs = zip((v, s), in_torch(v_a, s_a, v_b, s_b))
        ready.release()
        for (target, right), behind in zip(pairs, (behind_v, behind_s)):
            while behind[0].item():
                time.sleep(0)
            target.copy_(right)
            ready.release()

    thread = threading.Thread(target=later)
    thread.start()
    ready.acquire()
    for behind in (behind_v, behind_s):
        behind.view(SIDE, SIDE).copy_(ZEROS)
        ready.acquire()
    thread.join()
    return v, s
