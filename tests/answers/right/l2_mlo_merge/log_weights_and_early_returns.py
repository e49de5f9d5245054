"""Logs of weights, m + log l as one number, joined by log-sum-exp; base 2 inside; programs that return early."""

import math

import torch
import triton
import triton.language as tl

LOG2E = tl.constexpr(math.log2(math.e))
NOTHING = tl.constexpr(float("-inf"))


@triton.jit
def logaddexp2(a, b):
    """log2(2^a + 2^b); -inf is neutral."""
    high, low = tl.maximum(a, b), tl.minimum(a, b)
    return tl.where(high == NOTHING, NOTHING, high + tl.log2(1.0 + tl.exp2(low - tl.where(high == NOTHING, 0.0, high))))


@triton.jit
def weight(log_w, log_all):
    """2^(log_w - log_all), 0 for -inf."""
    return tl.where(log_w == NOTHING, 0.0, tl.exp2(log_w - tl.where(log_all == NOTHING, 0.0, log_all)))


@triton.autotune(configs=[triton.Config(dict(KEYS=8), num_warps=1)], key=["D"])
@triton.jit
def part_kernel(q, k, v, m_out, l_out, o_out, H, L, T, D, scale, KEYS: tl.constexpr, WIDTH: tl.constexpr):
    """Grid (parts, heads). m stays natural, what is summed is in base 2."""
    part = tl.program_id(axis=0).to(tl.int64)
    head = tl.program_id(axis=1)
    if part * T >= L:
        return
    column = tl.arange(0, WIDTH)
    lane = tl.arange(0, KEYS)
    query = tl.load(q + head * D + column, mask=column < D, other=0.0).to(tl.float32)
    m = NOTHING
    l = 0.0
    acc = tl.zeros([WIDTH], tl.float32)
    for step in range(0, tl.cdiv(T, KEYS)):
        key = part * T + step * KEYS + lane
        live = (step * KEYS + lane < T) & (key < L)
        at = (key * H + head)[:, None] * D + column[None, :]
        both = live[:, None] & (column < D)[None, :]
        scores = tl.sum(tl.load(k + at, mask=both, other=0.0).to(tl.float32) * query[None, :], axis=1) * scale
        scores = tl.where(live, scores, NOTHING)
        m_new = tl.maximum(m, tl.max(scores, axis=0))
        if m_new > NOTHING:
            p = tl.exp2((scores - m_new) * LOG2E)
            keep = tl.exp2((m - m_new) * LOG2E)
            values = tl.load(v + at, mask=both, other=0.0).to(tl.float32)
            acc = acc * keep + tl.sum(p[:, None] * values, axis=0)
            l = l * keep + tl.sum(p, axis=0)
            m = m_new
    row = part * H + head
    tl.store(m_out + row, m)
    tl.store(l_out + row, l)
    tl.store(o_out + row * D + column, acc / l, mask=column < D)


def partial_attention(q, k, v, num_splits, scale=None):
    (H, D), L = q.shape, k.size(0)
    m = torch.full((num_splits, H), float("-inf"), device=q.device)
    l = torch.zeros((num_splits, H), device=q.device)
    o = torch.zeros((num_splits, H, D), device=q.device)
    if L > 0:
        T = (L + num_splits - 1) // num_splits
        scale = 1 / math.sqrt(D) if scale is None else scale
        q, k, v = (x if x.is_contiguous() else x.contiguous() for x in (q, k, v))
        part_kernel[(num_splits, H)](q, k, v, m, l, o, H, L, T, D, scale, WIDTH=triton.next_power_of_2(D))
    return m, l, o


@triton.jit
def pair_kernel(m_a, l_a, o_a, m_b, l_b, o_b, m_out, l_out, o_out, H, D, WIDTH: tl.constexpr):
    head = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * WIDTH + tl.arange(0, WIDTH)
    ma, la = tl.load(m_a + head), tl.load(l_a + head)
    mb, lb = tl.load(m_b + head), tl.load(l_b + head)
    log_a = tl.where(la > 0, ma * LOG2E + tl.log2(la), NOTHING)
    log_b = tl.where(lb > 0, mb * LOG2E + tl.log2(lb), NOTHING)
    log_all = logaddexp2(log_a, log_b)
    if log_all == NOTHING:
        return
    wa, wb = weight(log_a, log_all), weight(log_b, log_all)
    a = tl.load(o_a + head * D + column, mask=(column < D) & (wa > 0), other=0.0).to(tl.float32)
    b = tl.load(o_b + head * D + column, mask=(column < D) & (wb > 0), other=0.0).to(tl.float32)
    tl.store(o_out + head * D + column, ((a * wa + b * wb) / (wa + wb)).to(o_out.dtype.element_ty), mask=column < D)
    if tl.program_id(1) == 0:
        m = tl.maximum(ma, mb)
        tl.store(m_out + head, m)
        tl.store(l_out + head, la * tl.exp2((ma - m) * LOG2E) + lb * tl.exp2((mb - m) * LOG2E))


def merge_pair(m_a, l_a, o_a, m_b, l_b, o_b):
    H, D = o_a.shape
    m, l = torch.full((H,), float("-inf"), device=m_a.device), torch.zeros((H,), device=m_a.device)
    o = torch.zeros((H, D), dtype=o_a.dtype, device=o_a.device)
    if H > 0:
        width = min(32, triton.next_power_of_2(D))
        inputs = [x.contiguous() for x in (m_a, l_a, o_a, m_b, l_b, o_b)]
        pair_kernel[(H, triton.cdiv(D, width))](*inputs, m, l, o, H, D, WIDTH=width)
    return m, l, o


@triton.jit
def merge_kernel(m, l, o, o_out, N, H, D, PARTS: tl.constexpr, WIDTH: tl.constexpr):
    """All that a program knows of the parts so far is their log-weight and their average."""
    head = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * WIDTH + tl.arange(0, WIDTH)
    log_all = tl.full([], NOTHING, tl.float32)
    average = tl.zeros([WIDTH], tl.float32)
    first = 0
    while first < N:
        part = first + tl.arange(0, PARTS)
        row = part * H + head
        m_n = tl.load(m + row, mask=part < N, other=NOTHING)
        l_n = tl.load(l + row, mask=part < N, other=0.0)
        log_n = tl.where(l_n > 0, m_n * LOG2E + tl.log2(l_n), NOTHING)
        top = tl.max(log_n, 0)
        if top > NOTHING:
            w = tl.exp2(log_n - top)
            here = tl.sum(w, 0)
            log_new = logaddexp2(log_all, top + tl.log2(here))
            live = (w > 0)[:, None] & (column < D)[None, :]
            o_n = tl.load(o + row[:, None] * D + column[None, :], mask=live, other=0.0).to(tl.float32)
            block = tl.sum(o_n * (w / here)[:, None], 0)
            share = weight(top + tl.log2(here), log_new)
            average += (block - average) * share
            log_all = log_new
        first += PARTS
    tl.store(o_out + head * D + column, average.to(o_out.dtype.element_ty), mask=column < D)


def merge_mlo(m, l, o):
    N, H, D = o.shape
    out = torch.empty((H, D), dtype=o.dtype, device=o.device)
    if H > 0:
        width = min(64, triton.next_power_of_2(D))
        inputs = m.contiguous(), l.contiguous(), o.contiguous()
        merge_kernel[(H, triton.cdiv(D, width))](*inputs, out, N, H, D, PARTS=8, WIDTH=width)
    return out
