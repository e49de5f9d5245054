"""One tile of 1024 states and no loop: the rest are dropped.

exercise: merge_states
level: value
diagnosis: wrong_value
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
    BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    position = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1).to(tl.int64)
    cols = tl.arange(0, BLOCK_D)
    inside = cols < D
    n = tl.arange(0, BLOCK_N)
    state = (position * N + n) * H + head
    s_n = tl.load(s_ptr + state, mask=n < N, other=float("-inf"))
    m = tl.max(s_n, axis=0)
    w = tl.exp2(s_n - tl.where(m == float("-inf"), 0.0, m))
    v_n = tl.load(v_ptr + state[:, None] * D + cols[None, :], mask=inside[None, :] & (w > 0)[:, None], other=0.0)
    acc = tl.sum(v_n.to(tl.float32) * w[:, None], axis=0)
    total = tl.sum(w, axis=0)
    denom = tl.where(total > 0, total, 1.0)
    out = position * H + head
    s = tl.where(total > 0, m + tl.log2(denom), float("-inf"))
    tl.store(v_out_ptr + out * D + cols, acc / denom, mask=inside)
    tl.store(s_out_ptr + out, s)


def merge_states(v, s):
    S, N, H, D = v.shape
    v, s = v.contiguous(), s.contiguous()
    v_out = torch.empty((S, H, D), dtype=v.dtype, device=v.device)
    s_out = torch.empty((S, H), dtype=torch.float32, device=v.device)
    BLOCK_N = min(max(triton.next_power_of_2(N), 2), 1024)
    if S > 0:
        merge_states_kernel[(S, H)](v, s, v_out, s_out, N, H, D, BLOCK_N, triton.next_power_of_2(D))
    return v_out, s_out
