"""Program n merges state n into the result that program n - 1 left.

exercise: merge_states
level: memory
diagnosis: race
"""

import torch
import triton
import triton.language as tl


@triton.jit
def step_kernel(v_ptr, s_ptr, v_acc_ptr, s_out_ptr, N, H, D, BLOCK_D: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    n = tl.program_id(1)
    state = (row // H * N + n) * H + row % H
    cols = tl.arange(0, BLOCK_D)
    inside = cols < D
    s_a = tl.load(s_out_ptr + row)
    s_b = tl.load(s_ptr + state)
    s_max = tl.maximum(s_a, s_b)
    shift = tl.where(s_max == float("-inf"), 0.0, s_max)
    w_a = tl.exp2(s_a - shift)
    w_b = tl.exp2(s_b - shift)
    total = w_a + w_b
    denom = tl.where(total > 0, total, 1.0)
    v_a = tl.load(v_acc_ptr + row * D + cols, mask=inside & (w_a > 0), other=0.0)
    v_b = tl.load(v_ptr + state * D + cols, mask=inside & (w_b > 0), other=0.0).to(tl.float32)
    tl.store(v_acc_ptr + row * D + cols, (w_a * v_a + w_b * v_b) / denom, mask=inside)
    tl.store(s_out_ptr + row, tl.where(total > 0, shift + tl.log2(denom), float("-inf")))


def merge_states(v, s):
    S, N, H, D = v.shape
    v, s = v.contiguous(), s.contiguous()
    v_acc = torch.zeros((S, H, D), dtype=torch.float32, device=v.device)
    s_out = torch.full((S, H), float("-inf"), dtype=torch.float32, device=v.device)
    if S > 0 and N > 0:
        step_kernel[(S * H, N)](v, s, v_acc, s_out, N, H, D, triton.next_power_of_2(D))
    return v_acc.to(v.dtype), s_out
