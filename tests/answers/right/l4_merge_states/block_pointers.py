"""Block pointers with boundary checks in place of masks; the pair is merged by sigmoid-like weights."""

import torch
import triton
import triton.language as tl


@triton.jit
def pair(s_a, s_b):
    """The larger, the weights of both and the merged s, from the difference alone."""
    top = tl.maximum(s_a, s_b)
    low = tl.minimum(s_a, s_b)
    both_empty = top == float("-inf")
    gap = tl.where(both_empty, 0.0, low - top)  # ≤ 0, -inf where one is empty
    r = tl.exp2(gap)
    big = 1.0 / (1.0 + r)
    small = r / (1.0 + r)
    w_a = tl.where(s_a >= s_b, big, small)
    w_b = tl.where(s_a >= s_b, small, big)
    w_a = tl.where(s_a == float("-inf"), 0.0, w_a)
    w_b = tl.where(s_b == float("-inf"), 0.0, w_b)
    s = tl.where(both_empty, float("-inf"), top + tl.log2(1.0 + r))
    return w_a, w_b, s


@triton.jit
def pair_kernel(v_a, s_a, v_b, s_b, v, s, rows, D, R: tl.constexpr, C: tl.constexpr):
    r0 = tl.program_id(0) * R
    sa_block = tl.make_block_ptr(s_a, (rows,), (1,), (r0,), (R,), (0,))
    sb_block = tl.make_block_ptr(s_b, (rows,), (1,), (r0,), (R,), (0,))
    so_block = tl.make_block_ptr(s, (rows,), (1,), (r0,), (R,), (0,))
    x_a = tl.load(sa_block, boundary_check=(0,), padding_option="zero")
    x_b = tl.load(sb_block, boundary_check=(0,), padding_option="zero")
    w_a, w_b, merged = pair(x_a, x_b)
    tl.store(so_block, merged, boundary_check=(0,))
    for c0 in range(0, D, C):
        a_block = tl.make_block_ptr(v_a, (rows, D), (D, 1), (r0, c0), (R, C), (1, 0))
        b_block = tl.make_block_ptr(v_b, (rows, D), (D, 1), (r0, c0), (R, C), (1, 0))
        o_block = tl.make_block_ptr(v, (rows, D), (D, 1), (r0, c0), (R, C), (1, 0))
        a = tl.load(a_block, boundary_check=(0, 1), padding_option="zero").to(tl.float32)
        b = tl.load(b_block, boundary_check=(0, 1), padding_option="zero").to(tl.float32)
        a = tl.where((w_a == 0.0)[:, None], 0.0, a)
        b = tl.where((w_b == 0.0)[:, None], 0.0, b)
        o = w_a[:, None] * a + w_b[:, None] * b
        tl.store(o_block, o.to(v.dtype.element_ty), boundary_check=(0, 1))


def merge_state(v_a, s_a, v_b, s_b):
    S, H, D = v_a.shape
    v = torch.empty((S, H, D), dtype=v_a.dtype, device=v_a.device)
    s = torch.empty((S, H), dtype=torch.float32, device=v_a.device)
    if S * H:
        grid = (triton.cdiv(S * H, 4),)
        pair_kernel[grid](
            v_a.contiguous(), s_a.contiguous(), v_b.contiguous(), s_b.contiguous(), v, s, S * H, D, R=4, C=64
        )
    return v, s


@triton.jit
def in_place_kernel(
    v, s, v_b, s_b, mask, sv0, sv1, sv2, ss0, ss1, sb0, sb1, sb2, st0, st1, sm, D, MASKED: tl.constexpr, C: tl.constexpr
):
    i = tl.program_id(0).to(tl.int64)
    h = tl.program_id(1).to(tl.int64)
    if MASKED:
        wanted = tl.load(mask + i * sm)
    else:
        wanted = True
    if wanted:
        x_a = tl.load(s + i * ss0 + h * ss1)
        x_b = tl.load(s_b + i * st0 + h * st1)
        w_a, w_b, merged = pair(x_a, x_b)
        c = tl.arange(0, C)
        a = tl.load(v + i * sv0 + h * sv1 + c * sv2, mask=c < D, other=0.0).to(tl.float32)
        b = tl.load(v_b + i * sb0 + h * sb1 + c * sb2, mask=c < D, other=0.0).to(tl.float32)
        o = tl.where(w_a > 0, a * w_a, 0.0) + tl.where(w_b > 0, b * w_b, 0.0)
        tl.store(v + i * sv0 + h * sv1 + c * sv2, o.to(v.dtype.element_ty), mask=c < D)
        tl.store(s + i * ss0 + h * ss1, merged)


