"""The offset of a head is computed in 32 bits: where heads come first in memory it is the large one.

exercise: merge_state
level: memory
diagnosis: out_of_bounds
"""

import torch
import triton
import triton.language as tl


@triton.jit
def merge_kernel(
    v_a_ptr,  # [S, H, D]
    s_a_ptr,  # [S, H]
    v_b_ptr,  # [S, H, D]
    s_b_ptr,  # [S, H]
    v_ptr,  # [S, H, D]
    s_ptr,  # [S, H]
    H,
    D,
    vas, vah, vad, sas, sah, vbs, vbh, vbd, sbs, sbh,
    BLOCK_H: tl.constexpr,
    BLOCK_D: tl.constexpr,
):  # fmt: skip
    pos = tl.program_id(0).to(tl.int64)
    h = tl.program_id(1) * BLOCK_H + tl.arange(0, BLOCK_H)
    d = tl.arange(0, BLOCK_D).to(tl.int64)
    live = h < H
    ok = live[:, None] & (d < D)[None, :]
    s_a = tl.load(s_a_ptr + pos * sas + h * sah, mask=live, other=float("-inf"))
    s_b = tl.load(s_b_ptr + pos * sbs + h * sbh, mask=live, other=float("-inf"))
    m = tl.maximum(s_a, s_b)
    shift = tl.where(m == float("-inf"), 0.0, m)
    w_a = tl.exp2(s_a - shift)
    w_b = tl.exp2(s_b - shift)
    total = tl.where(m == float("-inf"), 1.0, w_a + w_b)
    a = tl.load(v_a_ptr + pos * vas + h[:, None] * vah + d[None, :] * vad, mask=ok & (w_a > 0)[:, None], other=0.0)
    b = tl.load(v_b_ptr + pos * vbs + h[:, None] * vbh + d[None, :] * vbd, mask=ok & (w_b > 0)[:, None], other=0.0)
    v = a.to(tl.float32) * (w_a / total)[:, None] + b.to(tl.float32) * (w_b / total)[:, None]
    row = pos * H + h
    tl.store(v_ptr + row[:, None] * D + d[None, :], v, mask=ok)
    tl.store(s_ptr + row, m + tl.log2(total), mask=live)


def merge_state(v_a, s_a, v_b, s_b):
    S, H, D = v_a.shape
    v = torch.empty((S, H, D), dtype=v_a.dtype, device=v_a.device)
    s = torch.empty((S, H), dtype=torch.float32, device=v_a.device)
    if S > 0:
        BLOCK_H = 16
        merge_kernel[(S, triton.cdiv(H, BLOCK_H))](
            v_a, s_a, v_b, s_b, v, s, H, D,
            *v_a.stride(), *s_a.stride(), *v_b.stride(), *s_b.stride(), BLOCK_H, triton.next_power_of_2(D),
        )  # fmt: skip
    return v, s
