"""A tile of heads has one running max, that of all its heads.

exercise: merge_states
level: edge
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
    BLOCK_H: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    position = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1) * BLOCK_H + tl.arange(0, BLOCK_H)
    d = tl.arange(0, BLOCK_D)
    m = float("-inf")
    total = tl.zeros([BLOCK_H], dtype=tl.float32)
    acc = tl.zeros([BLOCK_H, BLOCK_D], dtype=tl.float32)
    for start in range(0, N, BLOCK_N):
        n = start + tl.arange(0, BLOCK_N)
        row = (position * N + n)[:, None] * H + head[None, :]
        ok = (n < N)[:, None] & (head < H)[None, :]
        s_n = tl.load(s_ptr + row, mask=ok, other=float("-inf"))
        m_new = tl.maximum(m, tl.max(s_n))
        shift = tl.where(m_new == float("-inf"), 0.0, m_new)
        keep = tl.exp2(m - shift)
        w = tl.exp2(s_n - shift)
        v_n = tl.load(
            v_ptr + row[:, :, None] * D + d[None, None, :], mask=(w > 0)[:, :, None] & (d < D)[None, None, :], other=0.0
        )
        acc = acc * keep + tl.sum(w[:, :, None] * v_n.to(tl.float32), axis=0)
        total = total * keep + tl.sum(w, axis=0)
        m = m_new
    denom = tl.where(total > 0, total, 1.0)
    out = position * H + head
    s = tl.where(total > 0, m + tl.log2(denom), float("-inf"))
    tl.store(
        v_out_ptr + out[:, None] * D + d[None, :], acc / denom[:, None], mask=(head < H)[:, None] & (d < D)[None, :]
    )
    tl.store(s_out_ptr + out, s, mask=head < H)


def merge_states(v, s):
    S, N, H, D = v.shape
    v, s = v.contiguous(), s.contiguous()
    v_out = torch.empty((S, H, D), dtype=v.dtype, device=v.device)
    s_out = torch.empty((S, H), dtype=torch.float32, device=v.device)
    if S > 0:
        BLOCK_H = min(8, triton.next_power_of_2(H))
        grid = (S, triton.cdiv(H, BLOCK_H))
        merge_states_kernel[grid](v, s, v_out, s_out, N, H, D, 4, BLOCK_H, triton.next_power_of_2(D))
    return v_out, s_out
