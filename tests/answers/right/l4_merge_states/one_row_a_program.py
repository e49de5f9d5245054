"""One program a row, one row at a time: the first kernel that comes to mind, with every guard in place."""

import torch
import triton
import triton.language as tl


@triton.jit
def merge_state_kernel(
    v_a_ptr,  # [S, H, D]
    s_a_ptr,  # [S, H]
    v_b_ptr,  # [S, H, D]
    s_b_ptr,  # [S, H]
    v_ptr,  # [S, H, D]
    s_ptr,  # [S, H]
    D,
    BLOCK_D: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK_D)
    inside = cols < D
    s_a = tl.load(s_a_ptr + row)
    s_b = tl.load(s_b_ptr + row)
    s_max = tl.maximum(s_a, s_b)
    shift = tl.where(s_max == float("-inf"), 0.0, s_max)
    w_a = tl.exp2(s_a - shift)
    w_b = tl.exp2(s_b - shift)
    total = w_a + w_b
    denom = tl.where(total > 0, total, 1.0)
    v_a = tl.load(v_a_ptr + row * D + cols, mask=inside & (w_a > 0), other=0.0).to(tl.float32)
    v_b = tl.load(v_b_ptr + row * D + cols, mask=inside & (w_b > 0), other=0.0).to(tl.float32)
    v = (w_a * v_a + w_b * v_b) / denom
    s = tl.where(total > 0, shift + tl.log2(denom), float("-inf"))
    tl.store(v_ptr + row * D + cols, v, mask=inside)
    tl.store(s_ptr + row, s)


def merge_state(v_a, s_a, v_b, s_b):
    S, H, D = v_a.shape
    v_a, s_a, v_b, s_b = v_a.contiguous(), s_a.contiguous(), v_b.contiguous(), s_b.contiguous()
    v = torch.empty((S, H, D), dtype=v_a.dtype, device=v_a.device)
    s = torch.empty((S, H), dtype=torch.float32, device=v_a.device)
    if S > 0:
        BLOCK_D = triton.next_power_of_2(D)
        merge_state_kernel[(S * H,)](v_a, s_a, v_b, s_b, v, s, D, BLOCK_D)
    return v, s


@triton.jit
def merge_in_place_kernel(
    v_ptr,  # [S, H, D]
    s_ptr,  # [S, H]
    v_other_ptr,  # [S, H, D]
    s_other_ptr,  # [S, H]
    mask_ptr,  # [S]
    v_s,
    v_h,
    v_d,
    s_s,
    s_h,
    vo_s,
    vo_h,
    vo_d,
    so_s,
    so_h,
    mask_s,
    H,
    D,
    HAS_MASK: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    position = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1).to(tl.int64)
    cols = tl.arange(0, BLOCK_D)
    live = True
    if HAS_MASK:
        live = tl.load(mask_ptr + position * mask_s) != 0
    if live:
        inside = cols < D
        s_a = tl.load(s_ptr + position * s_s + head * s_h)
        s_b = tl.load(s_other_ptr + position * so_s + head * so_h)
        s_max = tl.maximum(s_a, s_b)
        shift = tl.where(s_max == float("-inf"), 0.0, s_max)
        w_a = tl.exp2(s_a - shift)
        w_b = tl.exp2(s_b - shift)
        total = w_a + w_b
        denom = tl.where(total > 0, total, 1.0)
        at = position * v_s + head * v_h + cols * v_d
        at_other = position * vo_s + head * vo_h + cols * vo_d
        v_a = tl.load(v_ptr + at, mask=inside & (w_a > 0), other=0.0).to(tl.float32)
        v_b = tl.load(v_other_ptr + at_other, mask=inside & (w_b > 0), other=0.0).to(tl.float32)
        v = (w_a * v_a + w_b * v_b) / denom
        s = tl.where(total > 0, shift + tl.log2(denom), float("-inf"))
        tl.store(v_ptr + at, v, mask=inside)
        tl.store(s_ptr + position * s_s + head * s_h, s)


def merge_state_in_place(v, s, v_other, s_other, mask=None):
    S, H, D = v.shape
    if S == 0:
        return
    merge_in_place_kernel[(S, H)](
        v,
        s,
        v_other,
        s_other,
        v if mask is None else mask,
        *v.stride(),
        *s.stride(),
        *v_other.stride(),
        *s_other.stride(),
        0 if mask is None else mask.stride(0),
        H,
        D,
        mask is not None,
        triton.next_power_of_2(D),
    )


@triton.jit
def merge_states_kernel(
    v_ptr,  # [S, N, H, D]
    s_ptr,  # [S, N, H]
    v_out_ptr,  # [S, H, D]
    s_out_ptr,  # [S, H]
    N,
    H,
    D,
    BLOCK_D: tl.constexpr,
):
    position = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1).to(tl.int64)
    cols = tl.arange(0, BLOCK_D)
    inside = cols < D
    m = float("-inf")
    total = 0.0
    acc = tl.zeros([BLOCK_D], dtype=tl.float32)
    for n in range(0, N):
        state = (position * N + n) * H + head
        s_n = tl.load(s_ptr + state)
        m_new = tl.maximum(m, s_n)
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


def merge_states(v, s):
    S, N, H, D = v.shape
    v, s = v.contiguous(), s.contiguous()
    v_out = torch.empty((S, H, D), dtype=v.dtype, device=v.device)
    s_out = torch.empty((S, H), dtype=torch.float32, device=v.device)
    if S > 0:
        merge_states_kernel[(S, H)](v, s, v_out, s_out, N, H, D, triton.next_power_of_2(D))
    return v_out, s_out


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
        m_new = tl.maximum(m, s_n)
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
