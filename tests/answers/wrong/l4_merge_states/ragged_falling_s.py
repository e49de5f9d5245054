"""s is taken to fall within a run: its first row has the largest.

exercise: variable_length_merge_states
level: edge
diagnosis: zero_kept
twins: variable_zero_kept
"""

import torch
import triton
import triton.language as tl


@triton.jit
def variable_length_kernel(
    v_ptr,  # [M, H, D]
    s_ptr,  # [M, H]
    indptr_ptr,  # [S + 1]
    v_out_ptr,  # [S, H, D]
    s_out_ptr,  # [S, H]
    H,
    D,
    BLOCK_D: tl.constexpr,
):
    position = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1).to(tl.int64)
    cols = tl.arange(0, BLOCK_D)
    inside = cols < D
    begin = tl.load(indptr_ptr + position).to(tl.int64)
    end = tl.load(indptr_ptr + position + 1).to(tl.int64)
    m = float("-inf")
    total = 0.0
    acc = tl.zeros([BLOCK_D], dtype=tl.float32)
    for row in range(begin, end):
        state = row * H + head
        s_n = tl.load(s_ptr + state)
        m_new = tl.where(row == begin, s_n, m)
        shift = tl.where(m_new == float("-inf"), 0.0, m_new)
        w_n = tl.exp2(s_n - shift)
        keep = tl.exp2(m - shift)
        v_n = tl.load(v_ptr + state * D + cols, mask=inside & (w_n > 0), other=0.0).to(tl.float32)
        acc = acc * keep + w_n * v_n
        total = total * keep + w_n
        m = m_new
    denom = tl.where(total > 0, total, 1.0)
    out = position * H + head
    s = tl.where(total > 0, m + tl.log2(denom), float("-inf"))
    tl.store(v_out_ptr + out * D + cols, acc / denom, mask=inside)
    tl.store(s_out_ptr + out, s)


def variable_length_merge_states(v, s, indptr):
    M, H, D = v.shape
    S = indptr.shape[0] - 1
    v, s, indptr = v.contiguous(), s.contiguous(), indptr.contiguous()
    v_out = torch.empty((S, H, D), dtype=v.dtype, device=v.device)
    s_out = torch.empty((S, H), dtype=torch.float32, device=v.device)
    if S > 0:
        variable_length_kernel[(S, H)](v, s, indptr, v_out, s_out, H, D, triton.next_power_of_2(D))
    return v_out, s_out
