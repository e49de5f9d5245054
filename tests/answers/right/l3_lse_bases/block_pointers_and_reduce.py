"""Block pointers; lanes that add up on their own and meet in a tl.reduce; every key a state, and states are joined."""

import torch
import triton
import triton.language as tl

LOG2E = tl.constexpr(1.4426950408889634)


@triton.jit
def add2(m_a, l_a, m_b, l_b):
    """2^m_a * l_a + 2^m_b * l_b as one (m, l); (-inf, 0) is neutral."""
    m = tl.maximum(m_a, m_b)
    base = tl.where(m == float("-inf"), 0.0, m)
    return m, l_a * tl.exp2(m_a - base) + l_b * tl.exp2(m_b - base)


@triton.jit
def adde(m_a, l_a, m_b, l_b):
    """e^m_a * l_a + e^m_b * l_b as one (m, l); (-inf, 0) is neutral."""
    m = tl.maximum(m_a, m_b)
    base = tl.where(m == float("-inf"), 0.0, m)
    return m, l_a * tl.exp(m_a - base) + l_b * tl.exp(m_b - base)


@triton.jit
def natural_rows_kernel(x_ptr, out_ptr, N, stride_row, stride_col, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    m = tl.full((BLOCK,), float("-inf"), tl.float32)  # a lane adds up a column of its own
    l = tl.zeros((BLOCK,), tl.float32)
    block = tl.make_block_ptr(x_ptr + row.to(tl.int64) * stride_row, (N,), (stride_col,), (0,), (BLOCK,), (0,))
    for start in range(0, N, BLOCK):
        x = tl.load(block, boundary_check=(0,), padding_option="zero").to(tl.float32)
        x = tl.where(start + tl.arange(0, BLOCK) < N, x, float("-inf"))
        m, l = adde(m, l, x, tl.full((BLOCK,), 1.0, tl.float32))
        block = tl.advance(block, (BLOCK,))
    m_row, l_row = tl.reduce((m, l), 0, adde)
    tl.store(out_ptr + row, m_row + tl.log(tl.maximum(l_row, 1.0)))  # l is at least 1 unless the row is empty


@triton.jit
def base_2_rows_kernel(x_ptr, out_ptr, N, stride_row, stride_col, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    m = tl.full((BLOCK,), float("-inf"), tl.float32)
    l = tl.zeros((BLOCK,), tl.float32)
    block = tl.make_block_ptr(x_ptr + row.to(tl.int64) * stride_row, (N,), (stride_col,), (0,), (BLOCK,), (0,))
    for start in range(0, N, BLOCK):
        x = tl.load(block, boundary_check=(0,), padding_option="zero").to(tl.float32) * LOG2E
        x = tl.where(start + tl.arange(0, BLOCK) < N, x, float("-inf"))
        m, l = add2(m, l, x, tl.full((BLOCK,), 1.0, tl.float32))
        block = tl.advance(block, (BLOCK,))
    m_row, l_row = tl.reduce((m, l), 0, add2)
    tl.store(out_ptr + row, m_row + tl.log2(tl.maximum(l_row, 1.0)))


def lse(x):
    out = x.new_empty(x.shape[0], dtype=torch.float32)
    if x.shape[0]:
        natural_rows_kernel[(x.shape[0],)](x, out, x.shape[1], x.stride(0), x.stride(1), BLOCK=64)
    return out


def lse2(x):
    out = x.new_empty(x.shape[0], dtype=torch.float32)
    if x.shape[0]:
        base_2_rows_kernel[(x.shape[0],)](x, out, x.shape[1], x.stride(0), x.stride(1), BLOCK=64)
    return out


@triton.jit
def natural_kernel(o_a_ptr, lse_a_ptr, o_b_ptr, lse_b_ptr, o_ptr, lse_ptr, rows, D, R: tl.constexpr, C: tl.constexpr):
    r0 = tl.program_id(0) * R
    a = tl.load(tl.make_block_ptr(lse_a_ptr, (rows,), (1,), (r0,), (R,), (0,)), boundary_check=(0,))
    b = tl.load(tl.make_block_ptr(lse_b_ptr, (rows,), (1,), (r0,), (R,), (0,)), boundary_check=(0,))
    top = tl.maximum(a, b)
    p = tl.where(a == float("-inf"), 0.0, 1.0 / (1.0 + tl.exp(b - a)))  # the logistic function of a - b
    q = tl.where(b == float("-inf"), 0.0, 1.0 / (1.0 + tl.exp(a - b)))
    p = tl.where(b == float("-inf"), tl.where(a == float("-inf"), 0.0, 1.0), p)
    q = tl.where(a == float("-inf"), tl.where(b == float("-inf"), 0.0, 1.0), q)
    merged = top + tl.log(1.0 + tl.where(top == float("-inf"), 0.0, tl.exp(tl.minimum(a, b) - top)))
    tl.store(tl.make_block_ptr(lse_ptr, (rows,), (1,), (r0,), (R,), (0,)), merged, boundary_check=(0,))
    c0 = tl.program_id(1) * C
    o_a = tl.load(tl.make_block_ptr(o_a_ptr, (rows, D), (D, 1), (r0, c0), (R, C), (1, 0)), boundary_check=(0, 1))
    o_b = tl.load(tl.make_block_ptr(o_b_ptr, (rows, D), (D, 1), (r0, c0), (R, C), (1, 0)), boundary_check=(0, 1))
    o_a = tl.where(p[:, None] > 0.0, o_a.to(tl.float32) * p[:, None], 0.0)
    o_b = tl.where(q[:, None] > 0.0, o_b.to(tl.float32) * q[:, None], 0.0)
    o_block = tl.make_block_ptr(o_ptr, (rows, D), (D, 1), (r0, c0), (R, C), (1, 0))
    tl.store(o_block, (o_a + o_b).to(o_ptr.dtype.element_ty), boundary_check=(0, 1))


def merge_natural(o_a, lse_a, o_b, lse_b):
    S, H, D = o_a.shape
    o = o_a.new_empty(S, H, D)
    lse = lse_a.new_empty(S, H)
    if S:
        inputs = [t.contiguous() for t in (o_a, lse_a, o_b, lse_b)]
        natural_kernel[(triton.cdiv(S * H, 4), 1)](*inputs, o, lse, S * H, D, R=4, C=triton.next_power_of_2(D))
    return o, lse


@triton.jit
def turn_kernel(lse_ptr, s_ptr, H, T, stride_h, stride_t, R: tl.constexpr, C: tl.constexpr):
    t0 = tl.program_id(0) * R
    h0 = tl.program_id(1) * C
    source = tl.make_block_ptr(lse_ptr, (T, H), (stride_t, stride_h), (t0, h0), (R, C), (0, 1))
    x = tl.load(source, boundary_check=(0, 1), padding_option="zero")
    x = tl.where(x == float("inf"), -x, x)
    target = tl.make_block_ptr(s_ptr, (T, H), (H, 1), (t0, h0), (R, C), (1, 0))
    tl.store(target, x * LOG2E, boundary_check=(0, 1))


def to_flashinfer(lse):
    H, T = lse.shape
    s = torch.empty((T, H), dtype=torch.float32, device=lse.device)
    if s.numel():
        grid = (triton.cdiv(T, 16), triton.cdiv(H, 8))
        turn_kernel[grid](lse, s, H, T, lse.stride(0), lse.stride(1), R=16, C=8)
    return s


@triton.jit
def join(s_a, v_a, s_b, v_b):
    """Two states of one lane as one, v normalized in both."""
    top = tl.maximum(s_a, s_b)
    base = tl.where(top == float("-inf"), 0.0, top)
    a = tl.exp2(s_a - base)
    b = tl.exp2(s_b - base)
    total = tl.where(top == float("-inf"), 1.0, a + b)
    return top + tl.log2(total), (a * v_a + b * v_b) / total


@triton.jit
def states_kernel(
    q_ptr, k_ptr, v_ptr, v_out_ptr, s_out_ptr, N, H, L, T, D, scale, k0, k1, k2, v0, v1, v2,
    B: tl.constexpr, C: tl.constexpr,
):  # fmt: skip
    """Every key is a state (v, s = its score). B lanes merge theirs one by one, and are merged with each other last."""
    i = tl.program_id(0)
    h = tl.program_id(1).to(tl.int64)
    part = tl.program_id(2)
    first = tl.minimum(part * T, L)
    count = tl.minimum(first + T, L) - first
    c = tl.arange(0, C)
    q = tl.load(q_ptr + (i.to(tl.int64) * H + h) * D + c, mask=c < D, other=0.0).to(tl.float32) * scale
    k_at = k_ptr + first.to(tl.int64) * k0 + h * k1
    v_at = v_ptr + first.to(tl.int64) * v0 + h * v1
    s = tl.full((B, 1), float("-inf"), tl.float32)
    v = tl.zeros((B, C), tl.float32)
    for start in range(0, count, B):
        k_block = tl.make_block_ptr(k_at, (count, D), (k0, k2), (start, 0), (B, C), (1, 0))
        v_block = tl.make_block_ptr(v_at, (count, D), (v0, v2), (start, 0), (B, C), (1, 0))
        k = tl.load(k_block, boundary_check=(0, 1), padding_option="zero").to(tl.float32)
        x = tl.sum(q[None, :] * k, 1) * LOG2E
        x = tl.where(start + tl.arange(0, B) < count, x, float("-inf"))
        u = tl.load(v_block, boundary_check=(0, 1), padding_option="zero").to(tl.float32)
        s, v = join(s, v, x[:, None], u)
    s_lane = tl.reshape(s, (B,))
    m, l = tl.reduce((s_lane, tl.where(s_lane == float("-inf"), 0.0, 1.0)), 0, add2)
    whole = m + tl.log2(tl.maximum(l, 1.0))
    share = tl.where(s_lane == float("-inf"), 0.0, tl.exp2(s_lane - whole))
    row = (i.to(tl.int64) * N + part) * H + h
    tl.store(s_out_ptr + row, whole)
    tl.store(v_out_ptr + row * D + c, tl.sum(share[:, None] * v, 0), mask=c < D)


def partial_states(q, k, v, num_splits, scale=None):
    (S, H, D), L = q.shape, k.shape[0]
    v_out = torch.empty((S, num_splits, H, D), dtype=torch.float32, device=q.device)
    s_out = torch.empty((S, num_splits, H), dtype=torch.float32, device=q.device)
    if S:
        states_kernel[(S, H, num_splits)](
            q.contiguous(), k, v, v_out, s_out, num_splits, H, L, triton.cdiv(L, num_splits), D,
            D**-0.5 if scale is None else scale, *k.stride(), *v.stride(), B=8, C=triton.next_power_of_2(D),
        )  # fmt: skip
    return v_out, s_out
