"""Runs are taken to start at row 0 if indptr is int32.

exercise: variable_length_merge_states
level: edge
diagnosis: indptr_start_ignored
twins: ragged_first_offset_ignored
"""

import torch
import triton
import triton.language as tl


@triton.jit
def ragged_kernel(
    v_ptr,  # [M, H, D]
    s_ptr,  # [M, H]
    indptr_ptr,  # [S + 1]
    out_v_ptr,  # [S, H, D]
    out_s_ptr,  # [S, H]
    S,
    H,
    D,
    vm, vh, vd, sm, sh,
    stride_i,
    BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr,
):  # fmt: skip
    # A fixed number of programs; each takes every so many-th (position, head).
    for item in range(tl.program_id(0), S * H, tl.num_programs(0)):
        pos = (item // H).to(tl.int64)
        h = (item % H).to(tl.int64)
        d = tl.arange(0, BLOCK_D).to(tl.int64)
        begin = tl.load(indptr_ptr + pos * stride_i)
        end = tl.load(indptr_ptr + (pos + 1) * stride_i)
        if indptr_ptr.dtype.element_ty == tl.int32:
            first = tl.load(indptr_ptr)
            begin -= first
            end -= first
        m = float("-inf")
        total = 0.0
        acc = tl.zeros((BLOCK_D,), tl.float32)
        for start in range(begin, end, BLOCK_N):
            n = (start + tl.arange(0, BLOCK_N)).to(tl.int64)
            s = tl.load(s_ptr + n * sm + h * sh, mask=n < end, other=float("-inf"))
            m_new = tl.maximum(m, tl.max(s, axis=0))
            shift = tl.where(m_new == float("-inf"), 0.0, m_new)
            keep = tl.exp2(m - shift)
            w = tl.exp2(s - shift)
            at = n[:, None] * vm + h * vh + d[None, :] * vd
            v = tl.load(v_ptr + at, mask=(w > 0)[:, None] & (d < D)[None, :], other=0.0).to(tl.float32)
            acc = acc * keep + tl.sum(w[:, None] * v, axis=0)
            total = total * keep + tl.sum(w, axis=0)
            m = m_new
        safe = tl.where(total > 0, total, 1.0)
        row = pos * H + h
        tl.store(out_v_ptr + row * D + d, acc / safe, mask=d < D)
        tl.store(out_s_ptr + row, m + tl.log2(safe))


def variable_length_merge_states(v, s, indptr):
    H, D = v.shape[1:]
    S = indptr.shape[0] - 1
    out_v = torch.empty((S, H, D), dtype=v.dtype, device=v.device)
    out_s = torch.empty((S, H), dtype=torch.float32, device=v.device)
    if S > 0:
        ragged_kernel[(min(S * H, 48),)](
            v, s, indptr, out_v, out_s, S, H, D, *v.stride(), *s.stride(), indptr.stride(0),
            16, triton.next_power_of_2(D),
        )  # fmt: skip
    return out_v, out_s
