"""Padded states get s = 0, so each counts with weight 1.

exercise: merge_states
level: value
diagnosis: padding_weighs_one
"""

import torch
import triton
import triton.language as tl


@triton.jit
def merge_states_kernel(v_ptr, s_ptr, v_out_ptr, s_out_ptr, N, H, D, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    position = row // H
    head = row % H
    n = tl.arange(0, BLOCK_N)
    cols = tl.arange(0, BLOCK_D)
    state = (position * N + n) * H + head
    s = tl.load(s_ptr + state, mask=n < N, other=0.0)
    m = tl.max(s, axis=0)
    shift = tl.where(m == float("-inf"), 0.0, m)
    w = tl.exp2(s - shift)
    total = tl.sum(w, axis=0)
    denom = tl.where(total > 0, total, 1.0)
    inside = (n < N)[:, None] & (w > 0)[:, None] & (cols < D)[None, :]
    v = tl.load(v_ptr + state[:, None] * D + cols[None, :], mask=inside, other=0.0).to(tl.float32)
    tl.store(v_out_ptr + row * D + cols, tl.sum(w[:, None] * v, axis=0) / denom, mask=cols < D)
    tl.store(s_out_ptr + row, tl.where(total > 0, shift + tl.log2(denom), float("-inf")))


def merge_states(v, s):
    S, N, H, D = v.shape
    v, s = v.contiguous(), s.contiguous()
    v_out = torch.empty((S, H, D), dtype=v.dtype, device=v.device)
    s_out = torch.empty((S, H), dtype=torch.float32, device=v.device)
    if N == 0:
        return v_out.zero_(), s_out.fill_(float("-inf"))
    if S > 0:
        merge_states_kernel[(S * H,)](
            v, s, v_out, s_out, N, H, D, max(2, triton.next_power_of_2(N)), triton.next_power_of_2(D)
        )
    return v_out, s_out
