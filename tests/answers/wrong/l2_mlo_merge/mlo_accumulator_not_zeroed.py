"""Atomics add into torch.empty.

exercise: merge_mlo
level: memory
diagnosis: unwritten
"""

import torch
import triton
import triton.language as tl


@triton.jit
def top_kernel(m_ptr, top_ptr, N, m0, m1):
    h = tl.program_id(0).to(tl.int64)
    top = float("-inf")
    for n in range(N):
        top = tl.maximum(top, tl.load(m_ptr + n * m0 + h * m1))
    tl.store(top_ptr + h, top)


@triton.jit
def pour_kernel(
    m_ptr, l_ptr, o_ptr, top_ptr, sum_ptr, acc_ptr, m0, m1, l0, l1, o0, o1, o2, D: tl.constexpr, W: tl.constexpr
):
    n = tl.program_id(0).to(tl.int64)
    h = tl.program_id(1).to(tl.int64)
    m = tl.load(m_ptr + n * m0 + h * m1)
    if m > float("-inf"):
        w = tl.exp(m - tl.load(top_ptr + h)) * tl.load(l_ptr + n * l0 + h * l1)
        tl.atomic_add(sum_ptr + h, w)
        d = tl.arange(0, W)
        o = tl.load(o_ptr + n * o0 + h * o1 + d * o2, mask=d < D, other=0.0).to(tl.float32)
        tl.atomic_add(acc_ptr + h * D + d, w * o, mask=d < D)


@triton.jit
def divide_kernel(sum_ptr, acc_ptr, out_ptr, D: tl.constexpr, W: tl.constexpr):
    h = tl.program_id(0).to(tl.int64)
    d = tl.arange(0, W)
    s = tl.load(sum_ptr + h)
    o = tl.load(acc_ptr + h * D + d, mask=d < D, other=0.0) / tl.where(s > 0, s, 1.0)
    tl.store(out_ptr + h * D + d, o, mask=d < D)


def merge_mlo(m, l, o):
    N, H, D = o.shape
    top = torch.empty(H, dtype=torch.float32, device=o.device)
    total = torch.zeros(H, dtype=torch.float32, device=o.device)
    acc = torch.empty((H, D), dtype=torch.float32, device=o.device)
    out = torch.empty((H, D), dtype=o.dtype, device=o.device)
    W = triton.next_power_of_2(D)
    top_kernel[(H,)](m, top, N, *m.stride())
    if N:
        pour_kernel[(N, H)](m, l, o, top, total, acc, *m.stride(), *l.stride(), *o.stride(), D, W)
    divide_kernel[(H,)](total, acc, out, D, W)
    return out
