"""A few programs that walk over all rows, kernels that return early, results filled ahead, constants in a dictionary."""

import torch
import triton
import triton.language as tl

PROGRAMS = 5
EXP = tl.constexpr(0)
EXP2 = tl.constexpr(1)
LOG2E = tl.constexpr(1.4426950408889634)
LN2 = tl.constexpr(0.6931471805599453)


@triton.jit
def larger(a, b):
    return tl.maximum(a, b)


@triton.jit
def plus(a, b):
    return a + b


@triton.jit
def walk_kernel(x_ptr, out_ptr, M, N, stride_m, stride_n, BASE: tl.constexpr, BLOCK: tl.constexpr):
    """Rows pid, pid + programs …: LSE of each in base 2, natural at the end if BASE says so."""
    row = tl.program_id(0).to(tl.int64)
    while row < M:
        m = float("-inf")
        total = 0.0
        start = 0
        while start < N:
            n = start + tl.arange(0, BLOCK)
            x = tl.load(x_ptr + row * stride_m + n.to(tl.int64) * stride_n, mask=n < N, other=float("-inf"))
            x = x.to(tl.float32)
            top = tl.reduce(x, 0, larger)
            if top > float("-inf"):
                m_new = tl.maximum(m, top)
                block = tl.reduce(tl.exp2((x - m_new) * LOG2E), 0, plus)
                total = total * tl.exp2((m - m_new) * LOG2E) + block
                m = m_new
            start += BLOCK
        if total > 0:
            if BASE == EXP:
                tl.store(out_ptr + row, m + tl.log2(total) * LN2)
            else:
                tl.store(out_ptr + row, m * LOG2E + tl.log2(total))
        row += tl.num_programs(0)


def walked(x, base):
    out = torch.full((x.size(0),), -torch.inf, dtype=torch.float32, device=x.device)
    if x.numel():
        constants = dict(BASE=base, BLOCK=64)
        walk_kernel[(min(PROGRAMS, x.size(0)),)](x, out, *x.size(), *x.stride(), **constants)
    return out


def lse(x):
    return walked(x, 0)


def lse2(x):
    return walked(x, 1)


@triton.jit
def merge_kernel(
    oa_ptr, a_ptr, ob_ptr, b_ptr, o_ptr, lse_ptr, ROWS: tl.constexpr, D: tl.constexpr, BLOCK: tl.constexpr
):
    """Elements in a row, whatever row and column they are of: an element's row is a division."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    ok = i < ROWS * D
    row = i // D
    a = tl.load(a_ptr + row, mask=ok, other=float("-inf"))
    b = tl.load(b_ptr + row, mask=ok, other=float("-inf"))
    top = tl.maximum(a, b)
    some = ok & (top > float("-inf"))
    if tl.max(some.to(tl.int32), 0) == 0:
        return
    w_a = tl.where(some, tl.exp(a - top), 0.0)
    w_b = tl.where(some, tl.exp(b - top), 0.0)
    o_a = tl.load(oa_ptr + i, mask=some & (w_a > 0), other=0.0).to(tl.float32)
    o_b = tl.load(ob_ptr + i, mask=some & (w_b > 0), other=0.0).to(tl.float32)
    total = tl.where(some, w_a + w_b, 1.0)
    tl.store(o_ptr + i, ((o_a * w_a + o_b * w_b) / total).to(o_ptr.dtype.element_ty), mask=some)
    tl.store(lse_ptr + row, top + tl.log(total), mask=some & (i % D == 0))


def merge_natural(o_a, lse_a, o_b, lse_b):
    o = torch.zeros(o_a.shape, dtype=o_a.dtype, device=o_a.device)
    lse = torch.full(lse_a.shape, -torch.inf, dtype=torch.float32, device=o_a.device)
    rows, D = lse.numel(), o.size(-1)
    if rows:
        states = (one.contiguous() for one in (o_a, lse_a, o_b, lse_b))
        merge_kernel[(triton.cdiv(rows * D, 64),)](*states, o, lse, ROWS=rows, D=D, BLOCK=64)
    return o, lse


@triton.jit
def convert_kernel(lse_ptr, s_ptr, H, T, stride_h, stride_t):
    i = tl.program_id(0).to(tl.int64)
    x = tl.load(lse_ptr + i % H * stride_h + i // H * stride_t)
    if x == float("inf"):
        return
    tl.store(s_ptr + i, x * LOG2E)


def to_flashinfer(lse):
    H, T = lse.shape
    s = lse.new_full((T, H), -torch.inf)
    if s.numel():
        convert_kernel[(s.numel(),)](lse, s, H, T, *lse.stride())
    return s


@triton.jit
def state_kernel(q_ptr, k_ptr, v_ptr, out_ptr, s_ptr, S, N, H, L, T, D, scale, BLOCK: tl.constexpr, WIDE: tl.constexpr):
    """Grid (heads, parts, positions). A key a step; a part without keys returns, and its results are there already."""
    h = tl.program_id(0).to(tl.int64)
    n = tl.program_id(1).to(tl.int64)
    p = tl.program_id(2).to(tl.int64)
    begin = n * T
    end = tl.minimum(begin + T, L)
    if begin >= end:
        return
    d = tl.arange(0, WIDE)
    q = tl.load(q_ptr + (p * H + h) * D + d, mask=d < D, other=0.0).to(tl.float32) * scale
    m = tl.full((), float("-inf"), tl.float32)
    total = tl.full((), 0.0, tl.float32)
    v = tl.zeros((WIDE,), tl.float32)
    for key in range(begin, end, BLOCK):
        at = key + tl.arange(0, BLOCK)
        ok = (at < end)[:, None] & (d < D)[None, :]
        offset = (at * H + h)[:, None] * D + d[None, :]
        score = tl.sum(q[None, :] * tl.load(k_ptr + offset, mask=ok, other=0.0).to(tl.float32), 1)
        score = tl.where(at < end, score, float("-inf"))
        m_new = tl.maximum(m, tl.reduce(score, 0, larger))
        w = tl.exp2(score - m_new)
        keep = tl.exp2(m - m_new)
        total = total * keep + tl.reduce(w, 0, plus)
        v = v * keep + tl.reduce(w[:, None] * tl.load(v_ptr + offset, mask=ok, other=0.0).to(tl.float32), 0, plus)
        m = m_new
    row = (p * N + n) * H + h
    tl.store(out_ptr + row * D + d, v / total, mask=d < D)
    tl.store(s_ptr + row, m + tl.log2(total))


def partial_states(q, k, v, num_splits, scale=None):
    (S, H, D), L = q.shape, len(k)
    out = torch.zeros(S, num_splits, H, D, dtype=torch.float32, device=q.device)
    s = torch.full((S, num_splits, H), -torch.inf, dtype=torch.float32, device=q.device)
    scale = (D**-0.5 if scale is None else scale) * 1.4426950408889634
    if L and S:
        state_kernel[H, num_splits, S](
            q.contiguous(), k.contiguous(), v.contiguous(), out, s, S=S, N=num_splits, H=H, L=L,
            T=-(-L // num_splits), D=D, scale=scale, BLOCK=4, WIDE=triton.next_power_of_2(D),
        )  # fmt: skip
    return out, s
