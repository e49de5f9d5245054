"""Attention of one warp to pages, for a query row that has its KV head for itself."""

import triton
import triton.language as tl
from triton.language.extra.cuda import gdc_launch_dependents

from solutions.fast_cascade.attend_plain import load_pages, wait_for_launch_ahead


@triton.jit
def group_of(group_indptr, groups, request):
    """The request's group, and whether it has one. Where groups are of one request each, nothing is searched."""
    begin = tl.load(group_indptr + request, mask=request < groups, other=-1)
    end = tl.load(group_indptr + request + 1, mask=request < groups, other=-1)
    group = request
    exists = (begin == request) & (end == request + 1)
    if not exists:  # as many groups have begun as are over, and one more: the request's own, if it has one
        group = 0
        begun = 0
        for start in range(0, groups, 256):
            ids = start + tl.arange(0, 256)
            begins = tl.load(group_indptr + ids, mask=ids < groups, other=request + 1)
            ends = tl.load(group_indptr + ids + 1, mask=ids < groups, other=request + 1)
            begun += tl.sum((begins <= request).to(tl.int32), 0)
            group += tl.sum((ends <= request).to(tl.int32), 0)
        exists = begun > group
    return group, exists


@triton.jit(do_not_specialize=["groups", "N"])
def attend_alone_kernel(
    q,  # [B, H, D]
    kv,  # [pages, 2, PAGE, H, D]
    group_indptr,  # [groups + 1]; unused if not GROUPED
    indptr,  # [groups + 1]
    indices,
    last_page_len,  # [groups]
    v_out,  # [B, splits of N, H, D] float32; a request's states are N apart
    s_out,  # [B, splits of N, H] float32
    scale,
    groups, HEADS, N,
    q_b, q_h, q_d, kv_p, kv_2, kv_n, kv_h, kv_d,  # strides
    PAGE: tl.constexpr,
    GROUPED: tl.constexpr,
    D: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr,
    BESIDE: tl.constexpr,
    OVERLAP: tl.constexpr,
):  # fmt: skip
    """attend_paged_kernel where a KV head has one query head (G = 1): a matrix unit would work on 16 rows for one.

    One warp. Each of the BLOCK_N places in a tile is a recurrence of its own; they merge at the end.
    """
    head = tl.program_id(0)
    request = tl.program_id(1)
    split = tl.program_id(2)
    if OVERLAP:
        gdc_launch_dependents()
    cols = tl.arange(0, BLOCK_D)
    keys = tl.arange(0, BLOCK_N)
    group = request
    exists = request < groups
    if GROUPED:
        group, exists = group_of(group_indptr, groups, request)
    first_page = tl.load(indptr + group, mask=exists, other=0)
    pages = (tl.load(indptr + group + 1, mask=exists, other=0) - first_page).to(tl.int32)
    last = tl.load(last_page_len + group, mask=exists, other=0).to(tl.int32)
    q_at = request.to(tl.int64) * q_b + head.to(tl.int64) * q_h
    q_row = tl.load(q + q_at + cols.to(tl.int64) * q_d, mask=cols < D, other=0.0)
    q_row = q_row.to(tl.float32) * scale
    length = tl.where(pages > 0, (pages - 1) * PAGE + last, 0)
    share = tl.cdiv(tl.cdiv(length, BLOCK_N), tl.num_programs(2)) * BLOCK_N
    begin = split * share
    end = tl.minimum(begin + share, length)

    m = tl.full([BLOCK_N], float("-inf"), tl.float32)
    l = tl.zeros([BLOCK_N], tl.float32)
    acc = tl.zeros([BLOCK_N, BLOCK_D], tl.float32)
    table = indices + first_page
    page = tl.load(table + (begin + keys) // PAGE, mask=begin + keys < end, other=0).to(tl.int64)
    for start in tl.range(begin, end, BLOCK_N, num_stages=2):
        key = start + keys
        k_tile, v_tile = load_pages(
            kv, page, key, head, kv_p, kv_2, kv_n, kv_h, kv_d, end, PAGE, D, BLOCK_D, True, "evict_first"
        )
        page = tl.load(table + (key + BLOCK_N) // PAGE, mask=key + BLOCK_N < end, other=0).to(tl.int64)
        score = tl.where(key < end, tl.sum(q_row[None, :] * k_tile.to(tl.float32), 1), float("-inf"))
        m_new = tl.maximum(m, score)
        shift = tl.where(m_new == float("-inf"), 0.0, m_new)
        rescale = tl.exp2(m - shift)
        p = tl.exp2(score - shift)
        acc = acc * rescale[:, None] + p[:, None] * v_tile.to(tl.float32)
        l = l * rescale + p
        m = m_new

    top = tl.max(m, 0)
    weight = tl.exp2(m - tl.where(top == float("-inf"), 0.0, top))
    total = tl.sum(l * weight, 0)
    safe = tl.where(total > 0, total, 1.0)
    state = (request.to(tl.int64) * N + split) * HEADS + head
    tl.store(v_out + state * D + cols, tl.sum(acc * weight[:, None], 0) / safe, mask=cols < D)
    tl.store(s_out + state, tl.where(total > 0, top + tl.log2(safe), float("-inf")))
    if BESIDE:
        wait_for_launch_ahead()
