"""The 0 that is subtracted while the max is -inf stays the max, so that states far below 0 are lost.

exercise: merge_states
level: edge
diagnosis: zero_kept
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(v_ptr, s_ptr, v_out, s_out, N, H, D: tl.constexpr, BLOCK: tl.constexpr, BLOCK_D: tl.constexpr):
    position = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1).to(tl.int64)
    d = tl.arange(0, BLOCK_D)
    first = position * N
    end = first + N
    m = float("-inf")
    total = 0.0
    acc = tl.zeros((BLOCK_D,), tl.float32)
    for start in range(0, end - first, BLOCK):
        row = first + start + tl.arange(0, BLOCK)
        at = row * H + head
        s = tl.load(s_ptr + at, mask=row < end, other=float("-inf"))
        m_new = tl.maximum(m, tl.max(s, axis=0))
        m_new = tl.where(m_new == float("-inf"), 0.0, m_new)
        w = tl.exp2(s - m_new)
        keep = tl.exp2(m - m_new)
        v = tl.load(v_ptr + at[:, None] * D + d[None, :], mask=(w > 0.0)[:, None] & (d < D)[None, :], other=0.0)
        acc = acc * keep + tl.sum(w[:, None] * v.to(tl.float32), axis=0)
        total = total * keep + tl.sum(w, axis=0)
        m = m_new
    safe = tl.where(total > 0.0, total, 1.0)
    out = position * H + head
    tl.store(v_out + out * D + d, (acc / safe).to(v_out.dtype.element_ty), mask=d < D)
    tl.store(s_out + out, tl.where(total > 0.0, m + tl.log2(safe), float("-inf")))


def merge_states(v, s):
    S, N, H, D = v.shape
    v_out = torch.empty((S, H, D), dtype=v.dtype, device=v.device)
    s_out = torch.empty((S, H), dtype=torch.float32, device=v.device)
    if S:
        kernel[(S, H)](v.contiguous(), s.contiguous(), v_out, s_out, N, H, D, 16, triton.next_power_of_2(D))
    return v_out, s_out
