"""s is made contiguous only if v is not.

exercise: merge_states
level: edge
diagnosis: wrong_value
"""

import torch
import triton
import triton.language as tl


@triton.jit
def combine(s_a, w_a, s_b, w_b):
    m = tl.maximum(s_a, s_b)
    shift = tl.where(m == float("-inf"), 0.0, m)
    return m, w_a * tl.exp2(s_a - shift) + w_b * tl.exp2(s_b - shift)


@triton.jit
def states_kernel(
    v_ptr,  # [S, N, H, D]
    s_ptr,  # [S, N, H]
    out_v_ptr,  # [S, H, D]
    out_s_ptr,  # [S, H]
    N,
    H,
    D,
    vs, vn, vh, vd, ss, sn, sh,
    BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr,
):  # fmt: skip
    pos = tl.program_id(0).to(tl.int64)
    h = tl.program_id(1).to(tl.int64)
    d = tl.arange(0, BLOCK_D).to(tl.int64)
    m = float("-inf")
    total = 0.0
    acc = tl.zeros((BLOCK_D,), tl.float32)
    for start in range(0, N, BLOCK_N):
        n = (start + tl.arange(0, BLOCK_N)).to(tl.int64)
        s = tl.load(s_ptr + pos * ss + n * sn + h * sh, mask=n < N, other=float("-inf"))
        m_step, w_step = tl.reduce((s, tl.where(s > float("-inf"), 1.0, 0.0)), 0, combine)
        m_new = tl.maximum(m, m_step)
        shift = tl.where(m_new == float("-inf"), 0.0, m_new)
        keep = tl.exp2(m - shift)
        w = tl.exp2(s - shift)
        at = pos * vs + n[:, None] * vn + h * vh + d[None, :] * vd
        v = tl.load(v_ptr + at, mask=(w > 0)[:, None] & (d < D)[None, :], other=0.0).to(tl.float32)
        acc = acc * keep + tl.sum(w[:, None] * v, axis=0)
        total = total * keep + w_step * tl.exp2(m_step - shift)
        m = m_new
    safe = tl.where(total > 0, total, 1.0)
    row = pos * H + h
    tl.store(out_v_ptr + row * D + d, acc / safe, mask=d < D)
    tl.store(out_s_ptr + row, m + tl.log2(safe))


def merge_states(v, s):
    S, N, H, D = v.shape
    out_v = torch.empty((S, H, D), dtype=v.dtype, device=v.device)
    out_s = torch.empty((S, H), dtype=torch.float32, device=v.device)
    if not v.is_contiguous():
        v, s = v.contiguous(), s.contiguous()
    if S > 0:
        states_kernel[(S, H)](
            v, s, out_v, out_s, N, H, D, *v.stride(), N * H, H, 1, 32, triton.next_power_of_2(D)
        )
    return out_v, out_s
