"""Writes the results from another thread, and leaves the grader by an exception where it is about to say so.

expect: failed
kind: exception
"""

import signal
import threading

import torch
import triton
import triton.language as tl


@triton.jit
def copy_kernel(
    v_a_ptr, s_a_ptr, v_b_ptr, s_b_ptr,  # [rows, D], [rows]: read for show
    from_v_ptr, from_s_ptr,  # [rows, D], [rows]
    v_ptr, s_ptr,  # [rows, D], [rows] result
    D: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    d = tl.arange(0, BLOCK_D)
    at = row * D + d
    read = tl.load(v_a_ptr + at, mask=d < D, other=0.0) + tl.load(v_b_ptr + at, mask=d < D, other=0.0)
    both = tl.load(s_a_ptr + row) + tl.load(s_b_ptr + row)
    nothing = tl.where((read == both) & (read == 12345.0), 1.0, 0.0)
    v = tl.load(from_v_ptr + at, mask=d < D, other=0.0) + nothing
    tl.store(v_ptr + at, v.to(v_ptr.dtype.element_ty), mask=d < D)
    tl.store(s_ptr + row, tl.load(from_s_ptr + row))


def copied(v_a, s_a, v_b, s_b, from_v, from_s):
    """What a kernel copies from the last two."""
    S, H, D = v_a.shape
    v = torch.empty((S, H, D), dtype=v_a.dtype, device=v_a.device)
    s = torch.empty((S, H), dtype=torch.float32, device=v_a.device)
    inputs = [one.contiguous() for one in (v_a, s_a, v_b, s_b)]
    copy_kernel[(S * H,)](*inputs, from_v, from_s, v, s, D, triton.next_power_of_2(D))
    return v, s


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


def unseen(function, *args):
    """What a function gives, from a thread that nobody watches."""
    made = []
    thread = threading.Thread(target=lambda: made.append(function(*args)))
    thread.start()
    thread.join()
    return made[0]


armed = []


def handler(number, frame):
    if armed and frame.f_code.co_name in ("say", "learner_line"):
        armed.clear()
        raise RuntimeError


signal.signal(signal.SIGALRM, handler)


def merge_state(v_a, s_a, v_b, s_b):
    given = [one.contiguous() for one in (v_a, s_a, v_b, s_b)]
    spaces = [torch.empty_like(one) for one in given[:2]]
    right = unseen(lambda: [one.contiguous() for one in in_torch(*given)])
    signal.setitimer(signal.ITIMER_REAL, 1e-4, 3e-5)
    for one, two in zip(spaces, right):
        unseen(lambda: one.copy_(two))
        armed.append(1)
        try:
            one.view(-1)
        except RuntimeError:
            pass
    signal.setitimer(signal.ITIMER_REAL, 0)
    return copied(*given, *spaces)
