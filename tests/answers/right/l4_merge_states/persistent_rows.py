"""A fixed number of programs walk over the rows; everything is one kernel over lists of row numbers."""

import torch
import triton
import triton.language as tl

PROGRAMS = 6


@triton.jit
def fold(m, l, acc, s, v_ptrs, inside):
    """One more state into a running (m, l, acc)."""
    top = tl.maximum(m, s)
    safe = tl.where(top > float("-inf"), top, 0.0)
    old = tl.exp2(m - safe)
    new = tl.exp2(s - safe)
    v = tl.load(v_ptrs, mask=inside & (s > float("-inf")), other=0.0)
    return top, l * old + new, acc * old + new * v.to(tl.float32)


@triton.jit
def finish(m, l):
    empty = l <= 0.0
    return tl.where(empty, 0.0, 1.0 / tl.where(empty, 1.0, l)), tl.where(
        empty, float("-inf"), m + tl.log2(tl.where(empty, 1.0, l))
    )


@triton.jit
def states_kernel(
    v_ptr, s_ptr, bounds_ptr, v_out_ptr, s_out_ptr, rows, H, D, N, RAGGED: tl.constexpr, BLOCK_D: tl.constexpr
):
    cols = tl.arange(0, BLOCK_D)
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        row = row.to(tl.int64)
        i = row // H
        h = row % H
        if RAGGED:
            first = tl.load(bounds_ptr + i).to(tl.int64)
            last = tl.load(bounds_ptr + i + 1).to(tl.int64)
        else:
            first = i * N
            last = first + N
        m = tl.full((), float("-inf"), tl.float32)
        l = tl.full((), 0.0, tl.float32)
        acc = tl.zeros((BLOCK_D,), tl.float32)
        for n in range(first, last):
            at = n * H + h
            m, l, acc = fold(m, l, acc, tl.load(s_ptr + at), v_ptr + at * D + cols, cols < D)
        scale, s = finish(m, l)
        tl.store(v_out_ptr + row * D + cols, (acc * scale).to(v_out_ptr.dtype.element_ty), mask=cols < D)
        tl.store(s_out_ptr + row, s)


def merge_states(v, s):
    S, N, H, D = v.shape
    v_out = torch.empty(S, H, D, dtype=v.dtype, device=v.device)
    s_out = torch.empty(S, H, device=v.device)
    if S > 0:
        v, s = v.contiguous(), s.contiguous()
        states_kernel[(PROGRAMS,)](v, s, s, v_out, s_out, S * H, H, D, N, False, triton.next_power_of_2(D))
    return v_out, s_out


def variable_length_merge_states(v, s, indptr):
    S = len(indptr) - 1
    _, H, D = v.shape
    v_out = torch.empty(S, H, D, dtype=v.dtype, device=v.device)
    s_out = torch.empty(S, H, device=v.device)
    if S > 0:
        v, s, indptr = v.contiguous(), s.contiguous(), indptr.contiguous()
        states_kernel[(PROGRAMS,)](v, s, indptr, v_out, s_out, S * H, H, D, 0, True, triton.next_power_of_2(D))
    return v_out, s_out


@triton.jit
def pair_kernel(
    v_a_ptr, s_a_ptr, v_b_ptr, s_b_ptr, v_ptr, s_ptr, mask_ptr, rows, H, D, mask_stride,
    va0, va1, va2, sa0, sa1, vb0, vb1, vb2, sb0, sb1, vo0, vo1, vo2, so0, so1,
    MASKED: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    cols = tl.arange(0, BLOCK_D)
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        i = row.to(tl.int64) // H
        h = row.to(tl.int64) % H
        on = i >= 0
        if MASKED:
            on = tl.load(mask_ptr + i * mask_stride) != 0
        if on:
            m = tl.full((), float("-inf"), tl.float32)
            l = tl.full((), 0.0, tl.float32)
            acc = tl.zeros((BLOCK_D,), tl.float32)
            s_a = tl.load(s_a_ptr + i * sa0 + h * sa1)
            m, l, acc = fold(m, l, acc, s_a, v_a_ptr + i * va0 + h * va1 + cols * va2, cols < D)
            s_b = tl.load(s_b_ptr + i * sb0 + h * sb1)
            m, l, acc = fold(m, l, acc, s_b, v_b_ptr + i * vb0 + h * vb1 + cols * vb2, cols < D)
            scale, s = finish(m, l)
            at = i * vo0 + h * vo1 + cols * vo2
            tl.store(v_ptr + at, (acc * scale).to(v_ptr.dtype.element_ty), mask=cols < D)
            tl.store(s_ptr + i * so0 + h * so1, s)


def pair(v_a, s_a, v_b, s_b, v, s, mask):
    S, H, D = v_a.shape
    if S == 0:
        return
    pair_kernel[(min(PROGRAMS, S * H),)](
        v_a, s_a, v_b, s_b, v, s, s if mask is None else mask, S * H, H, D, 0 if mask is None else mask.stride(0),
        *v_a.stride(), *s_a.stride(), *v_b.stride(), *s_b.stride(), *v.stride(), *s.stride(),
        MASKED=mask is not None, BLOCK_D=triton.next_power_of_2(D),
    )  # fmt: skip


def merge_state(v_a, s_a, v_b, s_b):
    v = torch.empty(v_a.shape, dtype=v_a.dtype, device=v_a.device)
    s = torch.empty(s_a.shape, device=v_a.device)
    pair(v_a, s_a, v_b, s_b, v, s, None)
    return v, s


def merge_state_in_place(v, s, v_other, s_other, mask=None):
    pair(v, s, v_other, s_other, v, s, mask)
