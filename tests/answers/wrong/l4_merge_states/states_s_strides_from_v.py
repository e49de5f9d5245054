"""The strides of s are taken to be those of v over D.

exercise: merge_states
level: edge
diagnosis: wrong_value
told: s.stride() is (3, 6, 1), and (15, 3, 1) was taken
"""

import torch
import triton
import triton.language as tl


@triton.jit
def merge_states_kernel(
    v_ptr,  # [S, N, H, D]
    s_ptr,  # [S, N, H]
    v_out_ptr,  # [S, H, D]
    s_out_ptr,  # [S, H]
    N,
    H,
    D,
    s0,
    s1,
    s2,
    BLOCK_D: tl.constexpr,
):
    position = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1).to(tl.int64)
    cols = tl.arange(0, BLOCK_D)
    inside = cols < D
    m = float("-inf")
    total = 0.0
    acc = tl.zeros([BLOCK_D], dtype=tl.float32)
    for n in range(0, N):
        state = position * s0 + n * s1 + head * s2
        s_n = tl.load(s_ptr + (position * s0 + n * s1 + head * s2) // D)
        m_new = tl.maximum(m, s_n)
        shift = tl.where(m_new == float("-inf"), 0.0, m_new)
        w_n = tl.exp2(s_n - shift)
        keep = tl.exp2(m - shift)
        v_n = tl.load(v_ptr + state + cols, mask=inside & (w_n > 0), other=0.0).to(tl.float32)
        acc = acc * keep + w_n * v_n
        total = total * keep + w_n
        m = m_new
    denom = tl.where(total > 0, total, 1.0)
    out = position * H + head
    s = tl.where(total > 0, m + tl.log2(denom), float("-inf"))
    tl.store(v_out_ptr + out * D + cols, acc / denom, mask=inside)
    tl.store(s_out_ptr + out, s)


def merge_states(v, s):
    S, N, H, D = v.shape
    v = v if v.stride(-1) == 1 else v.contiguous()
    v_out = torch.empty((S, H, D), dtype=v.dtype, device=v.device)
    s_out = torch.empty((S, H), dtype=torch.float32, device=v.device)
    if S > 0:
        merge_states_kernel[(S, H)](v, s, v_out, s_out, N, H, D, *v.stride()[:3], triton.next_power_of_2(D))
    return v_out, s_out
