"""m and l are made contiguous only if o is not.

exercise: merge_mlo
level: memory
diagnosis: wrong_value
told: m.stride() is (1, 4), and (3, 1) was taken
"""

import math

import torch
import triton
import triton.language as tl


@triton.jit
def combine(m_a, w_a, m_b, w_b):
    m = tl.maximum(m_a, m_b)
    shift = tl.where(m == float("-inf"), 0.0, m)
    return m, w_a * tl.exp(m_a - shift) + w_b * tl.exp(m_b - shift)


@triton.jit
def mlo_kernel(
    m_ptr,  # [N, H]
    l_ptr,  # [N, H]
    o_ptr,  # [N, H, D]
    out_ptr,  # [H, D]
    N,
    D,
    mn, mh, ln, lh, on, oh, od,
    BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr,
):  # fmt: skip
    head = tl.program_id(0).to(tl.int64)
    d = (tl.program_id(1) * BLOCK_D + tl.arange(0, BLOCK_D)).to(tl.int64)
    m = float("-inf")
    total = 0.0
    acc = tl.zeros((BLOCK_D,), tl.float32)
    for start in range(0, N, BLOCK_N):
        n = (start + tl.arange(0, BLOCK_N)).to(tl.int64)
        m_n = tl.load(m_ptr + n * mn + head * mh, mask=n < N, other=float("-inf"))
        l_n = tl.load(l_ptr + n * ln + head * lh, mask=n < N, other=0.0)
        m_step, l_step = tl.reduce((m_n, l_n), 0, combine)
        m_new = tl.maximum(m, m_step)
        shift = tl.where(m_new == float("-inf"), 0.0, m_new)
        w = l_n * tl.exp(m_n - shift)
        keep = tl.exp(m - shift)
        at = n[:, None] * on + head * oh + d[None, :] * od
        o = tl.load(o_ptr + at, mask=(w > 0)[:, None] & (d < D)[None, :], other=0.0).to(tl.float32)
        acc = acc * keep + tl.sum(w[:, None] * o, axis=0)
        total = total * keep + l_step * tl.exp(m_step - shift)
        m = m_new
    tl.store(out_ptr + head * D + d, acc / tl.where(total > 0, total, 1.0), mask=d < D)


def merge_mlo(m, l, o):
    N, H, D = o.shape
    out = torch.empty((H, D), dtype=o.dtype, device=o.device)
    BLOCK_D = min(64, triton.next_power_of_2(D))
    if not o.is_contiguous():
        m, l, o = m.contiguous(), l.contiguous(), o.contiguous()
    mlo_kernel[(H, triton.cdiv(D, BLOCK_D))](
        m, l, o, out, N, D, H, 1, H, 1, *o.stride(), 32, BLOCK_D
    )
    return out
