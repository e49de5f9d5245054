"""The offsets of o_b are computed in 32 bits, those of o_a in 64.

exercise: merge_pair
level: memory
diagnosis: out_of_bounds
"""

import math

import torch
import triton
import triton.language as tl


@triton.jit
def pair_kernel(
    m_a_ptr, l_a_ptr, o_a_ptr,
    m_b_ptr, l_b_ptr, o_b_ptr,
    m_ptr, l_ptr, o_ptr,
    H,
    D,
    ma, la, oah, oad, mb, lb, obh, obd,
    BLOCK_H: tl.constexpr,
    BLOCK_D: tl.constexpr,
):  # fmt: skip
    h = (tl.program_id(0) * BLOCK_H + tl.arange(0, BLOCK_H)).to(tl.int64)
    live = h < H
    m_a = tl.load(m_a_ptr + h * ma, mask=live, other=float("-inf"))
    m_b = tl.load(m_b_ptr + h * mb, mask=live, other=float("-inf"))
    l_a = tl.load(l_a_ptr + h * la, mask=live, other=0.0)
    l_b = tl.load(l_b_ptr + h * lb, mask=live, other=0.0)
    m = tl.maximum(m_a, m_b)
    shift = tl.where(m == float("-inf"), 0.0, m)
    w_a = l_a * tl.exp(m_a - shift)
    w_b = l_b * tl.exp(m_b - shift)
    l = w_a + w_b
    safe = tl.where(l > 0, l, 1.0)
    tl.store(m_ptr + h, m, mask=live)
    tl.store(l_ptr + h, l, mask=live)
    for start in range(0, D, BLOCK_D):
        d = (start + tl.arange(0, BLOCK_D)).to(tl.int64)
        ok = live[:, None] & (d < D)[None, :]
        at_a = h[:, None] * oah + d[None, :] * oad
        at_b = h.to(tl.int32)[:, None] * obh + d[None, :] * obd
        o_a = tl.load(o_a_ptr + at_a, mask=ok & (w_a > 0)[:, None], other=0.0).to(tl.float32)
        o_b = tl.load(o_b_ptr + at_b, mask=ok & (w_b > 0)[:, None], other=0.0).to(tl.float32)
        o = o_a * (w_a / safe)[:, None] + o_b * (w_b / safe)[:, None]
        tl.store(o_ptr + h[:, None] * D + d[None, :], o, mask=ok)


def merge_pair(m_a, l_a, o_a, m_b, l_b, o_b):
    H, D = o_a.shape
    m = torch.empty(H, dtype=torch.float32, device=o_a.device)
    l = torch.empty(H, dtype=torch.float32, device=o_a.device)
    o = torch.empty((H, D), dtype=o_a.dtype, device=o_a.device)
    pair_kernel[(triton.cdiv(H, 8),)](
        m_a, l_a, o_a, m_b, l_b, o_b, m, l, o, H, D,
        *m_a.stride(), *l_a.stride(), *o_a.stride(), *m_b.stride(), *l_b.stride(), *o_b.stride(),
        8, min(64, triton.next_power_of_2(D)),
    )  # fmt: skip
    return m, l, o
