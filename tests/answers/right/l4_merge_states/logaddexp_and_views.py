"""States joined as shares of two, s by log-sum-exp; every tensor by strides of its own; a grid of three axes."""

import torch
import triton
import triton.language as tl

EMPTY = tl.constexpr(float("-inf"))


@triton.jit
def logaddexp2(a, b):
    top = tl.maximum(a, b)
    safe = tl.where(top == EMPTY, 0.0, top)
    return tl.where(top == EMPTY, EMPTY, safe + tl.log2(tl.exp2(a - safe) + tl.exp2(b - safe)))


@triton.jit
def mixed(v_a, s_a, v_b, s_b):
    """Two states by their distance: of a and b the further one weighs 2^-distance against 1."""
    top = tl.maximum(s_a, s_b)
    shift = tl.where(top == EMPTY, 0.0, top)
    w_a, w_b = tl.exp2(s_a - shift), tl.exp2(s_b - shift)
    v_a, v_b = tl.where(w_a > 0, v_a, 0.0), tl.where(w_b > 0, v_b, 0.0)
    share = w_b / tl.where(top == EMPTY, 1.0, w_a + w_b)
    return v_a * (w_a / tl.where(top == EMPTY, 1.0, w_a + w_b)) + v_b * share, logaddexp2(s_a, s_b)


@triton.jit
def pair_kernel(
    va_ptr, sa_ptr, vb_ptr, sb_ptr, v_ptr, s_ptr, mask_ptr,
    a_s, a_h, a_d, b_s, b_h, b_d, o_s, o_h, o_d, sa_s, sa_h, sb_s, sb_h, so_s, so_h, mask_s, D,
    MASKED: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """Grid (heads, positions): whole rows, every tensor by strides of its own, results too."""
    h = tl.program_id(0).to(tl.int64)
    p = tl.program_id(1).to(tl.int64)
    if MASKED:
        if tl.load(mask_ptr + p * mask_s) == 0:
            return
    d = tl.arange(0, WIDTH).to(tl.int64)
    s_a = tl.load(sa_ptr + p * sa_s + h * sa_h)
    s_b = tl.load(sb_ptr + p * sb_s + h * sb_h)
    v_a = tl.load(va_ptr + p * a_s + h * a_h + d * a_d, mask=d < D, other=0.0).to(tl.float32)
    v_b = tl.load(vb_ptr + p * b_s + h * b_h + d * b_d, mask=d < D, other=0.0).to(tl.float32)
    v, s = mixed(v_a, s_a, v_b, s_b)
    tl.debug_barrier()
    tl.store(v_ptr + p * o_s + h * o_h + d * o_d, v.to(v_ptr.dtype.element_ty), mask=d < D)
    tl.store(s_ptr + p * so_s + h * so_h, s)


def launch_pair(v_a, s_a, v_b, s_b, v, s, mask=None):
    S, H, D = v.shape
    strides = [step for x in (v_a, v_b, v, s_a, s_b, s) for step in x.stride()]
    constants = {"MASKED": mask is not None, "WIDTH": triton.next_power_of_2(D), "num_warps": 1}
    if S:
        step = 0 if mask is None else mask.stride(0)
        pair_kernel[(H, S)](v_a, s_a, v_b, s_b, v, s, s if mask is None else mask, *strides, step, D, **constants)


def merge_state(v_a, s_a, v_b, s_b):
    v = torch.empty(v_a.shape, dtype=v_a.dtype, device=v_a.device)
    s = torch.empty(s_a.shape, dtype=s_a.dtype, device=s_a.device)
    launch_pair(v_a, s_a, v_b, s_b, v, s)
    return v, s


def merge_state_in_place(v, s, v_other, s_other, mask=None):
    launch_pair(v, s, v_other, s_other, v, s, mask)


@triton.jit
def fold_kernel(
    v_ptr, s_ptr, begins_ptr, v_out_ptr, s_out_ptr, N, H, D, RUNS: tl.constexpr, STATES: tl.constexpr, WIDTH: tl.constexpr
):  # fmt: skip
    """Grid (positions, heads, blocks of columns). STATES states a step become one, and that is mixed with what is."""
    p = tl.program_id(0).to(tl.int64)
    h = tl.program_id(1)
    d = tl.program_id(2) * WIDTH + tl.arange(0, WIDTH)
    if RUNS:
        begin = tl.load(begins_ptr + p).to(tl.int64)
        end = tl.load(begins_ptr + p + 1).to(tl.int64)
    else:
        begin = p * N
        end = begin + N
    if begin >= end:
        return
    v = tl.zeros([WIDTH], tl.float32)
    s = tl.full([], EMPTY, tl.float32)
    at = begin
    while at < end:
        state = at + tl.arange(0, STATES)
        s_n = tl.load(s_ptr + state * H + h, mask=state < end, other=EMPTY)
        top = tl.max(s_n, 0)
        if top > EMPTY:
            w = tl.exp2(s_n - top)
            live = (w > 0)[:, None] & (d < D)[None, :]
            v_n = tl.load(v_ptr + (state * H + h)[:, None] * D + d[None, :], mask=live, other=0.0).to(tl.float32)
            total = tl.sum(w, 0)
            v, s = mixed(v, s, tl.sum(v_n * w[:, None], 0) / total, top + tl.log2(total))
        at += STATES
    tl.store(v_out_ptr + (p * H + h) * D + d, v.to(v_out_ptr.dtype.element_ty), mask=d < D)
    if tl.program_id(2) == 0:
        tl.store(s_out_ptr + p * H + h, s)


def fold(v, s, begins, S, N):
    H, D = v.shape[-2:]
    v_out = torch.zeros((S, H, D), dtype=v.dtype, device=v.device)
    s_out = torch.full((S, H), float("-inf"), device=v.device)
    if S and v.numel():
        width = min(128, triton.next_power_of_2(D))
        grid = S, H, triton.cdiv(D, width)
        runs = begins is not None
        fold_kernel[grid](
            v.contiguous(), s.contiguous(), begins if runs else s_out, v_out, s_out, N, H, D, runs, 4, width
        )
    return v_out, s_out


def merge_states(v, s):
    return fold(v, s, None, v.shape[0], v.shape[1])


def variable_length_merge_states(v, s, indptr):
    return fold(v, s, indptr.contiguous(), len(indptr) - 1, 0)
