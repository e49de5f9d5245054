"""A pair as two lanes that pick their pointers, stacked states in place, owners of rows found by binary search."""

import torch
import triton
import triton.language as tl


@triton.jit
def lower_half(indptr_ptr, S, row):
    """The last position whose run begins at or before `row`: empty runs lie before it."""
    low = tl.full((), 0, tl.int64)
    high = tl.full((), 0, tl.int64) + S
    while high - low > 1:
        middle = (low + high) // 2
        if tl.load(indptr_ptr + middle) <= row:
            low = middle
        else:
            high = middle
    return low


@triton.jit
def begins_kernel(indptr_ptr, first_ptr, S, M):
    """A row a program: whose run is it in? Row by row, so that the merge need not know of indptr."""
    row = tl.program_id(0).to(tl.int64)
    inside = (row >= tl.load(indptr_ptr)) & (row < tl.load(indptr_ptr + S))
    position = lower_half(indptr_ptr, S, row)
    if inside:
        tl.store(first_ptr + row, position)
    else:
        tl.store(first_ptr + row, -1)


@triton.jit
def merge_kernel(
    v_ptr, s_ptr, owner_ptr, v_out_ptr, s_out_ptr, rows, H, D,
    OWNED: tl.constexpr, COUNT: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """Program (position, head) merges rows first to first + n of v[rows, H, D]; OWNED: those whose owner it is."""
    position = tl.program_id(0).to(tl.int64)
    h = tl.program_id(1).to(tl.int64)
    d = tl.arange(0, WIDE)[None, :]
    if OWNED:
        begin = tl.full((), 0, tl.int64)
        end = tl.full((), 0, tl.int64) + rows
    else:
        begin = position * rows
        end = begin + rows
    m = float("-inf")
    total = 0.0
    v = tl.zeros((1, WIDE), tl.float32)
    for start in range(begin, end, COUNT):
        row = start + tl.arange(0, COUNT)
        mine = row < end
        if OWNED:
            mine = mine & (tl.load(owner_ptr + row, mask=mine, other=-1) == position)
        s = tl.load(s_ptr + row * H + h, mask=mine, other=float("-inf"))
        m_new = tl.maximum(m, tl.max(s, 0))
        if m_new > float("-inf"):
            w = tl.exp2(s - m_new)
            at = v_ptr + (row * H + h)[:, None] * D + d
            more = tl.load(at, mask=(w > 0)[:, None] & (d < D), other=0.0).to(tl.float32)
            keep = tl.exp2(m - m_new)
            v = v * keep + tl.sum(more * w[:, None], 0, keep_dims=True)
            total = total * keep + tl.sum(w, 0)
            m = m_new
    out = position * H + h
    safe = tl.where(total > 0, total, 1.0)
    tl.store(v_out_ptr + out * D + d, (v / safe).to(v_out_ptr.dtype.element_ty), mask=d < D)
    tl.store(s_out_ptr + out, tl.where(total > 0, m + tl.log2(safe), float("-inf")))


def merged(v, s, S, rows, owner=None):
    H, D = v.shape[-2:]
    v_out, s_out = v.new_empty((S, H, D)), s.new_empty((S, H))
    if S * H:
        merge_kernel[S, H](
            v, s, s if owner is None else owner, v_out, s_out, rows, H, D,
            OWNED=owner is not None, COUNT=4, WIDE=triton.next_power_of_2(D), num_warps=2,
        )  # fmt: skip
    return v_out, s_out


def merge_states(v, s):
    return merged(v.contiguous(), s.contiguous(), *v.shape[:2])


@triton.jit
def pair_kernel(v_a, s_a, v_b, s_b, v_ptr, s_ptr, D, WIDE: tl.constexpr):
    """A row a program. Lane 0 is state a, lane 1 state b: each with pointers of its own."""
    row = tl.program_id(0).to(tl.int64)
    lane = tl.arange(0, 2)
    d = tl.arange(0, WIDE)[None, :]
    s = tl.load(tl.where(lane == 0, s_a, s_b) + row)
    m = tl.max(s, 0)
    w = tl.exp2(s - tl.where(m == float("-inf"), 0.0, m))
    at = tl.where(lane == 0, v_a, v_b)[:, None] + row * D + d
    v = tl.load(at, mask=(w > 0)[:, None] & (d < D), other=0.0).to(tl.float32)
    total = tl.sum(w, 0)
    safe = tl.where(total > 0, total, 1.0)
    v = tl.sum(v * (w / safe)[:, None], 0, keep_dims=True)
    tl.store(v_ptr + row * D + d, v.to(v_ptr.dtype.element_ty), mask=d < D)
    tl.store(s_ptr + row, tl.where(total > 0, m + tl.log2(safe), float("-inf")))


def merge_state(v_a, s_a, v_b, s_b):
    D = v_a.shape[-1]
    v = torch.empty(v_a.shape, dtype=v_a.dtype, device=v_a.device)
    s = torch.empty(s_a.shape, dtype=s_a.dtype, device=s_a.device)
    if s.numel():
        states = [one.contiguous() for one in (v_a, s_a, v_b, s_b)]
        pair_kernel[(s.numel(),)](*states, v, s, D, WIDE=triton.next_power_of_2(D))
    return v, s


def variable_length_merge_states(v, s, indptr):
    M, S = len(v), len(indptr) - 1
    owner = torch.full((M,), -1, dtype=torch.int64, device=v.device)
    if M and S:
        begins_kernel[(M,)](indptr.contiguous(), owner, S, M)
    return merged(v.contiguous(), s.contiguous(), S, M, owner)


@triton.jit
def put_kernel(
    v_ptr, s_ptr, new_v_ptr, new_s_ptr, mask_ptr, H, D, v_s, v_h, v_d, s_s, s_h, mask_s,
    MASKED: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    position, h = row // H, row % H
    chosen = True
    if MASKED:
        chosen = tl.load(mask_ptr + position * mask_s) != 0
    if chosen:
        d = tl.arange(0, WIDE).to(tl.int64)
        v = tl.load(new_v_ptr + row * D + d, mask=d < D)
        tl.store(v_ptr + position * v_s + h * v_h + d * v_d, v, mask=d < D)
        tl.store(s_ptr + position * s_s + h * s_h, tl.load(new_s_ptr + row))


def merge_state_in_place(v, s, v_other, s_other, mask=None):
    S, H, D = v.shape
    if S == 0:
        return
    new_v, new_s = merge_states(torch.stack((v, v_other), dim=1), torch.stack((s, s_other), dim=1))
    step = 0 if mask is None else mask.stride(0)
    put_kernel[(S * H,)](
        v, s, new_v, new_s, mask if mask is not None else s, H, D, *v.stride(), *s.stride(), step,
        MASKED=mask is not None, WIDE=triton.next_power_of_2(D),
    )  # fmt: skip
