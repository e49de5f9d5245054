"""The weights are computed by torch in the wrapper; the kernel only mixes.

exercise: merge_state
level: value
diagnosis: not_triton
"""

import torch
import triton
import triton.language as tl


@triton.jit
def mix_kernel(v_a_ptr, v_b_ptr, w_ptr, v_ptr, D, BLOCK_D: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK_D)
    inside = cols < D
    w = tl.load(w_ptr + row)
    v_a = tl.load(v_a_ptr + row * D + cols, mask=inside & (w > 0), other=0.0).to(tl.float32)
    v_b = tl.load(v_b_ptr + row * D + cols, mask=inside & (w < 1), other=0.0).to(tl.float32)
    tl.store(v_ptr + row * D + cols, w * v_a + (1 - w) * v_b, mask=inside)


def merge_state(v_a, s_a, v_b, s_b):
    S, H, D = v_a.shape
    s = torch.logaddexp2(s_a, s_b)
    w = torch.exp2(s_a - s).nan_to_num(0.0)
    v = torch.empty((S, H, D), dtype=v_a.dtype, device=v_a.device)
    if S > 0:
        mix_kernel[(S * H,)](v_a.contiguous(), v_b.contiguous(), w, v, D, triton.next_power_of_2(D))
    return v, s
