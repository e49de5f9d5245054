"""Queries heads first, block pointers that transpose K, a page a step in a while loop, states joined by log2(1 + 2^-x)."""

import math

import torch
import triton
import triton.language as tl

LOG2E = tl.constexpr(1.4426950408889634)
EMPTY = tl.constexpr(float("-inf"))


@triton.jit
def more(q, k_t, v, live, scale, m, l, acc):
    """Keys in columns of k_t, natural scores."""
    s = tl.dot(q, k_t, input_precision="ieee") * scale
    s = tl.where(live[None, :], s, EMPTY)
    m_new = tl.maximum(m, tl.max(s, 1))
    shift = tl.where(m_new == EMPTY, 0.0, m_new)
    p = tl.exp(s - shift[:, None])
    keep = tl.exp(m - shift)
    acc = acc * keep[:, None] + tl.dot(p.to(v.dtype), v, input_precision="ieee")
    return m_new, l * keep + tl.sum(p, 1), acc


@triton.jit
def finished(m, l, acc):
    safe = tl.where(l > 0.0, l, 1.0)
    return acc / safe[:, None], tl.where(l > 0.0, (m + tl.log(safe)) * LOG2E, EMPTY)


@triton.jit
def shared_kernel(
    q_ptr, k_ptr, v_ptr, o_ptr, s_ptr, scale, ROWS, P, k_n, k_h, k_d, v_n, v_h, v_d,
    D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """Grid (KV heads, blocks of rows). q, o [Hkv, ROWS, D]; s [Hkv, ROWS]."""
    head = tl.program_id(0).to(tl.int64)
    top = tl.program_id(1) * BLOCK_M
    q_at = tl.make_block_ptr(q_ptr + head * ROWS * D, (ROWS, D), (D, 1), (top, 0), (BLOCK_M, WIDE), (1, 0))
    k_at = tl.make_block_ptr(k_ptr + head * k_h, (D, P), (k_d, k_n), (0, 0), (WIDE, BLOCK_N), (0, 1))
    v_at = tl.make_block_ptr(v_ptr + head * v_h, (P, D), (v_n, v_d), (0, 0), (BLOCK_N, WIDE), (1, 0))
    o_at = tl.make_block_ptr(o_ptr + head * ROWS * D, (ROWS, D), (D, 1), (top, 0), (BLOCK_M, WIDE), (1, 0))
    s_at = tl.make_block_ptr(s_ptr + head * ROWS, (ROWS,), (1,), (top,), (BLOCK_M,), (0,))
    q = tl.load(q_at, boundary_check=(0, 1), padding_option="zero")
    m = tl.full([BLOCK_M], EMPTY, tl.float32)
    l = tl.zeros([BLOCK_M], tl.float32)
    acc = tl.zeros([BLOCK_M, WIDE], tl.float32)
    for start in range(0, P, BLOCK_N):
        k_t = tl.load(k_at, boundary_check=(0, 1), padding_option="zero")
        v = tl.load(v_at, boundary_check=(0, 1), padding_option="zero")
        m, l, acc = more(q, k_t, v, start + tl.arange(0, BLOCK_N) < P, scale, m, l, acc)
        k_at = tl.advance(k_at, (0, BLOCK_N))
        v_at = tl.advance(v_at, (BLOCK_N, 0))
    o, s = finished(m, l, acc)
    tl.store(o_at, o, boundary_check=(0, 1))
    tl.store(s_at, s, boundary_check=(0,))


def heads_first(x, kv_heads):
    """[B, Hq, D] as [Hkv, B * G, D]."""
    B, Hq, D = x.shape
    return x.reshape(B, kv_heads, Hq // kv_heads, D).transpose(0, 1).reshape(kv_heads, -1, D).contiguous()


def requests_first(x, like):
    """[Hkv, B * G, …] as [B, Hq, …]."""
    B, Hq = like.shape[:2]
    x = x.reshape(len(x), B, Hq // len(x), *x.shape[2:])
    return x.transpose(0, 1).reshape(B, Hq, *x.shape[3:]).contiguous()


def nothing(q, *leading):
    """Empty states in float32."""
    v = torch.zeros(*leading, q.shape[-1], dtype=torch.float32, device=q.device)
    return v, torch.full(leading, -math.inf, dtype=torch.float32, device=q.device)


def attend_shared(q, k, v, scale=None):
    (B, Hq, D), (P, Hkv) = q.shape, k.shape[:2]
    rows = B * Hq // Hkv
    o, s = nothing(q, Hkv, rows)
    if rows and P:
        options = dict(BLOCK_M=16 if rows <= 16 else 64, BLOCK_N=16, WIDE=max(16, triton.next_power_of_2(D)))
        shared_kernel[(Hkv, triton.cdiv(rows, options["BLOCK_M"]))](
            heads_first(q, Hkv), k, v, o, s, D**-0.5 if scale is None else scale, rows, P, *k.stride(), *v.stride(),
            D=D, **options,
        )  # fmt: skip
    return requests_first(o, q), requests_first(s, q)


@triton.jit
def group_kernel(
    q_ptr, kv_ptr, o_ptr, s_ptr, owns_ptr, begins_ptr, pages_ptr, last_ptr, scale, HQ,
    q_b, q_h, q_d, kv_p, kv_2, kv_n, kv_h, kv_d,
    PAGE: tl.constexpr, G: tl.constexpr, D: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """Grid (groups, KV heads). A program goes over its group's rows, BLOCK_M at a time, and for each over the pages."""
    group = tl.program_id(0)
    kv_head = tl.program_id(1).to(tl.int64)
    first_row = tl.load(owns_ptr + group).to(tl.int64) * G
    end_row = tl.load(owns_ptr + group + 1).to(tl.int64) * G
    begin = tl.load(begins_ptr + group).to(tl.int64)
    end = tl.load(begins_ptr + group + 1).to(tl.int64)
    if begin >= end:
        return
    d = tl.arange(0, WIDE).to(tl.int64)
    slot = tl.arange(0, BLOCK_N).to(tl.int64)
    row_at = first_row
    while row_at < end_row:
        row = row_at + tl.arange(0, BLOCK_M)
        ok = (row < end_row)[:, None] & (d < D)[None, :]
        head = kv_head * G + row % G
        q = tl.load(q_ptr + (row // G * q_b + head * q_h)[:, None] + d[None, :] * q_d, mask=ok, other=0.0)
        m = tl.full([BLOCK_M], EMPTY, tl.float32)
        l = tl.zeros([BLOCK_M], tl.float32)
        acc = tl.zeros([BLOCK_M, WIDE], tl.float32)
        entry = begin
        while entry < end:
            page = kv_ptr + tl.load(pages_ptr + entry).to(tl.int64) * kv_p + kv_head * kv_h
            here = tl.full([], PAGE, tl.int32)
            if entry == end - 1:
                here = tl.load(last_ptr + group).to(tl.int32)
            for start in tl.static_range(0, PAGE, BLOCK_N):
                live = start + slot < here
                at_k = page + d[:, None] * kv_d + (start + slot)[None, :] * kv_n
                at_v = page + kv_2 + (start + slot)[:, None] * kv_n + d[None, :] * kv_d
                k_t = tl.load(at_k, mask=(d < D)[:, None] & live[None, :], other=0.0)
                v = tl.load(at_v, mask=live[:, None] & (d < D)[None, :], other=0.0)
                m, l, acc = more(q, k_t, v, live, scale, m, l, acc)
            entry += 1
        o, s = finished(m, l, acc)
        out = row // G * HQ + head
        tl.store(o_ptr + out[:, None] * D + d[None, :], o, mask=ok)
        tl.store(s_ptr + out, s, mask=row < end_row)
        row_at += BLOCK_M


def attend_groups(q, kv_cache, owns, begins, pages, last, scale):
    B, Hq, D = q.shape
    PAGE, Hkv = kv_cache.shape[2:4]
    o, s = nothing(q, B, Hq)
    if B and len(owns) > 1:
        tables = [one.contiguous() for one in (owns, begins, pages, last)]
        group_kernel[len(owns) - 1, Hkv](
            q, kv_cache, o, s, *tables, D**-0.5 if scale is None else scale, Hq, *q.stride(), *kv_cache.stride(),
            PAGE=PAGE, G=Hq // Hkv, D=D, BLOCK_M=16, BLOCK_N=16, WIDE=max(16, triton.next_power_of_2(D)),
        )  # fmt: skip
    return o, s


def attend_paged(q, kv_cache, indptr, indices, last_page_len, scale=None):
    alone = torch.arange(len(q) + 1, dtype=torch.int32, device=q.device)
    return attend_groups(q, kv_cache, alone, indptr, indices, last_page_len, scale)


@triton.jit
def join_kernel(va_ptr, sa_ptr, vb_ptr, sb_ptr, v_ptr, s_ptr, D, WIDE: tl.constexpr):
    """A row a program: the difference of two s decides everything."""
    row = tl.program_id(0).to(tl.int64)
    d = tl.arange(0, WIDE)
    s_a, s_b = tl.load(sa_ptr + row), tl.load(sb_ptr + row)
    high, low = tl.maximum(s_a, s_b), tl.minimum(s_a, s_b)
    far = tl.where(high == EMPTY, 0.0, tl.exp2(low - tl.where(high == EMPTY, 0.0, high)))
    share_a = tl.where(s_a >= s_b, 1.0, far)
    share_b = tl.where(s_a >= s_b, far, 1.0)
    v_a = tl.load(va_ptr + row * D + d, mask=(d < D) & (s_a > EMPTY), other=0.0).to(tl.float32)
    v_b = tl.load(vb_ptr + row * D + d, mask=(d < D) & (s_b > EMPTY), other=0.0).to(tl.float32)
    v = (v_a * share_a + v_b * share_b) / (1.0 + far)
    tl.store(v_ptr + row * D + d, v.to(v_ptr.dtype.element_ty), mask=d < D)
    tl.store(s_ptr + row, high + tl.log2(1.0 + far))


def joined(a, b, dtype=torch.float32):
    (v_a, s_a), (v_b, s_b) = a, b
    v, s = torch.empty_like(v_a, dtype=dtype), torch.empty_like(s_a)
    if s.numel():
        D = v.shape[-1]
        join_kernel[(s.numel(),)](v_a, s_a, v_b, s_b, v, s, D, WIDE=triton.next_power_of_2(D), num_warps=1)
    return v, s


def cascade(q, k_shared, v_shared, kv_cache, indptr, indices, last_page_len, scale=None):
    own = attend_paged(q, kv_cache, indptr, indices, last_page_len, scale)
    return joined(attend_shared(q, k_shared, v_shared, scale), own, q.dtype)


def multi_level_cascade(q, kv_cache, levels, scale=None):
    so_far = nothing(q, *q.shape[:2])
    for number, level in enumerate(levels, 1):
        here = attend_groups(q, kv_cache, *level, scale)
        so_far = joined(so_far, here, q.dtype if number == len(levels) else torch.float32)
    return so_far[0].to(q.dtype), so_far[1]
