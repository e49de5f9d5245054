"""The columns are split over programs: each block recomputes the weights, the first block alone stores s."""

import torch
import triton
import triton.language as tl


@triton.jit
def ragged_block_kernel(
    v_ptr,  # [M, H, D] by strides
    s_ptr,  # [M, H] by strides
    indptr_ptr,  # [S + 1], or unused
    v_out_ptr,  # [S, H, D]
    s_out_ptr,  # [S, H]
    N, H, D, v_i, v_n, v_h, v_d, s_i, s_n, s_h, indptr_stride,
    RAGGED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    i = tl.program_id(0).to(tl.int64)
    h = tl.program_id(1).to(tl.int64)
    block = tl.program_id(2)
    d = block * BLOCK + tl.arange(0, BLOCK)
    v_row = v_ptr + h * v_h
    s_row = s_ptr + h * s_h
    if RAGGED:
        first = tl.load(indptr_ptr + i * indptr_stride).to(tl.int64)
        last = tl.load(indptr_ptr + (i + 1) * indptr_stride).to(tl.int64)
        v_row += first * v_n
        s_row += first * s_n
        count = last - first
    else:
        v_row += i * v_i
        s_row += i * s_i
        count = tl.full((), 0, tl.int64) + N
    m = tl.full((), float("-inf"), tl.float32)
    l = tl.full((), 0.0, tl.float32)
    acc = tl.zeros((BLOCK,), tl.float32)
    n = tl.full((), 0, tl.int64)
    while n < count:
        s = tl.load(s_row + n * s_n)
        if s > float("-inf"):
            if s > m:
                keep = tl.exp2(m - s)
                acc *= keep
                l *= keep
                m = s
            w = tl.exp2(s - m)
            acc += w * tl.load(v_row + n * v_n + d * v_d, mask=d < D, other=0.0).to(tl.float32)
            l += w
        n += 1
    out = i * H + h
    if l > 0:
        acc = acc / l
    tl.store(v_out_ptr + out * D + d, acc.to(v_out_ptr.dtype.element_ty), mask=d < D)
    if block == 0:
        tl.store(s_out_ptr + out, m + tl.log2(l))


def run(v, s, indptr, S, N, strides):
    H, D = v.shape[-2], v.shape[-1]
    v_out = v.new_empty((S, H, D))
    s_out = s.new_empty((S, H), dtype=torch.float32)
    if S == 0:
        return v_out, s_out
    block = min(128, triton.next_power_of_2(D))
    ragged_block_kernel[(S, H, triton.cdiv(D, block))](
        v, s, indptr if indptr is not None else s, v_out, s_out, N, H, D, *strides,
        0 if indptr is None else indptr.stride(0), RAGGED=indptr is not None, BLOCK=block, num_warps=2,
    )  # fmt: skip
    return v_out, s_out


def merge_states(v, s):
    S, N, _, _ = v.shape
    return run(v, s, None, S, N, (*v.stride(), *s.stride()))


def variable_length_merge_states(v, s, indptr):
    return run(v, s, indptr, indptr.shape[0] - 1, 0, (0, *v.stride(), 0, *s.stride()))


@triton.jit
def pair_block_kernel(a_ptr, sa_ptr, b_ptr, sb_ptr, o_ptr, so_ptr, H, D, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    block = tl.program_id(1)
    d = block * BLOCK + tl.arange(0, BLOCK)
    sa = tl.load(sa_ptr + row)
    sb = tl.load(sb_ptr + row)
    o = tl.zeros((BLOCK,), tl.float32)
    so = float("-inf")
    m = tl.maximum(sa, sb)
    if m > float("-inf"):
        wa = tl.exp2(sa - m)
        wb = tl.exp2(sb - m)
        if wa > 0:
            o += wa * tl.load(a_ptr + row * D + d, mask=d < D, other=0.0).to(tl.float32)
        if wb > 0:
            o += wb * tl.load(b_ptr + row * D + d, mask=d < D, other=0.0).to(tl.float32)
        o /= wa + wb
        so = m + tl.log2(wa + wb)
    tl.store(o_ptr + row * D + d, o.to(o_ptr.dtype.element_ty), mask=d < D)
    if block == 0:
        tl.store(so_ptr + row, so)


def merge_state(v_a, s_a, v_b, s_b):
    S, H, D = v_a.shape
    v = torch.empty_like(v_a, memory_format=torch.contiguous_format)
    s = torch.empty_like(s_a, memory_format=torch.contiguous_format)
    if S:
        block = min(128, triton.next_power_of_2(D))
        pair_block_kernel[(S * H, triton.cdiv(D, block))](
            v_a.contiguous(), s_a.contiguous(), v_b.contiguous(), s_b.contiguous(), v, s, H, D, BLOCK=block
        )
    return v, s


def merge_state_in_place(v, s, v_other, s_other, mask=None):
    """Merged into fresh memory, then copied back where the mask allows, by a second kernel."""
    S, H, D = v.shape
    if S == 0:
        return
    v_new, s_new = merge_state(v, s, v_other, s_other)
    keep = torch.ones((1,), dtype=torch.bool, device=v.device) if mask is None else mask
    step = 0 if mask is None else mask.stride(0)
    put_back_kernel[(S, H)](
        v_new, s_new, v, s, keep, step, *v.stride(), *s.stride(), H, D, BLOCK=triton.next_power_of_2(D)
    )


@triton.jit
def put_back_kernel(
    v_new_ptr, s_new_ptr, v_ptr, s_ptr, keep_ptr, keep_s, v_s, v_h, v_d, s_s, s_h, H, D, BLOCK: tl.constexpr
):
    i = tl.program_id(0).to(tl.int64)
    h = tl.program_id(1).to(tl.int64)
    d = tl.arange(0, BLOCK)
    on = tl.load(keep_ptr + i * keep_s)
    v = tl.load(v_new_ptr + (i * H + h) * D + d, mask=(d < D) & on, other=0.0)
    tl.store(v_ptr + i * v_s + h * v_h + d * v_d, v, mask=(d < D) & on)
    tl.store(s_ptr + i * s_s + h * s_h, tl.load(s_new_ptr + i * H + h), mask=on)
