"""The heads of o_b are taken to be D elements apart.

exercise: merge_natural
level: memory
diagnosis: wrong_value
told: o_b.stride(1) is 32, and 16 was taken, as if o_b were contiguous
"""

import math

import torch
import triton
import triton.language as tl


@triton.jit
def natural_kernel(
    o_a_ptr,  # [S, H, D]
    lse_a_ptr,  # [S, H]
    o_b_ptr,  # [S, H, D]
    lse_b_ptr,  # [S, H]
    o_ptr,  # [S, H, D]
    lse_ptr,  # [S, H]
    H,
    D,
    oas, oah, oad, las, lah, obs, obh, obd, lbs, lbh,
    BLOCK_H: tl.constexpr,
    BLOCK_D: tl.constexpr,
):  # fmt: skip
    s = tl.program_id(0).to(tl.int64)
    h = (tl.program_id(1) * BLOCK_H + tl.arange(0, BLOCK_H)).to(tl.int64)
    d = tl.arange(0, BLOCK_D).to(tl.int64)
    live = h < H
    ok = live[:, None] & (d < D)[None, :]
    lse_a = tl.load(lse_a_ptr + s * las + h * lah, mask=live, other=float("-inf"))
    lse_b = tl.load(lse_b_ptr + s * lbs + h * lbh, mask=live, other=float("-inf"))
    m = tl.maximum(lse_a, lse_b)
    shift = tl.where(m == float("-inf"), 0.0, m)
    w_a = tl.exp(lse_a - shift)
    w_b = tl.exp(lse_b - shift)
    total = tl.where(m == float("-inf"), 1.0, w_a + w_b)
    o_a = tl.load(o_a_ptr + s * oas + h[:, None] * oah + d[None, :] * oad, mask=ok & (w_a > 0)[:, None], other=0.0)
    o_b = tl.load(o_b_ptr + s * obs + h[:, None] * D + d[None, :] * obd, mask=ok & (w_b > 0)[:, None], other=0.0)
    o = o_a.to(tl.float32) * (w_a / total)[:, None] + o_b.to(tl.float32) * (w_b / total)[:, None]
    row = s * H + h
    tl.store(o_ptr + row[:, None] * D + d[None, :], o, mask=ok)
    tl.store(lse_ptr + row, m + tl.log(total), mask=live)


def merge_natural(o_a, lse_a, o_b, lse_b):
    S, H, D = o_a.shape
    o = torch.empty((S, H, D), dtype=o_a.dtype, device=o_a.device)
    lse = torch.empty((S, H), dtype=torch.float32, device=o_a.device)
    if S > 0:
        BLOCK_H = 8
        natural_kernel[(S, triton.cdiv(H, BLOCK_H))](
            o_a, lse_a, o_b, lse_b, o, lse, H, D,
            *o_a.stride(), *lse_a.stride(), *o_b.stride(), *lse_b.stride(), BLOCK_H, triton.next_power_of_2(D),
        )  # fmt: skip
    return o, lse