def merge_state_in_place(v, s, v_other, s_other, mask=None):
    S, H, D = v.shape
    if S * H == 0:
        return None
    in_place_kernel[(S, H)](
        v, s, v_other, s_other, mask,
        *v.stride(), *s.stride(), *v_other.stride(), *s_other.stride(), 0 if mask is None else mask.stride(0), D,
        MASKED=mask is not None, C=triton.next_power_of_2(D),
    )  # fmt: skip
    return None


@triton.jit
def states_kernel(v, s, v_out, s_out, H, N, D, B: tl.constexpr, C: tl.constexpr):
    i = tl.program_id(0).to(tl.int64)
    h = tl.program_id(1)
    first = (i * N * H + h).to(tl.int64)
    top = tl.full((), float("-inf"), tl.float32)
    for n0 in range(0, N, B):  # first pass: s alone
        s_block = tl.make_block_ptr(s + first, (N,), (H,), (n0,), (B,), (0,))
        x = tl.load(s_block, boundary_check=(0,), padding_option="zero")
        x = tl.where(n0 + tl.arange(0, B) < N, x, float("-inf"))
        top = tl.maximum(top, tl.max(x, 0))
    base = tl.where(top == float("-inf"), 0.0, top)
    total = tl.zeros((), tl.float32)
    acc = tl.zeros((C,), tl.float32)
    c = tl.arange(0, C)
    for n in range(0, N):  # second pass: s again, and each value once
        w = tl.exp2(tl.load(s + first + n * H) - base)
        x = tl.load(v + (first + n * H) * D + c, mask=c < D, other=0.0).to(tl.float32)
        acc += tl.where(w > 0, w * x, 0.0)
        total += w
    fine = tl.where(total > 0, total, 1.0)
    tl.store(v_out + (i * H + h) * D + c, (acc / fine).to(v_out.dtype.element_ty), mask=c < D)
    tl.store(s_out + i * H + h, tl.where(total > 0, base + tl.log2(fine), float("-inf")))


def merge_states(v, s):
    S, N, H, D = v.shape
    v_out = torch.zeros((S, H, D), dtype=v.dtype, device=v.device)
    s_out = torch.full((S, H), float("-inf"), device=v.device)
    if S * N * H:
        states_kernel[(S, H)](v.contiguous(), s.contiguous(), v_out, s_out, H, N, D, B=32, C=triton.next_power_of_2(D))
    return v_out, s_out


@triton.jit
def ragged_kernel(v, s, indptr, v_out, s_out, H, D, C: tl.constexpr):
    i = tl.program_id(0).to(tl.int64)
    h = tl.program_id(1)
    lo = tl.load(indptr + i).to(tl.int64)
    hi = tl.load(indptr + i + 1).to(tl.int64)
    top = tl.full((), float("-inf"), tl.float32)
    for r in range(lo, hi):
        top = tl.maximum(top, tl.load(s + r * H + h))
    base = tl.where(top == float("-inf"), 0.0, top)
    total = tl.zeros((), tl.float32)
    acc = tl.zeros((C,), tl.float32)
    c = tl.arange(0, C)
    for r in range(lo, hi):
        w = tl.exp2(tl.load(s + r * H + h) - base)
        x = tl.load(v + (r * H + h) * D + c, mask=(c < D) & (w > 0), other=0.0).to(tl.float32)
        acc += w * x
        total += w
    fine = tl.where(total > 0, total, 1.0)
    tl.store(v_out + (i * H + h) * D + c, (acc / fine).to(v_out.dtype.element_ty), mask=c < D)
    tl.store(s_out + i * H + h, tl.where(total > 0, base + tl.log2(fine), float("-inf")))


def variable_length_merge_states(v, s, indptr):
    S = indptr.shape[0] - 1
    _, H, D = v.shape
    v_out = torch.empty((S, H, D), dtype=v.dtype, device=v.device)
    s_out = torch.empty((S, H), dtype=torch.float32, device=v.device)
    if S * H:
        ragged_kernel[(S, H)](
            v.contiguous(), s.contiguous(), indptr.contiguous(), v_out, s_out, H, D, C=triton.next_power_of_2(D)
        )
    return v_out, s_out
