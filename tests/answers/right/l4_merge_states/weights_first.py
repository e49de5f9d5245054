"""Weights first, from two reads of s, then the values; block pointers over runs; programs that walk over positions."""

import torch
import triton
import triton.language as tl


@triton.jit
def larger_first(s_a, s_b):
    """The weights of two states, and their s."""
    high, low = tl.maximum(s_a, s_b), tl.minimum(s_a, s_b)
    empty = high == float("-inf")
    ratio = tl.where(low == float("-inf"), 0.0, tl.exp2(low - tl.where(empty, 0.0, high)))
    first = tl.where(empty, 0.0, 1.0 / (1.0 + ratio))
    second = ratio * first
    return tl.where(s_a >= s_b, first, second), tl.where(s_a >= s_b, second, first), high + tl.log2(1.0 + ratio)


@triton.jit
def two_kernel(v_a, s_a, v_b, s_b, mask, v, s, S, H, D, va_s, va_h, va_d, sa_s, sa_h, vb_s, vb_h, vb_d, sb_s, sb_h,
               v_s, v_h, v_d, s_s, s_h, mask_s, HEADS: tl.constexpr, WIDE: tl.constexpr):  # fmt: skip
    """Positions p, p + programs, ...; all heads of each, HEADS at a time. v_a and v may be the same tensor."""
    for p in range(tl.program_id(0), S, tl.num_programs(0)):
        position = p.to(tl.int64)
        live = True
        if mask is not None:
            live = tl.load(mask + position * mask_s)
        if live:
            for start in range(0, H, HEADS):
                head = (start + tl.arange(0, HEADS)).to(tl.int64)
                ok = head < H
                a = tl.load(s_a + position * sa_s + head * sa_h, mask=ok, other=float("-inf"))
                b = tl.load(s_b + position * sb_s + head * sb_h, mask=ok, other=float("-inf"))
                w_a, w_b, merged = larger_first(a, b)
                for column in range(0, D, WIDE):
                    d = (column + tl.arange(0, WIDE)).to(tl.int64)
                    inside = ok[:, None] & (d < D)[None, :]
                    at_a = v_a + position * va_s + head[:, None] * va_h + d[None, :] * va_d
                    at_b = v_b + position * vb_s + head[:, None] * vb_h + d[None, :] * vb_d
                    x = tl.load(at_a, mask=inside & (w_a > 0)[:, None], other=0.0).to(tl.float32)
                    y = tl.load(at_b, mask=inside & (w_b > 0)[:, None], other=0.0).to(tl.float32)
                    mixed = (x * w_a[:, None] + y * w_b[:, None]).to(v.dtype.element_ty)
                    tl.store(v + position * v_s + head[:, None] * v_h + d[None, :] * v_d, mixed, mask=inside)
                tl.debug_barrier()
                tl.store(s + position * s_s + head * s_h, merged, mask=ok)


def two(v_a, s_a, v_b, s_b, mask, v, s):
    S, H, D = v.shape
    if S:
        two_kernel[(min(S, 24),)](
            v_a, s_a, v_b, s_b, mask, v, s, S, H, D, *v_a.stride(), *s_a.stride(), *v_b.stride(), *s_b.stride(),
            *v.stride(), *s.stride(), 0 if mask is None else mask.stride(0), HEADS=4, WIDE=128,
        )  # fmt: skip


def merge_state(v_a, s_a, v_b, s_b):
    v = torch.empty(v_a.shape, dtype=v_a.dtype, device=v_a.device)
    s = torch.empty(s_a.shape, dtype=torch.float32, device=s_a.device)
    two(v_a, s_a, v_b, s_b, None, v, s)
    return v, s


def merge_state_in_place(v, s, v_other, s_other, mask=None):
    two(v, s, v_other, s_other, mask, v, s)


@triton.jit
def run_kernel(v, s, bounds, v_out, s_out, N, H, D, STEP: tl.constexpr, WIDE: tl.constexpr):
    """A program merges one run for one head: rows bounds[p] to bounds[p + 1], or p * N to (p + 1) * N."""
    p = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1).to(tl.int64)
    if bounds is not None:
        begin = tl.load(bounds + p).to(tl.int64)
        count = (tl.load(bounds + p + 1) - tl.load(bounds + p)).to(tl.int32)
    else:
        begin = p * N
        count = N
    # First read of s: the largest, and the sum of the weights.
    m = tl.full([STEP], float("-inf"), tl.float32)
    total = tl.zeros([STEP], tl.float32)
    for start in range(0, count, STEP):
        n = start + tl.arange(0, STEP)
        x = tl.load(s + (begin + n) * H + head, mask=n < count, other=float("-inf"))
        top = tl.maximum(m, x)
        shift = tl.where(top == float("-inf"), 0.0, top)
        total = total * tl.exp2(m - shift) + tl.exp2(x - shift)
        m = top
    top = tl.max(m, 0)
    shift = tl.where(top == float("-inf"), 0.0, top)
    whole = tl.sum(total * tl.exp2(m - shift), 0)
    whole = tl.where(whole > 0, whole, 1.0)
    out = p * H + head
    if tl.program_id(2) == 0:
        tl.store(s_out + out, top + tl.log2(whole))
    # Second read of s: the weights are final, so nothing is rescaled.
    acc = tl.zeros([WIDE], tl.float32)
    column = tl.program_id(2) * WIDE
    values = tl.make_block_ptr(v + begin * H * D + head * D, (count, D), (H * D, 1), (0, column), (STEP, WIDE), (1, 0))
    for start in range(0, count, STEP):
        n = start + tl.arange(0, STEP)
        w = tl.exp2(tl.load(s + (begin + n) * H + head, mask=n < count, other=float("-inf")) - shift) / whole
        tile = tl.load(values, boundary_check=(0, 1), padding_option="zero").to(tl.float32)
        acc += tl.sum(tl.where((w > 0)[:, None], tile * w[:, None], 0.0), 0)
        values = tl.advance(values, (STEP, 0))
    d = column + tl.arange(0, WIDE)
    tl.store(v_out + out * D + d, acc.to(v_out.dtype.element_ty), mask=d < D)


def run(v, s, bounds, S, N, H, D):
    v_out = torch.empty((S, H, D), dtype=v.dtype, device=v.device)
    s_out = torch.empty((S, H), dtype=torch.float32, device=v.device)
    if S:
        wide = min(128, triton.next_power_of_2(D))
        run_kernel[(S, H, triton.cdiv(D, wide))](
            v.contiguous(), s.contiguous(), bounds, v_out, s_out, N, H, D, STEP=16, WIDE=wide
        )
    return v_out, s_out


def merge_states(v, s):
    S, N, H, D = v.shape
    return run(v, s, None, S, N, H, D)


def variable_length_merge_states(v, s, indptr):
    _, H, D = v.shape
    return run(v, s, indptr.contiguous(), indptr.shape[0] - 1, 0, H, D)
