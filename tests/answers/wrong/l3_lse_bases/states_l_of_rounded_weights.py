"""l is the sum of weights that were rounded to the dtype of v.

exercise: partial_states
level: value
diagnosis: wrong_value
"""

import torch
import triton
import triton.language as tl


@triton.jit
def states_kernel(
    q_ptr,  # [S, H, D]
    k_ptr,  # [L, H, D]
    v_ptr,  # [L, H, D]
    v_out_ptr,  # [S, N, H, D]
    s_out_ptr,  # [S, N, H]
    H,
    L,
    T,
    scale,
    D,
    BLOCK_L: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    position = tl.program_id(0).to(tl.int64)
    part = tl.program_id(1).to(tl.int64)
    head = tl.program_id(2).to(tl.int64)
    d = tl.arange(0, BLOCK_D)
    q = tl.load(q_ptr + (position * H + head) * D + d, mask=d < D, other=0.0).to(tl.float32)
    q = q * (scale * 1.4426950408889634)
    m = float("-inf")
    l = 0.0
    acc = tl.zeros([BLOCK_D], dtype=tl.float32)
    end = tl.minimum((part + 1) * T, L)
    for start in range(part * T, end, BLOCK_L):
        key = start + tl.arange(0, BLOCK_L)
        ok = (key < end)[:, None] & (d < D)[None, :]
        at = (key[:, None] * H + head) * D + d[None, :]
        k = tl.load(k_ptr + at, mask=ok, other=0.0).to(tl.float32)
        v = tl.load(v_ptr + at, mask=ok, other=0.0).to(tl.float32)
        score = tl.sum(q[None, :] * k, axis=1)
        score = tl.where(key < end, score, float("-inf"))
        m_new = tl.maximum(m, tl.max(score, axis=0))
        shift = tl.where(m_new == float("-inf"), 0.0, m_new)
        keep = tl.exp2(m - shift)
        w = tl.exp2(score - shift).to(v_ptr.dtype.element_ty).to(tl.float32)
        acc = acc * keep + tl.sum(w[:, None] * v, axis=0)
        l = l * keep + tl.sum(w, axis=0)
        m = m_new
    total = tl.where(l > 0, l, 1.0)
    row = (position * tl.num_programs(1) + part) * H + head
    tl.store(s_out_ptr + row, m + tl.log2(total))
    tl.store(v_out_ptr + row * D + d, acc / total, mask=d < D)


def partial_states(q, k, v, num_splits, scale=None):
    S, H, D = q.shape
    L = k.shape[0]
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    v_out = torch.empty((S, num_splits, H, D), dtype=torch.float32, device=q.device)
    s_out = torch.empty((S, num_splits, H), dtype=torch.float32, device=q.device)
    scale = D**-0.5 if scale is None else scale
    T = triton.cdiv(L, num_splits)
    if S > 0:
        grid = (S, num_splits, H)
        states_kernel[grid](q, k, v, v_out, s_out, H, L, T, scale, D, 16, triton.next_power_of_2(D))
    return v_out, s_out
