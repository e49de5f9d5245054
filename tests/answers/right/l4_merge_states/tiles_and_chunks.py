"""Two-dimensional tiles: rows x columns for a pair, states x columns for many, in chunks of N."""

import torch
import triton
import triton.language as tl

NEG_INF = float("-inf")


@triton.jit
def weights_of_pair(s_a, s_b):
    m = tl.maximum(s_a, s_b)
    m = tl.where(m == float("-inf"), 0.0, m)
    return m, tl.exp2(s_a - m), tl.exp2(s_b - m)


@triton.jit
def pair_kernel(
    v_a_ptr, s_a_ptr, v_b_ptr, s_b_ptr, v_ptr, s_ptr, mask_ptr,
    rows, H, D,
    a_s, a_h, a_d, sa_s, sa_h, b_s, b_h, b_d, sb_s, sb_h, o_s, o_h, o_d, so_s, so_h, mask_s,
    HAS_MASK: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    live = row < rows
    i = row // H
    h = row % H
    if HAS_MASK:
        live = live & (tl.load(mask_ptr + i * mask_s, mask=live, other=0) != 0)
    s_a = tl.load(s_a_ptr + i * sa_s + h * sa_h, mask=live, other=float("-inf"))
    s_b = tl.load(s_b_ptr + i * sb_s + h * sb_h, mask=live, other=float("-inf"))
    m, w_a, w_b = weights_of_pair(s_a, s_b)
    total = w_a + w_b
    safe = tl.where(total == 0.0, 1.0, total)
    for start in range(0, D, COLS):
        d = (start + tl.arange(0, COLS))[None, :]
        inside = live[:, None] & (d < D)
        at_a = (i * a_s + h * a_h)[:, None] + d * a_d
        at_b = (i * b_s + h * b_h)[:, None] + d * b_d
        at_o = (i * o_s + h * o_h)[:, None] + d * o_d
        a = tl.load(v_a_ptr + at_a, mask=inside & (w_a != 0.0)[:, None], other=0.0).to(tl.float32)
        b = tl.load(v_b_ptr + at_b, mask=inside & (w_b != 0.0)[:, None], other=0.0).to(tl.float32)
        o = a * (w_a / safe)[:, None] + b * (w_b / safe)[:, None]
        tl.store(v_ptr + at_o, o.to(v_ptr.dtype.element_ty), mask=inside)
    s = tl.where(total == 0.0, float("-inf"), m + tl.log2(safe))
    tl.store(s_ptr + i * so_s + h * so_h, s, mask=live)


def merge_into(v_a, s_a, v_b, s_b, v, s, mask=None):
    S, H, D = v_a.shape
    rows = S * H
    if rows == 0:
        return
    ROWS = 8
    pair_kernel[(triton.cdiv(rows, ROWS),)](
        v_a, s_a, v_b, s_b, v, s, s_a if mask is None else mask, rows, H, D,
        *v_a.stride(), *s_a.stride(), *v_b.stride(), *s_b.stride(), *v.stride(), *s.stride(),
        0 if mask is None else mask.stride(0),
        HAS_MASK=mask is not None, ROWS=ROWS, COLS=min(128, triton.next_power_of_2(D)),
    )  # fmt: skip


def merge_state(v_a, s_a, v_b, s_b):
    v = torch.empty(v_a.shape, dtype=v_a.dtype, device=v_a.device)
    s = torch.empty(s_a.shape, dtype=torch.float32, device=v_a.device)
    merge_into(v_a, s_a, v_b, s_b, v, s)
    return v, s


def merge_state_in_place(v, s, v_other, s_other, mask=None):
    merge_into(v, s, v_other, s_other, v, s, mask)


@triton.jit
def many_kernel(
    v_ptr, s_ptr, indptr_ptr, v_out_ptr, s_out_ptr, N, H, D,
    RAGGED: tl.constexpr, PARTS: tl.constexpr, COLS: tl.constexpr,
):  # fmt: skip
    i = tl.program_id(0).to(tl.int64)
    h = tl.program_id(1)
    d = tl.arange(0, COLS)
    if RAGGED:
        first = tl.load(indptr_ptr + i).to(tl.int64)
        count = (tl.load(indptr_ptr + i + 1) - tl.load(indptr_ptr + i)).to(tl.int32)
    else:
        first = i * N
        count = N
    m = tl.full([], float("-inf"), tl.float32)
    l = tl.full([], 0.0, tl.float32)
    acc = tl.zeros([COLS], tl.float32)
    for start in range(0, count, PARTS):
        n = start + tl.arange(0, PARTS)
        at = (first + n) * H + h
        s = tl.load(s_ptr + at, mask=n < count, other=float("-inf"))
        m_new = tl.maximum(m, tl.max(s, axis=0))
        safe_m = tl.where(m_new == float("-inf"), 0.0, m_new)
        w = tl.exp2(s - safe_m)
        scale = tl.exp2(m - safe_m)
        used = (w > 0.0)[:, None] & (d < D)[None, :]
        v = tl.load(v_ptr + at[:, None] * D + d[None, :], mask=used, other=0.0).to(tl.float32)
        acc = acc * scale + tl.sum(v * w[:, None], axis=0)
        l = l * scale + tl.sum(w, axis=0)
        m = m_new
    safe_l = tl.where(l > 0.0, l, 1.0)
    tl.store(v_out_ptr + (i * H + h) * D + d, acc / safe_l, mask=d < D)
    tl.store(s_out_ptr + i * H + h, tl.where(l > 0.0, m + tl.log2(safe_l), float("-inf")))


def many(v, s, indptr, S, N):
    H, D = v.shape[-2:]
    v, s = v.contiguous(), s.contiguous()
    v_out = torch.empty((S, H, D), dtype=v.dtype, device=v.device)
    s_out = torch.empty((S, H), dtype=torch.float32, device=v.device)
    if S > 0:
        many_kernel[(S, H)](
            v, s, s if indptr is None else indptr.contiguous(), v_out, s_out, N, H, D,
            RAGGED=indptr is not None, PARTS=16, COLS=triton.next_power_of_2(D),
        )  # fmt: skip
    return v_out, s_out


def merge_states(v, s):
    return many(v, s, None, v.shape[0], v.shape[1])


def variable_length_merge_states(v, s, indptr):
    return many(v, s, indptr, indptr.numel() - 1, 0)
