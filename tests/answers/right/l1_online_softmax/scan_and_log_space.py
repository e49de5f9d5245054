"""tl.associative_scan over pairs, probabilities by the row's LSE, block pointers, one config to tune, empty grid axes."""

import torch
import triton
import triton.language as tl

MINUS_INF = tl.constexpr(float("-inf"))


@triton.jit
def join(m_a, l_a, m_b, l_b):
    m = tl.maximum(m_a, m_b)
    shift = tl.where(m == MINUS_INF, 0.0, m)
    return m, l_a * tl.exp(m_a - shift) + l_b * tl.exp(m_b - shift)


@triton.heuristics({"EVEN": lambda args: args["N"] % args["BLOCK"] == 0})
@triton.jit
def stats_kernel(x_ptr, m_ptr, l_ptr, M, N, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    lane = tl.arange(0, BLOCK)
    m = tl.full((BLOCK,), MINUS_INF, tl.float32)
    l = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, N, BLOCK):
        if EVEN:
            x = tl.load(x_ptr + row * N + start + lane)
        else:
            x = tl.load(x_ptr + row * N + start + lane, mask=start + lane < N, other=MINUS_INF)
        x = x.to(tl.float32)
        m, l = join(m, l, x, tl.where(x == MINUS_INF, 0.0, 1.0))
    m, l = tl.associative_scan((m, l), 0, join)
    last = lane == BLOCK - 1
    tl.store(m_ptr + row, tl.max(tl.where(last, m, MINUS_INF), 0))
    tl.store(l_ptr + row, tl.sum(tl.where(last, l, 0.0), 0))


def softmax_stats(x: torch.Tensor, block: int = 1024):
    x = x.contiguous()
    M, N = x.shape
    m, l = x.new_full((M,), float("-inf"), dtype=torch.float32), x.new_zeros((M,), dtype=torch.float32)
    if x.numel() > 0:
        meta = {"BLOCK": min(max(2, block), 512), "num_warps": 2}
        stats_kernel[(M,)](x_ptr=x, m_ptr=m, l_ptr=l, M=M, N=N, **meta)
    return m, l


@triton.autotune(configs=[triton.Config({"BLOCK": 128}, num_warps=4)], key=["N"])
@triton.jit
def softmax_kernel(x_ptr, y_ptr, M, N, BLOCK: tl.constexpr):
    """A program a row: m and l under a reference that only a larger block moves, then exp(x - LSE)."""
    row = tl.program_id(0)
    x_at = tl.make_block_ptr(x_ptr, (M, N), (N, 1), (row, 0), (1, BLOCK), (1, 0))
    y_at = tl.make_block_ptr(y_ptr, (M, N), (N, 1), (row, 0), (1, BLOCK), (1, 0))
    m = MINUS_INF
    l = 0.0
    for start in range(0, N, BLOCK):
        x = tl.load(tl.advance(x_at, (0, start)), boundary_check=(1,), padding_option="zero").to(tl.float32)
        x = tl.where((start + tl.arange(0, BLOCK) < N)[None, :], x, MINUS_INF)
        top = tl.max(x)
        if top > m:
            l *= tl.exp(m - top)
            m = top
        if m > MINUS_INF:
            l += tl.sum(tl.exp(x - m))
    log_l = tl.log(tl.where(l > 0.0, l, 1.0))
    for start in range(0, N, BLOCK):
        x = tl.load(tl.advance(x_at, (0, start)), boundary_check=(1,)).to(tl.float32)
        y = tl.where(x == MINUS_INF, 0.0, tl.exp((x - m) - log_l))
        tl.store(tl.advance(y_at, (0, start)), y.to(y_ptr.dtype.element_ty), boundary_check=(1,))


def softmax(x: torch.Tensor, block: int = 1024):
    x = x.contiguous()
    y = torch.empty_like(x)
    if x.numel() > 0:
        softmax_kernel[lambda meta: (x.shape[0],)](x, y, *x.shape)
    return y


@triton.jit
def attend_kernel(
    s_ptr, v_ptr, o_ptr, M, N, D,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """Rows along one axis of the grid and columns along another; scores come through block pointers that advance."""
    top, left = tl.program_id(0) * BLOCK_M, tl.program_id(1) * BLOCK_D
    s_at = tl.make_block_ptr(s_ptr, (M, N), (N, 1), (top, 0), (BLOCK_M, BLOCK_N), (1, 0))
    v_at = tl.make_block_ptr(v_ptr, (N, D), (D, 1), (0, left), (BLOCK_N, BLOCK_D), (1, 0))
    o_at = tl.make_block_ptr(o_ptr, (M, D), (D, 1), (top, left), (BLOCK_M, BLOCK_D), (1, 0))
    m = tl.full((BLOCK_M,), MINUS_INF, tl.float32)
    l = tl.zeros((BLOCK_M,), tl.float32)
    o = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)
    for start in range(0, N, BLOCK_N):
        s = tl.load(s_at, boundary_check=(0, 1), padding_option="zero").to(tl.float32)
        s = tl.where((start + tl.arange(0, BLOCK_N) < N)[None, :], s, MINUS_INF)
        v = tl.load(v_at, boundary_check=(0, 1), padding_option="zero").to(tl.float32)
        m_new = tl.maximum(m, tl.max(s, 1))
        shift = tl.where(m_new == MINUS_INF, 0.0, m_new)
        p = tl.exp(s - shift[:, None])
        keep = tl.exp(m - shift)
        l = l * keep + tl.sum(p, 1)
        o = o * keep[:, None] + tl.sum(p[:, :, None] * v[None, :, :], 1)
        m = m_new
        s_at = tl.advance(s_at, (0, BLOCK_N))
        v_at = tl.advance(v_at, (BLOCK_N, 0))
    o = o / tl.where(l > 0.0, l, 1.0)[:, None]
    tl.store(o_at, o.to(o_ptr.dtype.element_ty), boundary_check=(0, 1))


def attend(scores: torch.Tensor, v: torch.Tensor, block: int = 64):
    scores, v = scores.contiguous(), v.contiguous()
    (M, N), D = scores.shape, v.shape[1]
    o = torch.zeros(M, D, dtype=v.dtype, device=v.device)
    if scores.numel() > 0:
        width = min(256, triton.next_power_of_2(D))
        grid = (triton.cdiv(M, 2), triton.cdiv(D, width))
        attend_kernel[grid](scores, v, o, M, N, D, BLOCK_M=2, BLOCK_N=max(2, min(block, 16)), BLOCK_D=width)
    return o
