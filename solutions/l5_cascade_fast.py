"""The fast cascade: what l5_cascade.py computes, in launches that overlap, with loops that a Hopper GPU likes.

Same four functions, same contract. Each change against the lesson's version stands in content/fast_cascade.md with
the time that it bought. Names are those of l5_cascade.py. What everybody shares is attended to in Gluon, Triton's lower
level, where a program says which warps do what, and so are requests' own pages if there are many; the interpreter and
other GPUs take the plain kernels.

Inputs are float16, bfloat16 or float32 with any strides, Hkv divides Hq, indices are integers of any width. They are
trusted: nothing is checked, and nothing is raised but what torch and Triton raise.
"""

import functools
import math

import torch
import triton
import triton.language as tl
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_wait,
)
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

LOG2E = 1.4426950408889634


@triton.jit
def attend_tile(q, k, v, live, scale, m, l, acc, MASKED: tl.constexpr):
    """One step of the recurrence over BLOCK_N keys. MASKED: only keys that are `live` count; at least one is.

    scale >= 0, so the largest product is the largest score, and scaling and shifting a score is one operation.
    """
    products = tl.dot(q, tl.trans(k), input_precision="ieee")
    if MASKED:
        m_new = tl.maximum(m, tl.max(tl.where(live[None, :], products, float("-inf")), 1) * scale)
        p = tl.where(live[None, :], tl.exp2(products * scale - m_new[:, None]), 0.0)
    else:
        m_new = tl.maximum(m, tl.max(products, 1) * scale)
        p = tl.exp2(products * scale - m_new[:, None])
    rescale = tl.exp2(m - m_new)
    l = l * rescale + tl.sum(p, 1)
    acc = tl.dot(p.to(v.dtype), v, acc * rescale[:, None], input_precision="ieee")
    return m_new, l, acc


@triton.jit
def load_tile(at, live_key, live_col, MASKED: tl.constexpr, FULL_D: tl.constexpr, KEEP: tl.constexpr):
    """A tile [BLOCK_N, BLOCK_D], 0 where a key or a column does not exist; no mask where all do.

    KEEP: an eviction policy: "" or "evict_first" for what nobody reads again.
    """
    if MASKED:
        tile = tl.load(at, mask=live_key[:, None] & live_col[None, :], other=0.0, eviction_policy=KEEP)
    elif FULL_D:
        tile = tl.load(at, eviction_policy=KEEP)
    else:
        tile = tl.load(at, mask=live_col[None, :], other=0.0, eviction_policy=KEEP)
    return tile


@triton.jit
def store_states(v_out, s_out, state, live, m, l, acc, D: tl.constexpr, BLOCK_D: tl.constexpr):
    """Write the rows' states to v_out[state, :] and s_out[state]. A row that saw no key becomes (0, -inf)."""
    cols = tl.arange(0, BLOCK_D)
    safe = tl.where(l > 0, l, 1.0)
    at = state[:, None] * D + cols[None, :]
    tl.store(v_out + at, acc / safe[:, None], mask=live[:, None] & (cols < D)[None, :])
    tl.store(s_out + state, tl.where(l > 0, m + tl.log2(safe), float("-inf")), mask=live)


@triton.jit
def wait_for_launch_ahead():
    """Makes the end of this launch mean that the launch ahead of it has ended too.

    A launch is over when its last program is, so that one program waits. The others leave the multiprocessor free.
    """
    last = (tl.program_id(0) == tl.num_programs(0) - 1) & (tl.program_id(1) == tl.num_programs(1) - 1)
    if last & (tl.program_id(2) == tl.num_programs(2) - 1):
        gdc_wait()


@triton.jit(do_not_specialize=["B", "P", "N"])
def attend_shared_kernel(
    q,  # [B, Hq, D]
    k,  # [P, Hkv, D]
    v,  # [P, Hkv, D]
    v_out,  # [B, splits of N, Hq, D] float32; a request's states are N apart
    s_out,  # [B, splits of N, Hq] float32
    scale,
    B, P, HEADS, N,
    q_b, q_h, q_d, k_n, k_h, k_d, v_n, v_h, v_d,  # strides
    G: tl.constexpr,
    D: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr,
    BESIDE: tl.constexpr,  # runs beside the launch ahead of it
    OVERLAP: tl.constexpr,  # lets the next launch run beside it
):  # fmt: skip
    if OVERLAP:
        gdc_launch_dependents()
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    kv_head = tl.program_id(1)
    split = tl.program_id(2)
    cols = tl.arange(0, BLOCK_D)
    keys = tl.arange(0, BLOCK_N)

    request = (rows // G).to(tl.int64)
    head = kv_head * G + rows % G
    live_row = rows < B * G
    q_at = request * q_b + head * q_h
    q_rows = tl.load(q + q_at[:, None] + cols[None, :] * q_d, mask=live_row[:, None] & (cols < D)[None, :], other=0.0)

    m = tl.full([BLOCK_M], float("-inf"), tl.float32)
    l = tl.zeros([BLOCK_M], tl.float32)
    acc = tl.zeros([BLOCK_M, BLOCK_D], tl.float32)
    share = tl.cdiv(tl.cdiv(P, BLOCK_N), tl.num_programs(2)) * BLOCK_N
    begin = split * share
    end = tl.minimum(begin + share, P)
    whole = begin + tl.maximum(end - begin, 0) // BLOCK_N * BLOCK_N
    at_k = k + kv_head * k_h + cols[None, :] * k_d
    at_v = v + kv_head * v_h + cols[None, :] * v_d
    for start in range(begin, whole, BLOCK_N):
        key = (start + keys).to(tl.int64)[:, None]
        k_tile = load_tile(at_k + key * k_n, keys < BLOCK_N, cols < D, False, D == BLOCK_D, "")
        v_tile = load_tile(at_v + key * v_n, keys < BLOCK_N, cols < D, False, D == BLOCK_D, "")
        m, l, acc = attend_tile(q_rows, k_tile, v_tile, keys, scale, m, l, acc, False)
    if whole < end:
        key = (whole + keys).to(tl.int64)[:, None]
        k_tile = load_tile(at_k + key * k_n, whole + keys < P, cols < D, True, D == BLOCK_D, "")
        v_tile = load_tile(at_v + key * v_n, whole + keys < P, cols < D, True, D == BLOCK_D, "")
        m, l, acc = attend_tile(q_rows, k_tile, v_tile, whole + keys < P, scale, m, l, acc, True)

    state = (request * N + split) * HEADS + head
    store_states(v_out, s_out, state, live_row, m, l, acc, D, BLOCK_D)
    if BESIDE:
        wait_for_launch_ahead()


@triton.jit
def find_group(group_indptr, groups, slot, G: tl.constexpr, BLOCK_M: tl.constexpr):
    """The last group whose first slot is at or before `slot`; -1 if none. Group g's is first_row // BLOCK_M + g + 1."""
    group = -1
    for start in range(0, groups, 512):
        ids = start + tl.arange(0, 512)
        first_row = tl.load(group_indptr + ids, mask=ids < groups, other=0).to(tl.int32) * G
        group += tl.sum(((ids < groups) & (first_row // BLOCK_M + ids < slot)).to(tl.int32), 0)
    return group


@triton.jit
def load_pages(kv, page, key, kv_head, kv_p, kv_2, kv_n, kv_h, kv_d, end, PAGE: tl.constexpr, D: tl.constexpr,
               BLOCK_D: tl.constexpr, MASKED: tl.constexpr, KEEP: tl.constexpr):  # fmt: skip
    """Tiles of K and V [BLOCK_N, BLOCK_D] for keys key[BLOCK_N] on pages page[BLOCK_N]. KEEP: an eviction policy."""
    cols = tl.arange(0, BLOCK_D)
    at = (page * kv_p + (key % PAGE).to(tl.int64) * kv_n + kv_head * kv_h)[:, None] + cols[None, :] * kv_d
    k_tile = load_tile(kv + at, key < end, cols < D, MASKED, D == BLOCK_D, KEEP)
    v_tile = load_tile(kv + at + kv_2, key < end, cols < D, MASKED, D == BLOCK_D, KEEP)
    return k_tile, v_tile


@triton.jit(do_not_specialize=["B", "groups", "N"])
def attend_paged_kernel(
    q,  # [B, Hq, D]
    kv,  # [pages, 2, PAGE, Hkv, D]
    group_indptr,  # [groups + 1]; unused if not GROUPED
    indptr,  # [groups + 1]
    indices,
    last_page_len,  # [groups]
    v_out,  # [B, splits of N, Hq, D] float32; a request's states are N apart
    s_out,  # [B, splits of N, Hq] float32
    scale,
    B, groups, HEADS, N,
    q_b, q_h, q_d, kv_p, kv_2, kv_n, kv_h, kv_d,  # strides
    PAGE: tl.constexpr,
    GROUPED: tl.constexpr,
    G: tl.constexpr,
    D: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr,
    BESIDE: tl.constexpr,  # runs beside the launch ahead of it
    OVERLAP: tl.constexpr,  # lets the next launch run beside it
):  # fmt: skip
    kv_head = tl.program_id(0)
    slot = tl.program_id(1)
    split = tl.program_id(2)
    if OVERLAP:
        gdc_launch_dependents()
    cols = tl.arange(0, BLOCK_D)
    keys = tl.arange(0, BLOCK_N)
    live_col = cols < D

    # Rows first_row to end_row attend; rows up to last_row are this program's to write. They differ where requests
    # are in no group: those before the first belong to the slots before it, those after the last to the last's.
    if GROUPED:
        found = find_group(group_indptr, groups, slot, G, BLOCK_M)
        group = tl.maximum(found, 0)
        start_row = tl.load(group_indptr + group).to(tl.int32) * G
        block = tl.where(found < 0, slot, slot - (start_row // BLOCK_M + group + 1))
        first_row = tl.where(found < 0, 0, start_row) + block * BLOCK_M
        end_row = tl.where(found < 0, 0, tl.load(group_indptr + group + 1).to(tl.int32) * G)
        last_row = tl.where(found < 0, start_row, tl.where(group == groups - 1, B * G, end_row))
    else:
        blocks: tl.constexpr = (G + BLOCK_M - 1) // BLOCK_M
        group = slot // blocks
        first_row = group * G + slot % blocks * BLOCK_M
        end_row = group * G + G
        last_row = end_row

    if first_row < last_row:
        rows = first_row + tl.arange(0, BLOCK_M)
        live_row = rows < last_row
        request = (rows // G).to(tl.int64)
        head = kv_head * G + rows % G
        q_at = request * q_b + head * q_h
        q_rows = tl.load(q + q_at[:, None] + cols[None, :] * q_d, mask=live_row[:, None] & live_col[None, :], other=0.0)

        first_page = tl.load(indptr + group)
        pages = (tl.load(indptr + group + 1) - first_page).to(tl.int32)
        last = tl.load(last_page_len + group).to(tl.int32)
        length = tl.where((first_row < end_row) & (pages > 0), (pages - 1) * PAGE + last, 0)
        share = tl.cdiv(tl.cdiv(length, BLOCK_N), tl.num_programs(2)) * BLOCK_N
        begin = split * share
        end = tl.minimum(begin + share, length)

        m = tl.full([BLOCK_M], float("-inf"), tl.float32)
        l = tl.zeros([BLOCK_M], tl.float32)
        acc = tl.zeros([BLOCK_M, BLOCK_D], tl.float32)
        table = indices + first_page
        page = tl.load(table + (begin + keys) // PAGE, mask=begin + keys < end, other=0).to(tl.int64)
        # Blocks of many rows are bound by arithmetic: they mask the last, partial tile only. Few rows read keys that
        # nobody else wants: those leave the cache first.
        KEEP: tl.constexpr = "" if BLOCK_M >= 64 else "evict_first"
        whole = begin
        if BLOCK_M >= 64:
            whole += tl.maximum(end - begin, 0) // BLOCK_N * BLOCK_N
            for start in range(begin, whole, BLOCK_N):
                key = start + keys
                k_tile, v_tile = load_pages(
                    kv, page, key, kv_head, kv_p, kv_2, kv_n, kv_h, kv_d, end, PAGE, D, BLOCK_D, False, KEEP
                )
                page = tl.load(table + (key + BLOCK_N) // PAGE, mask=key + BLOCK_N < end, other=0).to(tl.int64)
                m, l, acc = attend_tile(q_rows, k_tile, v_tile, keys, scale, m, l, acc, False)
        for start in range(whole, end, BLOCK_N):
            key = start + keys
            k_tile, v_tile = load_pages(
                kv, page, key, kv_head, kv_p, kv_2, kv_n, kv_h, kv_d, end, PAGE, D, BLOCK_D, True, KEEP
            )
            # The next step's pages are asked for now: K and V need not wait for them then.
            page = tl.load(table + (key + BLOCK_N) // PAGE, mask=key + BLOCK_N < end, other=0).to(tl.int64)
            m, l, acc = attend_tile(q_rows, k_tile, v_tile, key < end, scale, m, l, acc, True)
        if GROUPED:
            l = tl.where(rows < end_row, l, 0.0)
        state = (request * N + split) * HEADS + head
        store_states(v_out, s_out, state, live_row, m, l, acc, D, BLOCK_D)

    if BESIDE:
        wait_for_launch_ahead()


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
    q_row = tl.load(q + request.to(tl.int64) * q_b + head * q_h + cols * q_d, mask=cols < D, other=0.0)
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


@gluon.jit
def page_numbers(table, first, pages, COUNT: gl.constexpr):
    """The numbers of COUNT pages, from the `first` of a table on; the last one again past the end."""
    numbers = ()
    for i in gl.static_range(COUNT):
        at = gl.minimum(first + i, pages - 1)
        numbers = numbers + (gl.load(table + at, mask=pages > 0, other=0).to(gl.int32),)
    return numbers


@gluon.jit
def fetch(x, tile, ready, start, numbers, first_row, col, pages, page_rows):
    """Ask for a tile of one KV head's keys, from `start` on. It is there when `ready` has counted its bytes.

    A prefix comes in one piece, and zeros past its end; pages come one by one.
    """
    ROWS: gl.constexpr = x.block_shape[0]
    for i in gl.static_range(tile.shape[0] // ROWS):
        row = gl.where(pages > 0, numbers[i] * page_rows + first_row, start + i * ROWS)
        tma.async_copy_global_to_shared(x, [row, col], ready, tile.slice(i * ROWS, ROWS))


@gluon.jit
def added(a, b):
    return a + b


@gluon.jit
def find_block(group_indptr, groups, all_rows, slot, G, ROWS: gl.constexpr):
    """The group of the slot'th block of ROWS query rows, and its first row. Blocks are counted group by group.

    Group -1 has the rows before the first group's, the last one those behind it too; group `groups` is past the end.
    """
    across: gl.constexpr = gl.BlockedLayout([1], [32], [gl.num_warps()], [0])
    group = -1
    first = slot * ROWS
    blocks = gl.cdiv(gl.load(group_indptr).to(gl.int32) * G, ROWS)  # of all groups so far
    if slot >= blocks:
        group = 0
        before = blocks  # of all groups before the slot's
        for start in range(0, groups, 128):
            ids = start + gl.arange(0, 128, layout=across)
            begin = gl.load(group_indptr + ids, mask=ids < groups, other=0).to(gl.int32) * G
            end = gl.load(group_indptr + ids + 1, mask=ids < groups, other=0).to(gl.int32) * G
            count = gl.cdiv(gl.where(ids == groups - 1, all_rows, end) - begin, ROWS)
            upto = blocks + gl.associative_scan(count, 0, added)
            over = (ids < groups) & (upto <= slot)
            group += gl.sum(over.to(gl.int32), 0)
            before = gl.maximum(before, gl.max(gl.where(over, upto, 0), 0))
            blocks += gl.sum(count, 0)
        first = gl.load(group_indptr + group).to(gl.int32) * G + (slot - before) * ROWS
    return group, first


@gluon.jit
def produce(
    k, v, k_tiles, v_tiles, ready, free, begin, steps, k_col, v_col, table, pages, page_rows, v_row
):  # fmt: skip
    """The warp that fetches. Step i needs K of tile i and V of the tile before. Tile 0 is the last, partial one."""
    STAGES: gl.constexpr = k_tiles.shape[0]
    BLOCK_N: gl.constexpr = k_tiles.shape[1]
    BYTES: gl.constexpr = BLOCK_N * k_tiles.shape[2] * k_tiles.dtype.primitive_bitwidth // 8
    ROWS: gl.constexpr = k.block_shape[0]
    start = begin + (steps - 1) * BLOCK_N
    numbers = page_numbers(table, start // ROWS, pages, BLOCK_N // ROWS)
    mbarrier.expect(ready.index(0), BYTES)
    fetch(k, k_tiles.index(0), ready.index(0), start, numbers, 0, k_col, pages, page_rows)
    for i in range(1, steps + 1):
        slot = i % STAGES
        v_start = start
        v_numbers = numbers
        start = begin + (i - 1) * BLOCK_N
        numbers = page_numbers(table, start // ROWS, pages, BLOCK_N // ROWS)
        mbarrier.wait(free.index(slot), ((i // STAGES) & 1) ^ 1)
        if i < steps:
            mbarrier.expect(ready.index(slot), 2 * BYTES)
            fetch(k, k_tiles.index(slot), ready.index(slot), start, numbers, 0, k_col, pages, page_rows)
        else:
            mbarrier.expect(ready.index(slot), BYTES)
        fetch(v, v_tiles.index(slot), ready.index(slot), v_start, v_numbers, v_row, v_col, pages, page_rows)


@gluon.jit
def consume(
    q, q_tile, k_tiles, v_tiles, ready, free, v_out, s_out, scale, begin, end, steps, first, first_row, end_row,
    last_row, G, HEADS, N, kv_head, split, q_b, q_h,
):  # fmt: skip
    """Four warps that attend with BLOCK_M rows from row `first` on.

    A step starts the products of Q with K, then those of the step before's P with V, and does its own softmax while the
    second run. Registers that a product still reads are among the `deps` of the wait for it.
    """
    dtype: gl.constexpr = q_tile.dtype
    BLOCK_M: gl.constexpr = q_tile.shape[0]
    STAGES: gl.constexpr = k_tiles.shape[0]
    BLOCK_N: gl.constexpr = k_tiles.shape[1]
    D: gl.constexpr = k_tiles.shape[2]
    loaded: gl.constexpr = gl.BlockedLayout([1, 8], [256 // D, D // 8], [gl.num_warps(), 1], [1, 0])
    scored: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [gl.num_warps(), 1], [16, BLOCK_N, 16])
    summed: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [gl.num_warps(), 1], [16, D, 16])
    weighing: gl.constexpr = gl.DotOperandLayout(0, summed, 2)

    rows = first + gl.arange(0, BLOCK_M, layout=gl.SliceLayout(1, loaded))
    q_at = (rows // G).to(gl.int64) * q_b + (kv_head * G + rows % G) * q_h
    cols = gl.arange(0, D, layout=gl.SliceLayout(0, loaded))
    q_tile.store(gl.load(q + q_at[:, None] + cols[None, :], mask=(rows < last_row)[:, None], other=0.0))
    fence_async_shared()

    zeros = gl.full([BLOCK_M, BLOCK_N], 0.0, gl.float32, scored)
    acc = gl.full([BLOCK_M, D], 0.0, gl.float32, summed)
    last = begin + (steps - 1) * BLOCK_N
    mbarrier.wait(ready.index(0), 0)
    products = warpgroup_mma(q_tile, k_tiles.index(0).permute((1, 0)), zeros, use_acc=False)
    mbarrier.arrive(free.index(0))
    keys = last + gl.arange(0, BLOCK_N, layout=gl.SliceLayout(0, scored))
    products = gl.where((keys < end)[None, :], products, float("-inf"))
    m = gl.max(products, 1) * scale
    p = gl.exp2(products * scale - gl.where(m == float("-inf"), 0.0, m)[:, None])
    l = gl.sum(p, 1)
    weights = gl.convert_layout(p.to(dtype), weighing)
    mbarrier.wait(ready.index(1), 0)
    if last + BLOCK_N > end:  # what lies in a page's other slots may be NaN, and 0 * NaN is
        slots = last + gl.arange(0, BLOCK_N, layout=gl.SliceLayout(1, loaded))
        v_tiles.index(1).store(gl.where((slots < end)[:, None], v_tiles.index(1).load(loaded), 0.0))
        fence_async_shared()

    for i in range(1, steps):
        slot = i % STAGES
        products = warpgroup_mma(q_tile, k_tiles.index(slot).permute((1, 0)), zeros, use_acc=False, is_async=True)
        acc = warpgroup_mma(weights, v_tiles.index(slot), acc, is_async=True)
        products = warpgroup_mma_wait(1, deps=[products])
        m_new = gl.maximum(m, gl.max(products, 1) * scale)
        p = gl.exp2(products * scale - m_new[:, None])
        rescale = gl.exp2(m - m_new)
        l = l * rescale + gl.sum(p, 1)
        m = m_new
        next_weights = gl.convert_layout(p.to(dtype), weighing)
        # A branch, and so a border: without it the exponentials were moved behind the wait for the second product.
        mbarrier.wait(ready.index((i + 1) % STAGES), ((i + 1) // STAGES) & 1)
        acc, weights = warpgroup_mma_wait(0, deps=[acc, weights])
        mbarrier.arrive(free.index(slot))
        acc = acc * gl.convert_layout(rescale, gl.SliceLayout(1, summed))[:, None]
        weights = next_weights
    acc = warpgroup_mma(weights, v_tiles.index(steps % STAGES), acc)

    rows = first + gl.arange(0, BLOCK_M, layout=gl.SliceLayout(1, summed))
    cols = gl.arange(0, D, layout=gl.SliceLayout(0, summed))
    m = gl.convert_layout(m, gl.SliceLayout(1, summed))
    l = gl.convert_layout(l, gl.SliceLayout(1, summed))
    seen = (rows >= first_row) & (rows < end_row) & (l > 0)
    safe = gl.where(l > 0, l, 1.0)
    state = ((rows // G).to(gl.int64) * N + split) * HEADS + kv_head * G + rows % G
    result = gl.where(seen[:, None], acc * (1.0 / safe)[:, None], 0.0)
    gl.store(v_out + state[:, None] * D + cols[None, :], result, mask=(rows < last_row)[:, None])
    gl.store(s_out + state, gl.where(seen, m + gl.log2(safe), float("-inf")), mask=rows < last_row)


@gluon.jit
def wait_if_last():
    """As wait_for_launch_ahead, in Gluon."""
    last = (gl.program_id(0) == gl.num_programs(0) - 1) & (gl.program_id(1) == gl.num_programs(1) - 1)
    if last & (gl.program_id(2) == gl.num_programs(2) - 1):
        gdc_wait()


@gluon.jit(do_not_specialize=["B", "P", "groups", "N", "page_rows", "v_row"])
def attend_bulk_kernel(
    q,  # [B, Hq, D]
    k,  # descriptor of rows of all KV heads: a key's of the prefix, or a slot's of a page
    v,  # the same
    group_indptr,  # [groups + 1]; this and the next three only with pages
    indptr,  # [groups + 1]
    indices,
    last_page_len,  # [groups]
    v_out,  # [B, splits of N, Hq, D] float32; a request's states are N apart
    s_out,  # [B, splits of N, Hq] float32
    scale,
    B, P, groups, HEADS, N,
    q_b, q_h, k_h, v_h,  # strides
    page_rows,  # rows from one page to the next
    v_row,  # rows from a page's keys to its values
    PAGE: gl.constexpr,  # 0: no pages
    GROUPED: gl.constexpr,  # more groups than one
    D: gl.constexpr,
    CONSUMERS: gl.constexpr,  # 1 or 2
    BLOCK_N: gl.constexpr,
    STAGES: gl.constexpr,
    REGISTERS: gl.constexpr,
    BESIDE: gl.constexpr,  # runs beside the launch ahead of it
):  # fmt: skip
    """Keys that many rows share: the prefix, or the pages of a level's groups.

    One warp fetches tiles; four attend with 64 rows, or two times four with 64 each. Nothing makes the two keep step:
    while one has its softmax, the matrix units work for the other.
    """
    gdc_launch_dependents()
    kv_head = gl.program_id(1)
    BLOCK_M: gl.constexpr = 64
    ROWS: gl.constexpr = CONSUMERS * BLOCK_M
    G = HEADS // gl.num_programs(1)
    # Rows first_row to end_row attend; those from `first` to last_row, at most ROWS, are this program's to write.
    split = gl.program_id(2)
    first = gl.program_id(0) * ROWS
    first_row = 0
    end_row = B * G
    last_row = B * G
    length = P
    pages = 0
    table = indices
    group = 0
    if GROUPED:
        found, first = find_block(group_indptr, groups, last_row, gl.program_id(0), G, ROWS)
        group = gl.minimum(gl.maximum(found, 0), groups - 1)
    if PAGE > 0:
        first_row = gl.load(group_indptr + group).to(gl.int32) * G
        end_row = gl.load(group_indptr + group + 1).to(gl.int32) * G
        first_page = gl.load(indptr + group)
        pages = (gl.load(indptr + group + 1) - first_page).to(gl.int32)
        length = gl.where(pages > 0, (pages - 1) * PAGE + gl.load(last_page_len + group).to(gl.int32), 0)
        table = indices + first_page
    if GROUPED:
        last_row = gl.where(found < 0, first_row, gl.where(found < groups - 1, end_row, last_row))
        if found == groups:
            if BESIDE:
                wait_if_last()
            return

    dtype: gl.constexpr = q.dtype.element_ty
    tiled: gl.constexpr = gl.NVMMASharedLayout.get_default_for([BLOCK_N, D], dtype)
    k_tiles = gl.allocate_shared_memory(dtype, [STAGES, BLOCK_N, D], tiled)
    v_tiles = gl.allocate_shared_memory(dtype, [STAGES, BLOCK_N, D], tiled)
    shared_q: gl.constexpr = gl.NVMMASharedLayout.get_default_for([BLOCK_M, D], dtype)
    q_tiles = gl.allocate_shared_memory(dtype, [CONSUMERS, BLOCK_M, D], shared_q)
    ready = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    free = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    for i in gl.static_range(STAGES):
        mbarrier.init(ready.index(i), count=1)
        mbarrier.init(free.index(i), count=CONSUMERS)

    share = gl.cdiv(gl.cdiv(length, BLOCK_N), gl.num_programs(2)) * BLOCK_N
    begin = gl.minimum(split * share, length)
    end = gl.minimum(begin + share, length)
    steps = gl.maximum(gl.cdiv(end - begin, BLOCK_N), 1)
    fetching = (
        k, v, k_tiles, v_tiles, ready, free, begin, steps, kv_head * k_h, kv_head * v_h, table, pages, page_rows, v_row,
    )  # fmt: skip
    attending = (
        q, q_tiles.index(0), k_tiles, v_tiles, ready, free, v_out, s_out, scale, begin, end, steps, first,
        first_row, end_row, last_row, G, HEADS, N, kv_head, split, q_b, q_h,
    )  # fmt: skip
    if CONSUMERS == 1:
        gl.warp_specialize([(consume, attending), (produce, fetching)], [1], [24])
    else:
        attending_too = (
            q, q_tiles.index(1), k_tiles, v_tiles, ready, free, v_out, s_out, scale, begin, end, steps, first + BLOCK_M,
            first_row, end_row, last_row, G, HEADS, N, kv_head, split, q_b, q_h,
        )  # fmt: skip
        gl.warp_specialize(
            [(consume, attending), (consume, attending_too), (produce, fetching)], [4, 1], [REGISTERS, 24]
        )
    if BESIDE:
        wait_if_last()


@gluon.jit
def find_groups(group_indptr, groups, request):
    """As group_of, in Gluon, for a tensor of requests: where groups are not of one request each."""
    group = request * 0
    begun = request * 0
    first = gl.load(group_indptr)
    for i in range(groups):
        begun += (first <= request).to(gl.int32)
        first = gl.load(group_indptr + i + 1)
        group += (first <= request).to(gl.int32)
    return group, begun > group


@gluon.jit
def look_up(
    places, lengths, group_indptr, indptr, last_page_len, items, B, groups, parts, HKV: gl.constexpr, CUT: gl.constexpr,
    PAGE: gl.constexpr, STEP: gl.constexpr, GROUPED: gl.constexpr,
):  # fmt: skip
    """Where in `indices` the pages of each item of this program begin, and how many keys it has: a thread an item."""
    MOST: gl.constexpr = lengths.shape[0]
    n = gl.arange(0, MOST, layout=gl.BlockedLayout([1], [32], [gl.num_warps()], [0]))
    item = gl.program_id(0) + n * gl.num_programs(0)
    request = item // HKV
    if CUT:
        request = request % B
    group = request
    exists = (item < items) & (request < groups)
    first_page = gl.load(indptr + group, mask=exists, other=0)
    next_page = gl.load(indptr + group + 1, mask=exists, other=0)
    last = gl.load(last_page_len + group, mask=exists, other=0)
    if GROUPED:
        begin = gl.load(group_indptr + group, mask=exists, other=-1)
        end = gl.load(group_indptr + group + 1, mask=exists, other=-1)
        alone = (begin == request) & (end == request + 1)
        if gl.sum(((item < items) & (alone == 0)).to(gl.int32), 0) > 0:
            group, exists = find_groups(group_indptr, groups, request)
            exists = exists & (item < items)
            first_page = gl.load(indptr + group, mask=exists, other=0)
            next_page = gl.load(indptr + group + 1, mask=exists, other=0)
            last = gl.load(last_page_len + group, mask=exists, other=0)
    pages = (next_page - first_page).to(gl.int32)
    length = gl.where(pages > 0, (pages - 1) * PAGE + last.to(gl.int32), 0)
    begin = length * 0
    if CUT:
        share = gl.cdiv(gl.cdiv(length, STEP), parts) * STEP
        begin = gl.minimum(item // (HKV * B) * share, length)
        length = gl.minimum(begin + share, length) - begin
    places.store(first_page.to(gl.int32) + begin // PAGE)
    lengths.store(length)


@gluon.jit
def entry(table, n):
    """Entry n of a table in shared memory; past its end, an earlier one."""
    single: gl.constexpr = gl.BlockedLayout([1], [32], [gl.num_warps()], [0])
    entries = table._reinterpret(gl.int32, [table.shape[0], 1], table.layout)
    return gl.max(entries.index(n % table.shape[0]).load(single), 0)


@gluon.jit
def fetch_own(
    q, kv, tiles, q_tiles, ready, free, q_ready, q_free, places, lengths, indices, items, B, q_rows, kv_h, page_rows,
    v_row, HKV: gl.constexpr, CUT: gl.constexpr, G: gl.constexpr,
):  # fmt: skip
    """The warp that fetches: of each item q, and of each step two tiles of K and two of V."""
    PAGE: gl.constexpr = kv.block_shape[0]
    SLOTS: gl.constexpr = tiles.shape[0]
    BLOCK_N: gl.constexpr = tiles.shape[1]
    HALF: gl.constexpr = BLOCK_N // PAGE
    BYTES: gl.constexpr = BLOCK_N * tiles.shape[2] * tiles.dtype.primitive_bitwidth // 8
    Q_BYTES: gl.constexpr = q_tiles.shape[1] * q_tiles.shape[2] * q_tiles.dtype.primitive_bitwidth // 8
    slot = 0
    phase = 1
    n = 0
    item = gl.program_id(0)
    length = entry(lengths, 0)
    table = indices + entry(places, 0)
    numbers = page_numbers(table, 0, gl.cdiv(length, PAGE), 2 * HALF)
    while item < items:
        kv_head = item % HKV
        mbarrier.wait(q_free.index(n & 1), ((n >> 1) & 1) ^ 1)
        mbarrier.expect(q_ready.index(n & 1), Q_BYTES)
        request = item // HKV
        if CUT:
            request = request % B
        row = request * q_rows + kv_head * G
        tma.async_copy_global_to_shared(q, [row, 0], q_ready.index(n & 1), q_tiles.index(n & 1))
        steps = gl.maximum(gl.cdiv(length, 2 * BLOCK_N), 1)
        for i in range(steps):
            for j in range(4):
                mbarrier.wait(free.index(slot), phase)
                mbarrier.expect(ready.index(slot), BYTES)
                row = gl.where(j >= 2, v_row, 0)
                for page in gl.static_range(HALF):
                    at = gl.where(j % 2 == 0, numbers[page], numbers[HALF + page]) * page_rows + row
                    tile = tiles.index(slot).slice(page * PAGE, PAGE)
                    tma.async_copy_global_to_shared(kv, [at, kv_head * kv_h], ready.index(slot), tile)
                phase = gl.where(slot == SLOTS - 1, phase ^ 1, phase)
                slot = gl.where(slot == SLOTS - 1, 0, slot + 1)
            if i + 1 < steps:
                numbers = page_numbers(table, (i + 1) * 2 * HALF, gl.cdiv(length, PAGE), 2 * HALF)
        item += gl.num_programs(0)
        n += 1
        length = entry(lengths, n)
        table = indices + entry(places, n)
        numbers = page_numbers(table, 0, gl.cdiv(length, PAGE), 2 * HALF)


@gluon.jit
def merge_own(
    v, s, v_out, s_out, items, HEADS, HKV: gl.constexpr, G: gl.constexpr, D: gl.constexpr, N: gl.constexpr
):  # fmt: skip
    """As merge_states_kernel, in Gluon, for the rows of this program's items; of up to 4 states, two pieces a thread.

    v and s begin with the own states, the last of each row's N.
    """
    PIECES: gl.constexpr = D // 4
    BLOCK_R: gl.constexpr = 32 * gl.num_warps() * (2 if N <= 4 else 1)
    laid: gl.constexpr = gl.BlockedLayout([1, 4], [32, 1], [gl.num_warps(), 1], [1, 0])
    r = gl.arange(0, BLOCK_R, layout=gl.SliceLayout(1, laid))
    cols = (r % PIECES * 4)[:, None] + gl.arange(0, 4, layout=gl.SliceLayout(0, laid))[None, :]
    count = gl.cdiv(items - gl.program_id(0), gl.num_programs(0)) * G
    tl.debug_barrier()  # the own states are other warps'
    gdc_wait()
    for start in range(0, count, BLOCK_R // PIECES):
        n = start + r // PIECES
        live = n < count
        item = gl.program_id(0) + n // G * gl.num_programs(0)
        request = (item // HKV).to(gl.int64)
        head = item % HKV * G + n % G
        state = request * N * HEADS + head
        values = ()
        sizes = ()
        for i in gl.static_range(N):
            at = v + (state - i * HEADS)[:, None] * D + cols
            values = values + (gl.load(at, mask=live[:, None], other=0.0, volatile=True),)
        for i in gl.static_range(N):
            sizes = sizes + (gl.load(s + state - i * HEADS, mask=live, other=float("-inf"), volatile=True),)
        m = sizes[0]
        for i in gl.static_range(1, N):
            m = gl.maximum(m, sizes[i])
        shift = gl.where(m == float("-inf"), 0.0, m)
        total = gl.full([BLOCK_R], 0.0, gl.float32, gl.SliceLayout(1, laid))
        acc = gl.full([BLOCK_R, 4], 0.0, gl.float32, laid)
        for i in gl.static_range(N):
            weight = gl.exp2(sizes[i] - shift)
            acc += gl.where(weight[:, None] > 0, values[i], 0.0) * weight[:, None]
            total += weight
        total = gl.where(m == float("-inf"), 1.0, total)
        row = request * HEADS + head
        result = (acc * (1.0 / total)[:, None]).to(v_out.dtype.element_ty)
        gl.store(v_out + row[:, None] * D + cols, result, mask=live[:, None])
        gl.store(s_out + row, m + gl.log2(total), mask=live & (r % PIECES == 0))


@gluon.jit
def attend_own(
    tiles, q_tiles, p_tiles, ready, free, q_ready, q_free, lengths, v_out, s_out, merged_v, merged_s, scale, items, B,
    HEADS, N, HKV: gl.constexpr, CUT: gl.constexpr, G: gl.constexpr, MERGED: gl.constexpr,
):  # fmt: skip
    """Four warps that attend. Keys are the rows of the product and queries its columns, since 8 of those are enough.

    A step starts both halves of K · Q, has their softmax together, and then both halves of V · P.
    """
    dtype: gl.constexpr = tiles.dtype
    SLOTS: gl.constexpr = tiles.shape[0]
    BLOCK_N: gl.constexpr = tiles.shape[1]
    D: gl.constexpr = tiles.shape[2]
    BLOCK_M: gl.constexpr = q_tiles.shape[1]
    STEP: gl.constexpr = 2 * BLOCK_N
    loaded: gl.constexpr = gl.BlockedLayout([1, 8], [256 // D, D // 8], [gl.num_warps(), 1], [1, 0])
    columns: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [gl.num_warps(), 1], [16, BLOCK_M, 16])
    zeros = gl.full([BLOCK_N, BLOCK_M], 0.0, gl.float32, columns)
    keys = gl.arange(0, BLOCK_N, layout=gl.SliceLayout(1, columns))
    rows = gl.arange(0, BLOCK_M, layout=gl.SliceLayout(0, columns))
    at = gl.arange(0, D, layout=gl.SliceLayout(1, columns))[:, None] + rows[None, :] * D

    slot = 0
    phase = 0
    n = 0
    item = gl.program_id(0)
    while item < items:
        length = entry(lengths, n)
        q_tile = q_tiles.index(n & 1).permute((1, 0))
        mbarrier.wait(q_ready.index(n & 1), (n >> 1) & 1)
        m = gl.full([BLOCK_M], float("-inf"), gl.float32, gl.SliceLayout(0, columns))
        l = gl.full([BLOCK_M], 0.0, gl.float32, gl.SliceLayout(0, columns))
        acc = gl.full([D, BLOCK_M], 0.0, gl.float32, columns)
        for start in range(0, gl.maximum(length, 1), STEP):
            mbarrier.wait(ready.index(slot), phase)
            one = warpgroup_mma(tiles.index(slot), q_tile, zeros, use_acc=False, is_async=True)
            slot_2 = gl.where(slot == SLOTS - 1, 0, slot + 1)
            phase = gl.where(slot == SLOTS - 1, phase ^ 1, phase)
            mbarrier.wait(ready.index(slot_2), phase)
            two = warpgroup_mma(tiles.index(slot_2), q_tile, zeros, use_acc=False, is_async=True)
            one, two = warpgroup_mma_wait(0, deps=[one, two])
            mbarrier.arrive(free.index(slot))
            mbarrier.arrive(free.index(slot_2))
            one = gl.where((start + keys < length)[:, None], one, float("-inf"))
            two = gl.where((start + BLOCK_N + keys < length)[:, None], two, float("-inf"))
            m_new = gl.maximum(m, gl.max(gl.maximum(one, two), 0) * scale)
            shift = gl.where(m_new == float("-inf"), 0.0, m_new)
            one = gl.exp2(one * scale - shift[None, :])
            two = gl.exp2(two * scale - shift[None, :])
            p_tiles.index(0).permute((1, 0)).store(one.to(dtype))
            p_tiles.index(1).permute((1, 0)).store(two.to(dtype))
            fence_async_shared()
            rescale = gl.exp2(m - shift)
            m = m_new
            acc = acc * rescale[None, :]
            slot = gl.where(slot_2 == SLOTS - 1, 0, slot_2 + 1)
            phase = gl.where(slot_2 == SLOTS - 1, phase ^ 1, phase)
            mbarrier.wait(ready.index(slot), phase)
            slot_2 = gl.where(slot == SLOTS - 1, 0, slot + 1)
            phase_2 = gl.where(slot == SLOTS - 1, phase ^ 1, phase)
            if start + STEP > length:  # what lies in a page's other slots may be NaN, and 0 * NaN is
                mbarrier.wait(ready.index(slot_2), phase_2)
                slots = start + gl.arange(0, BLOCK_N, layout=gl.SliceLayout(1, loaded))
                v_tile = tiles.index(slot)
                v_tile.store(gl.where((slots < length)[:, None], v_tile.load(loaded), 0.0))
                v_tile = tiles.index(slot_2)
                v_tile.store(gl.where((slots + BLOCK_N < length)[:, None], v_tile.load(loaded), 0.0))
                fence_async_shared()
            v_tile = tiles.index(slot).permute((1, 0))
            acc = warpgroup_mma(v_tile, p_tiles.index(0).permute((1, 0)), acc, is_async=True)
            mbarrier.wait(ready.index(slot_2), phase_2)
            v_tile = tiles.index(slot_2).permute((1, 0))
            acc = warpgroup_mma(v_tile, p_tiles.index(1).permute((1, 0)), acc, is_async=True)
            l = l * rescale + gl.sum(one + two, 0)
            acc = warpgroup_mma_wait(0, deps=[acc])
            mbarrier.arrive(free.index(slot))
            mbarrier.arrive(free.index(slot_2))
            slot = gl.where(slot_2 == SLOTS - 1, 0, slot_2 + 1)
            phase = gl.where(slot_2 == SLOTS - 1, phase_2 ^ 1, phase_2)
        mbarrier.arrive(q_free.index(n & 1))
        request = item // HKV
        part = 0
        if CUT:
            part = request // B
            request = request % B
        state = (request.to(gl.int64) * N + part) * HEADS + item % HKV * G
        safe = gl.where(l > 0, l, 1.0)
        gl.store(v_out + state * D + at, acc * (1.0 / safe)[None, :], mask=(rows < G)[None, :])
        gl.store(s_out + state + rows, gl.where(l > 0, m + gl.log2(safe), float("-inf")), mask=rows < G)
        item += gl.num_programs(0)
        n += 1
    if MERGED > 0:
        merge_own(v_out, s_out, merged_v, merged_s, items, HEADS, HKV, G, D, MERGED)


@gluon.jit(do_not_specialize=["items", "B", "groups", "parts", "N", "q_rows", "page_rows", "v_row"])
def attend_own_kernel(
    q,  # descriptor of rows of all query heads
    kv,  # descriptor of rows of all KV heads: a slot's of a page
    group_indptr,  # [groups + 1]; unused if not GROUPED
    indptr,  # [groups + 1]
    indices,
    last_page_len,  # [groups]
    v_out,  # [B, parts of N, Hq, D] float32; a request's states are N apart
    s_out,  # [B, parts of N, Hq] float32
    merged_v,  # [B, Hq, D]; this and the next only if something is MERGED
    merged_s,  # [B, Hq] float32
    scale,
    items,  # requests * KV heads * parts
    B, groups, parts, HEADS, N,
    q_rows,  # rows from one request's queries to the next's
    kv_h,  # a stride
    page_rows,  # rows from one page to the next
    v_row,  # rows from a page's keys to its values
    PAGE: gl.constexpr,
    GROUPED: gl.constexpr,
    HKV: gl.constexpr,
    G: gl.constexpr,
    D: gl.constexpr,
    CUT: gl.constexpr,  # more parts than one
    BLOCK_M: gl.constexpr,
    SLOTS: gl.constexpr,
    FETCHING: gl.constexpr,  # registers a thread of the warp that fetches
    MERGED: gl.constexpr,  # 0, or the number of states of each row, which this kernel then merges
    BESIDE: gl.constexpr,  # runs beside the launch ahead of it
):  # fmt: skip
    """A request's own keys, few query heads to a KV head. A program takes one item after the other, 128 at most.

    Its tiles are of 64 keys, K's or V's, and go round in SLOTS slots: the next item's are on their way while this one's
    are worked on. q has two slots of its own. All items are looked up at the start, which keeps the loops short.
    """
    gdc_launch_dependents()
    dtype: gl.constexpr = kv.dtype
    BLOCK_N: gl.constexpr = 64
    flat: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [0])
    places = gl.allocate_shared_memory(gl.int32, [128], flat)
    lengths = gl.allocate_shared_memory(gl.int32, [128], flat)
    look_up(
        places, lengths, group_indptr, indptr, last_page_len, items, B, groups, parts, HKV, CUT, PAGE, 2 * BLOCK_N,
        GROUPED,
    )  # fmt: skip
    tiled: gl.constexpr = gl.NVMMASharedLayout.get_default_for([BLOCK_N, D], dtype)
    shared_q: gl.constexpr = gl.NVMMASharedLayout.get_default_for([BLOCK_M, D], dtype)
    shared_p: gl.constexpr = gl.NVMMASharedLayout.get_default_for([BLOCK_M, BLOCK_N], dtype)
    tiles = gl.allocate_shared_memory(dtype, [SLOTS, BLOCK_N, D], tiled)
    q_tiles = gl.allocate_shared_memory(dtype, [2, BLOCK_M, D], shared_q)
    p_tiles = gl.allocate_shared_memory(dtype, [2, BLOCK_M, BLOCK_N], shared_p)
    ready = gl.allocate_shared_memory(gl.int64, [SLOTS, 1], mbarrier.MBarrierLayout())
    free = gl.allocate_shared_memory(gl.int64, [SLOTS, 1], mbarrier.MBarrierLayout())
    q_ready = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
    q_free = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
    for i in gl.static_range(SLOTS):
        mbarrier.init(ready.index(i), count=1)
        mbarrier.init(free.index(i), count=1)
    for i in gl.static_range(2):
        mbarrier.init(q_ready.index(i), count=1)
        mbarrier.init(q_free.index(i), count=1)
    # Written here, since a name for a tuple makes ordinary values of its constants.
    gl.warp_specialize([
        (attend_own, (
            tiles, q_tiles, p_tiles, ready, free, q_ready, q_free, lengths, v_out, s_out, merged_v, merged_s, scale,
            items, B, HEADS, N, HKV, CUT, G, MERGED,
        )),
        (fetch_own, (
            q, kv, tiles, q_tiles, ready, free, q_ready, q_free, places, lengths, indices, items, B, q_rows, kv_h,
            page_rows, v_row, HKV, CUT, G,
        )),
    ], [1], [FETCHING])  # fmt: skip
    if BESIDE and MERGED == 0:
        wait_if_last()


@triton.jit(do_not_specialize=["rows", "N"])
def merge_states_kernel(
    v,  # [B, N, Hq, D] float32
    s,  # [B, N, Hq] float32
    v_out,  # [B, Hq, D]
    s_out,  # [B, Hq] float32
    rows, N, HEADS,
    D: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_R: tl.constexpr,
    BLOCK_D: tl.constexpr,
    OVERLAP: tl.constexpr,  # starts before the launch before it is over
):  # fmt: skip
    """A row of the tile is a piece of BLOCK_D columns: one thread's, which adds up BLOCK_N states asked for at once."""
    PIECES: tl.constexpr = D // BLOCK_D
    WHOLE: tl.constexpr = BLOCK_R // PIECES
    r = tl.arange(0, BLOCK_R)
    row = tl.program_id(0) * WHOLE + r // PIECES
    live = (row < rows) & (r < WHOLE * PIECES)
    cols = (r % PIECES * BLOCK_D)[:, None] + tl.arange(0, BLOCK_D)[None, :]
    state = (row // HEADS).to(tl.int64) * N * HEADS + row % HEADS

    m = tl.full([BLOCK_R], float("-inf"), tl.float32)
    total = tl.zeros([BLOCK_R], tl.float32)
    acc = tl.zeros([BLOCK_R, BLOCK_D], tl.float32)
    if OVERLAP:
        gdc_wait()
    for start in range(0, N, BLOCK_N):
        # Volatile, since the assembler would put off some until others have been used: they wait together now.
        values = ()
        sizes = ()
        for n in tl.static_range(BLOCK_N):
            exists = (live & (start + n < N))[:, None]
            at = v + (state + n * HEADS)[:, None] * D + cols
            values = values + (tl.load(at, mask=exists, other=0.0, volatile=True),)
        for n in tl.static_range(BLOCK_N):
            exists = live & (start + n < N)
            sizes = sizes + (tl.load(s + state + n * HEADS, mask=exists, other=float("-inf"), volatile=True),)
        m_new = m
        for n in tl.static_range(BLOCK_N):
            m_new = tl.maximum(m_new, sizes[n])
        shift = tl.where(m_new == float("-inf"), 0.0, m_new)
        rescale = tl.exp2(m - shift)
        total *= rescale
        acc *= rescale[:, None]
        for n in tl.static_range(BLOCK_N):
            weight = tl.exp2(sizes[n] - shift)
            acc += tl.where(weight[:, None] > 0, values[n], 0.0) * weight[:, None]
            total += weight
        m = m_new
        state += BLOCK_N * HEADS
    total = tl.where(m == float("-inf"), 1.0, total)
    result = (acc * (1.0 / total)[:, None]).to(v_out.dtype.element_ty)
    tl.store(v_out + row.to(tl.int64)[:, None] * D + cols, result, mask=live[:, None])
    tl.store(s_out + row, m + tl.log2(total), mask=live & (r % PIECES == 0))


@functools.cache
def gpu(device: torch.device):
    """Its properties, asked for once: the launches below look at them more often than they compute."""
    return torch.cuda.get_device_properties(device)


def multiprocessors(q: torch.Tensor) -> int:
    """Of the GPU; the interpreter is taken for a GPU of four, so that splits are seen there too."""
    return gpu(q.device).multi_processor_count if q.is_cuda else 4


def overlap(q: torch.Tensor) -> bool:
    """Whether the GPU can start a launch before the one ahead of it is over: Hopper and later."""
    return q.is_cuda and gpu(q.device).major >= 9


def tile(q: torch.Tensor, rows: int, keys: int, programs: int) -> dict:
    """Tile sizes, warps and pipeline depth of a launch of `programs` programs, each `rows` query rows and `keys` keys.

    From 64 rows on the matrix units work (wgmma takes 64 rows at least), and three tiles of K and V in flight pay; four
    where the launch leaves half of the multiprocessors to others, which then fill the memory's queues. Up to 16 rows
    are bound by memory: four tiles where each program has a multiprocessor to itself and many keys. Programs that do
    not all fit on the GPU at once hide each other's waiting: the smaller, the more of them run. 64 registers a thread
    let three of them run beside a program of 128 query rows.
    """
    block_d = max(16, triton.next_power_of_2(q.shape[2]))
    row_bytes = block_d * q.element_size()
    most = 128 if q.element_size() == 2 and row_bytes <= 256 else 64 if row_bytes <= 1024 else 16
    block_m = min(most, max(16, triton.next_power_of_2(rows)))
    crowd = block_m == 16 and programs > 2 * multiprocessors(q)
    block_n, stages = (64 if keys >= 512 else 32, 2) if crowd else (64, 3)
    half = 2 * programs <= multiprocessors(q)
    alone = programs <= multiprocessors(q) and not half and keys >= 512
    stages = 4 if (half if block_m >= 64 else alone) else stages
    config = {
        "D": q.shape[2],
        "BLOCK_M": block_m,
        "BLOCK_N": min(block_n, max(16, 16384 // row_bytes)),
        "BLOCK_D": block_d,
        "num_warps": 8 if block_m * block_d > 64 * 128 else 4,
        "num_stages": stages if row_bytes <= 256 else min(stages, 3) if row_bytes == 512 else 2,
    }
    if overlap(q) and block_n == 32 and q.element_size() == 2 and row_bytes == 256:
        config["maxnreg"] = 64
    return config


def row_blocks(q: torch.Tensor, rows: int) -> int:
    """How many blocks of query rows `rows` rows are."""
    return triton.cdiv(rows, tile(q, rows, 0, 0)["BLOCK_M"])


def rows_descriptor(x: torch.Tensor, rows: int, row_stride: int, heads: int, head_stride: int, block: int):
    """Of x seen as `rows` rows of all heads; a fetch is `block` rows of one head. None if the copy engine cannot do it.

    It wants columns without gaps, steps of 16 bytes and 32-bit coordinates, and its swizzle repeats every 8 rows.
    """
    dim = x.shape[-1]
    cols = (heads - 1) * head_stride + dim
    steps = [x.data_ptr(), row_stride * x.element_size(), head_stride * x.element_size()]
    fits = x.element_size() == 2 and dim in (64, 128) and x.stride(-1) == 1 and all(step % 16 == 0 for step in steps)
    if not fits or block % 8 or block & (block - 1) or row_stride <= 0 or not 0 < rows < 2**31 or cols >= 2**31:
        return None
    layout = gl.NVMMASharedLayout.get_default_for([block, dim], gl.float16)
    return TensorDescriptor(x, [rows, cols], [row_stride, 1], [block, dim], layout)


def described_pages(kv_cache: torch.Tensor):
    """kv_cache as rows: a descriptor, the rows from page to page and from keys to values. None if it cannot be."""
    pages, _, page, kv_heads, _ = kv_cache.shape
    kv_p, kv_2, kv_n, kv_h, _ = kv_cache.stride()
    if not 0 < page <= 64 or not pages or kv_n <= 0 or kv_p % kv_n or kv_2 % kv_n:
        return None
    rows = ((pages - 1) * kv_p + kv_2) // kv_n + page
    described = rows_descriptor(kv_cache, rows, kv_n, kv_heads, kv_h, page)
    return None if described is None else (described, kv_p // kv_n, kv_2 // kv_n)


def described_own(q: torch.Tensor, kv_cache: torch.Tensor):
    """What attend_own_kernel fetches: q as rows, the rows from request to request, and kv_cache. None if it cannot."""
    group = q.shape[1] // kv_cache.shape[3]
    q_b, q_h, _ = q.stride()
    pages = described_pages(kv_cache) if bulk(q) and group <= 16 else None
    if pages is None or q_h <= 0 or q_b % q_h:
        return None
    rows = (q.shape[0] - 1) * (q_b // q_h) + q.shape[1]
    described = rows_descriptor(q, rows, q_h, 1, 0, 8 if group <= 8 else 16)
    return None if described is None else (described, q_b // q_h, *pages)


def copies(q: torch.Tensor, kv_heads: int) -> bool:
    """Whether attend_own_kernel can attend with q, if it can be described; it wants half of the multiprocessors."""
    return bulk(q) and 2 * q.shape[0] * kv_heads >= multiprocessors(q)


def bulk(q: torch.Tensor) -> bool:
    """Whether attend_bulk_kernel can attend with q, if the keys can be fetched: in half precision, on Hopper alone.

    Its matrix instructions are Hopper's; later GPUs have others.
    """
    hopper = q.is_cuda and gpu(q.device).major == 9
    return hopper and q.element_size() == 2 and q.stride(2) == 1


def fetches(q: torch.Tensor, groups: int, kv_heads: int) -> bool:
    """Whether attend_bulk_kernel is for a level of so many groups: for one, and for those of more than 16 rows."""
    return bulk(q) and (groups == 1 or triton.cdiv(q.shape[0], groups) * q.shape[1] > 16 * kv_heads)


def shared_splits(
    q: torch.Tensor, keys: int, kv_heads: int, other_keys: int, fetched: bool, copied: bool = False
) -> int:
    """In how many parts `keys` shared keys are cut, beside launches that read `other_keys` keys.

    fetched: by attend_bulk_kernel. copied: the others by attend_own_kernel. With many rows, fetched, the number with
    the least estimated time. Else one program on every multiprocessor, or on a half or a quarter of them where most, or
    nearly all, of the reading is elsewhere. No part is under 256 keys. Each is a state more to write, read and merge:
    15 at most.
    """
    batch, heads, dim = q.shape
    most = max(1, min(keys // 256, 15))
    programs = row_blocks(q, batch * heads // kv_heads) * kv_heads
    if batch * heads // kv_heads <= 64 or not fetched:
        rest = 0.25 if other_keys >= 8 * keys else 0.5 if other_keys >= 2 * keys else 1.0
        rest = 0.75 if fetched and keys <= other_keys < 2 * keys else rest
        rest = 0.375 if copied and not fetched and rest == 0.25 else rest
        return max(1, min(round(rest * multiprocessors(q) / max(1, programs)), most))
    key_bytes = kv_heads * dim * 4
    return quickest(
        most, programs, multiprocessors(q), 512 * dim * keys, keys * key_bytes, other_keys * key_bytes, q.numel() * 8,
        15e3 if copied else 0,
    )  # fmt: skip


@functools.cache
def quickest(most, programs, processors, work, own_bytes, other_bytes, state_bytes, beside) -> int:
    """The number of parts, 1 to `most`, with the least estimated time. It depends on sizes alone, and is kept.

    A program of `work` operations, divided by the parts, takes a multiprocessor, 4.2 TFLOP/s. Those left over read
    50 GB/s each, the others `beside` bytes a microsecond, and what is not read by then is read at 4.26 TB/s.
    """

    def microseconds(parts: int) -> float:
        waves = triton.cdiv(programs * parts, processors)
        shared = 7 + waves * work / parts / 4.2e6
        busy = min(processors, programs * parts)
        left = other_bytes - ((processors - busy) * 50e3 + busy * beside) * shared
        reading = 5 + (other_bytes + own_bytes) / 4.26e6
        shared += max(0, left) / 4.26e6
        return max(shared, reading) + min(shared, reading) / 4 + parts * state_bytes / 4.26e6

    return min(range(1, most + 1), key=microseconds)


def own_splits(q: torch.Tensor, groups: int, keys: int, kv_heads: int, behind: int = 0, copied: bool = False) -> int:
    """In how many parts the `keys` keys of each of `groups` groups are cut. `behind`: keys that later launches read.

    A program on every multiprocessor where there are few; four, which hide each other's waiting, where there are many
    and not as much is to be read behind them, by others that hide it too; sixteen where they are single warps. Four
    at most if they are copied by attend_own_kernel, which waits for nothing.
    """
    rows = triton.cdiv(q.shape[0], max(1, groups)) * q.shape[1] // kv_heads
    programs = max(1, groups * kv_heads * row_blocks(q, rows))
    if copied:
        return max(1, min(4 * multiprocessors(q) // programs, keys // 256, 15))
    warps = max(1, min(16 * multiprocessors(q) // programs, keys // 256))
    if rows == 1 and alone(q, programs * warps):
        return warps
    crowd = 4 if 2 * programs >= multiprocessors(q) and behind < groups * keys else 1
    return max(1, min(crowd * multiprocessors(q) // programs, keys // 128, 15))


def mean_keys(level: tuple, kv_cache: torch.Tensor) -> int:
    """Keys a group. Lengths are on the device; their mean, a hint, is not."""
    return level[2].shape[0] * kv_cache.shape[2] // max(1, level[1].shape[0] - 1)


def workspace(q: torch.Tensor, parts: int) -> tuple[torch.Tensor, torch.Tensor]:
    """v[B, parts, Hq, D] and s[B, parts, Hq], float32, unwritten."""
    v = torch.empty(q.shape[0], parts, q.shape[1], q.shape[2], dtype=torch.float32, device=q.device)
    return v, torch.empty(v.shape[:3], dtype=torch.float32, device=q.device)


def results(v: torch.Tensor, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """v[B, Hq, D] in `dtype` and s[B, Hq] float32, unwritten, for the states v[B, N, Hq, D]."""
    batch, _, heads, dim = v.shape
    merged = torch.empty(batch, heads, dim, dtype=dtype, device=v.device)
    return merged, torch.empty(batch, heads, dtype=torch.float32, device=v.device)


def alone(q: torch.Tensor, programs: int) -> bool:
    """Whether a warp a program will do: with more than four programs a multiprocessor, enough is in flight."""
    return programs > 4 * multiprocessors(q)


def without_sign(q: torch.Tensor, scale: float | None) -> tuple[torch.Tensor, float]:
    """q and a scale of at least 0 that give the same scores. 1/sqrt(D) for None."""
    scale = q.shape[2] ** -0.5 if scale is None else scale
    return (q, scale) if scale >= 0 else (-q, -scale)


def launch_options(beside: bool) -> dict:
    """The launch attribute that lets a launch start beside the one ahead of it."""
    return {"launch_pdl": True} if beside else {}


def launch_bulk(q, k, v, kv_heads, block, groups, tables, page, scale, v_out, s_out, beside, **arguments) -> None:
    """Launch attend_bulk_kernel with tiles of `block` keys: 64, or 128, which leave others less of the registers."""
    batch, heads, dim = q.shape
    rows, parts = batch * heads // kv_heads, v_out.shape[1]
    consumers = 1 if rows <= 64 * groups else 2
    stages, registers, most = (2, 192, 136) if block == 128 else (3, 144, 104)
    blocks = triton.cdiv(rows, 64 * consumers) if groups == 1 else rows // (64 * consumers) + groups + 1
    attend_bulk_kernel[(blocks, kv_heads, parts)](
        q, k, v, *tables, v_out, s_out, scale * LOG2E, B=batch, groups=groups, HEADS=heads,
        N=v_out.stride(0) // (heads * dim), q_b=q.stride(0), q_h=q.stride(1), PAGE=page, GROUPED=groups > 1, D=dim,
        CONSUMERS=consumers, BLOCK_N=block, STAGES=stages, REGISTERS=registers, BESIDE=beside, num_warps=4,
        maxnreg=most, **arguments, **launch_options(beside),
    )  # fmt: skip


def shared_tile(q: torch.Tensor, keys: int, kv_heads: int, parts: int, other_keys: int) -> int:
    """Keys a tile of attend_bulk_kernel for `keys` shared keys: 128 for many rows if programs are long, or else 64."""
    many = q.shape[0] * q.shape[1] > 64 * kv_heads
    long = keys >= 8192 * parts or (keys >= 4096 * parts and other_keys <= keys)
    return 128 if many and long else 64


def launch_shared(q, k, v, scale, v_out, s_out, beside, fetched) -> None:
    """Attend to the shared keys; v_out and s_out are slices [:, a:b] of a workspace, one state a split.

    beside: the launch ahead is this call's own, so this one may start before it is over. fetched: by the copy engine,
    if it can, in tiles of so many keys.
    """
    batch, heads, dim = q.shape
    kv_heads, parts = k.shape[1], v_out.shape[1]
    group, keys = heads // kv_heads, k.shape[0] // parts
    if fetched and scale > 0:  # a score that does not count is -inf, and 0 * -inf is NaN
        described = [rows_descriptor(x, x.shape[0], x.stride(0), kv_heads, x.stride(1), fetched) for x in (k, v)]
        if None not in described:
            launch_bulk(
                q, *described, kv_heads, fetched, 1, (q,) * 4, 0, scale, v_out, s_out, beside, P=k.shape[0],
                k_h=k.stride(1), v_h=v.stride(1), page_rows=0, v_row=0,
            )  # fmt: skip
            return
    blocks = row_blocks(q, batch * group)
    config = tile(q, batch * group, keys, blocks * kv_heads * parts)
    if overlap(q) and q.dtype == torch.bfloat16 and dim == 128 and config["BLOCK_M"] == 64:
        config["maxnreg"] = 136  # of 166, so that 2,048 single warps of 84 fit beside 128 of these programs
    attend_shared_kernel[(blocks, kv_heads, parts)](
        q, k, v, v_out, s_out, scale * LOG2E, batch, k.shape[0], heads, v_out.stride(0) // (heads * dim),
        *q.stride(), *k.stride(), *v.stride(), G=group, BESIDE=beside and overlap(q), OVERLAP=overlap(q),
        **config, **launch_options(beside and overlap(q)),
    )  # fmt: skip


def launch_own(q, described, kv_cache, level, scale, v_out, s_out, beside, slots=3, tight=False, merged=None) -> None:
    """Attend to each request's pages by attend_own_kernel. described: by described_own; level: as below.

    merged: v and s of the results, if this is the last launch and has the last state of each row; it merges then.

    Three slots are 55 KB: two programs fit on a multiprocessor, or one beside attend_bulk_kernel. If one at a time is
    all that fits and reading takes long, five slots keep more on its way. tight: beside tiles of 128 keys, which leave
    room for three slots and 13,300 registers.
    """
    batch, heads, dim = q.shape
    q_rows, q_step, kv_rows, page_step, v_step = described
    group_indptr, indptr, indices, last_page_len = (x if x is None else x.contiguous() for x in level)
    page, kv_heads, parts = *kv_cache.shape[2:4], v_out.shape[1]
    items = batch * kv_heads * parts
    programs = max(min(items, (2 if slots == 3 else 1) * multiprocessors(q)), triton.cdiv(items, 128))
    states = v_out.stride(0) // (heads * dim)
    attend_own_kernel[(programs,)](
        q_rows, kv_rows, indptr if group_indptr is None else group_indptr, indptr, indices, last_page_len, v_out, s_out,
        *(merged or (v_out, s_out)), scale * LOG2E, items, batch, indptr.shape[0] - 1, parts, heads, states, q_step,
        kv_cache.stride(3), page_step, v_step, PAGE=page, GROUPED=group_indptr is not None, HKV=kv_heads,
        G=heads // kv_heads, D=dim, CUT=parts > 1, BLOCK_M=q_rows.block_shape[0], SLOTS=slots,
        MERGED=states if merged else 0, BESIDE=beside, num_warps=4, FETCHING=24 if tight else 40,
        maxnreg=48 if tight else 64, **launch_options(beside),
    )  # fmt: skip


def launch_paged(q, kv_cache, level, scale, v_out, s_out, beside, fetched=0) -> None:
    """Attend to one level's pages: (group_indptr or None, kv_indptr, kv_indices, kv_last_page_len); else as above.

    fetched: attend_bulk_kernel runs beside it. Programs that come in many rounds then have 48 registers: four fit. If
    it does not, nothing keeps small programs from being one warp each, with two tiles of 16 keys in flight.
    """
    batch, heads, dim = q.shape
    group_indptr, indptr, indices, last_page_len = (x if x is None else x.contiguous() for x in level)
    groups, page, kv_heads, parts = indptr.shape[0] - 1, *kv_cache.shape[2:4], v_out.shape[1]
    group = heads // kv_heads
    rows = group if group_indptr is None else triton.cdiv(batch, groups) * group
    programs = groups * row_blocks(q, rows) * kv_heads * parts
    tables = (indptr if group_indptr is None else group_indptr, indptr, indices, last_page_len)
    apart = v_out.stride(0) // (heads * dim)
    sides = {"BESIDE": beside and overlap(q), "OVERLAP": overlap(q), **launch_options(beside and overlap(q))}
    if rows == 1 and alone(q, programs):
        block_d = triton.next_power_of_2(dim)
        attend_alone_kernel[(kv_heads, batch, parts)](
            q, kv_cache, *tables, v_out, s_out, scale * LOG2E, groups, heads, apart, *q.stride(), *kv_cache.stride(),
            PAGE=page, GROUPED=group_indptr is not None, D=dim, BLOCK_N=max(1, 1024 // block_d), BLOCK_D=block_d,
            num_warps=1, **sides,
        )  # fmt: skip
        return
    wanted = group_indptr is not None and scale > 0 and fetches(q, groups, kv_heads)
    described = described_pages(kv_cache) if wanted else None
    if described is not None:
        kv_rows, page_step, v_step = described
        launch_bulk(
            q, kv_rows, kv_rows, kv_heads, 64, groups, tables, page, scale, v_out, s_out, beside, P=0,
            k_h=kv_cache.stride(3), v_h=kv_cache.stride(3), page_rows=page_step, v_row=v_step,
        )  # fmt: skip
        return
    config = tile(q, rows, mean_keys(level, kv_cache) // parts, programs)
    if "maxnreg" in config and not fetched:
        config |= {"BLOCK_N": 16, "num_stages": 3, "num_warps": 1, "maxnreg": 128}
    elif "maxnreg" in config and programs > 8 * multiprocessors(q):
        config["maxnreg"] = 48
    if group_indptr is None:
        slots = groups * triton.cdiv(group, config["BLOCK_M"])
    else:
        slots = batch * group // config["BLOCK_M"] + groups + 1
    attend_paged_kernel[(kv_heads, slots, parts)](
        q, kv_cache, *tables, v_out, s_out, scale * LOG2E, batch, groups, heads, apart, *q.stride(),
        *kv_cache.stride(), PAGE=page, GROUPED=group_indptr is not None, G=group, **config, **sides,
    )  # fmt: skip


def merge_states(v, s, dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """Merge v[B, N, Hq, D] float32 with s[B, N, Hq] into (v[B, Hq, D] in `dtype`, s[B, Hq] float32).

    A thread has 16 bytes of a row. Of few rows a program has one, of many four: so many programs would take time to
    start. At most 10 states are added up at once: with more, the programs need registers for two rounds.
    """
    batch, parts, heads, dim = v.shape
    v_out, s_out = results(v, dtype)
    block_d = math.gcd(dim, 4)
    block_n = triton.cdiv(max(1, parts), max(1, triton.cdiv(parts, 10)))
    block_r = triton.next_power_of_2(dim // block_d) * (1 if batch * heads < 2048 else 4)
    beside = overlap(v) and parts > 0
    if batch:
        merge_states_kernel[(triton.cdiv(batch * heads, block_r * block_d // dim),)](
            v, s, v_out, s_out, batch * heads, parts, heads, dim, block_n, block_r, block_d,
            num_warps=max(1, block_r // 32), OVERLAP=beside, **launch_options(beside),
        )  # fmt: skip
    return v_out, s_out


def attend_shared(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Attention of every request to one prefix.

    q[B, Hq, D] · k, v[P, Hkv, D] → v[B, Hq, D] float32, s[B, Hq] float32 base 2; P = 0 gives (0, -inf).
    """
    q, scale = without_sign(q, scale)
    parts = shared_splits(q, k.shape[0], k.shape[1], 0, bulk(q))
    states = workspace(q, parts)
    fetched = shared_tile(q, k.shape[0], k.shape[1], parts, 0) if bulk(q) else 0
    if q.shape[0]:
        launch_shared(q, k, v, scale, *states, beside=False, fetched=fetched)
    return merge_states(*states, torch.float32)


def attend_paged(
    q: torch.Tensor,
    kv_cache: torch.Tensor,
    indptr: torch.Tensor,
    indices: torch.Tensor,
    last_page_len: torch.Tensor,
    scale: float | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Attention of each request to its own pages.

    q[B, Hq, D] · kv_cache[pages, 2, page_size, Hkv, D] · indptr[B + 1], indices[...], last_page_len[B] → v[B, Hq, D]
    float32, s[B, Hq] float32 base 2; no pages give (0, -inf). Slots past a last page's length may hold NaN.
    """
    q, scale = without_sign(q, scale)
    level = (None, indptr, indices, last_page_len)
    states = workspace(q, own_splits(q, q.shape[0], mean_keys(level, kv_cache), kv_cache.shape[3]))
    if q.shape[0]:
        launch_paged(q, kv_cache, level, scale, *states, beside=False)
    return merge_states(*states, torch.float32)


def cascade(
    q: torch.Tensor,
    k_shared: torch.Tensor,
    v_shared: torch.Tensor,
    kv_cache: torch.Tensor,
    indptr: torch.Tensor,
    indices: torch.Tensor,
    last_page_len: torch.Tensor,
    scale: float | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """`attend_shared` and `attend_paged`, merged: v[B, Hq, D] in q's dtype, s[B, Hq] float32 base 2.

    The two attentions run beside each other, the merge behind both. attend_bulk_kernel leaves little room: a short
    prefix, or a minor one beside single warps, is better off with the plain kernel. attend_own_kernel needs little, few
    instructions above all; where nobody is short of those, it pays if most keys are requests' own.

    The second launch finds room once every program of the first has started, so the smaller one goes first; or the own
    side, where its programs are single warps with as many keys as the prefix has: those take long, and leave room.

    attend_own_kernel can wait for the prefix and merge. It does if a program has few rows, and if all its programs fit
    on the GPU at once, which two groups of warps beside them prevent: those that wait would keep others out.
    """
    q, scale = without_sign(q, scale)
    batch, kv_heads, shared_keys = q.shape[0], k_shared.shape[1], k_shared.shape[0]
    level = (None, indptr, indices, last_page_len)
    keys = mean_keys(level, kv_cache)
    many = batch * q.shape[1] > 64 * kv_heads
    pays = many or batch * keys >= 2 * shared_keys
    own = described_own(q, kv_cache) if scale > 0 and pays and copies(q, kv_heads) else None
    beside_warps = own is None and kv_heads == q.shape[1] and batch * keys >= shared_keys
    fetched = bulk(q) and not (shared_keys < 2048 if many else beside_warps)
    shared = shared_splits(q, shared_keys, kv_heads, batch * keys, fetched, own is not None)
    tile_keys = shared_tile(q, shared_keys, kv_heads, shared, batch * keys) if fetched else 0
    # If reading requests' own keys takes longer than the products with the prefix, tiles of 128 keys must not keep them
    # away from a multiprocessor, unless half of those are theirs alone.
    rows = batch * q.shape[1] // kv_heads
    reading = many and 160 * batch * keys > rows * shared_keys
    if own is not None and reading and 2 * shared * kv_heads * row_blocks(q, rows) > multiprocessors(q):
        tile_keys = min(tile_keys, 64)
    v, s = workspace(q, shared + own_splits(q, batch, keys, kv_heads, copied=own is not None))
    own_states = v[:, shared:], s[:, shared:]

    def attend_prefix(beside: bool) -> None:
        launch_shared(q, k_shared, v_shared, scale, v[:, :shared], s[:, :shared], beside, tile_keys)

    def attend_own_pages(beside: bool) -> None:
        if own is None:
            launch_paged(q, kv_cache, level, scale, *own_states, beside, tile_keys)
        else:
            slots = 5 if tile_keys and reading else 3
            tight = tile_keys == 128 and not reading
            launch_own(q, own, kv_cache, level, scale, *own_states, beside, slots, tight, merged)

    launches = [attend_prefix, attend_own_pages]
    own_parts = v.shape[1] - shared
    long = kv_heads == q.shape[1] and alone(q, batch * kv_heads) and keys >= shared_keys
    own_first = batch * kv_heads * own_parts <= multiprocessors(q) or long
    merged = None
    few = own_parts == 1 and v.shape[1] <= 8 and batch * kv_heads <= 8 * multiprocessors(q)
    if own is not None and few and not own_first and not (many and tile_keys):
        merged = results(v, q.dtype)
    for i, launch in enumerate(launches[::-1] if own_first else launches):
        if batch:
            launch(i > 0)
    return merged or merge_states(v, s, q.dtype)


def multi_level_cascade(
    q: torch.Tensor,
    kv_cache: torch.Tensor,
    levels: list[tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]],
    scale: float | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Attention over any number of levels: v[B, Hq, D] in q's dtype, s[B, Hq] float32 base 2.

    A level is (group_indptr[groups + 1], kv_indptr[groups + 1], kv_indices, kv_last_page_len[groups]) of pages in
    kv_cache[pages, 2, page_size, Hkv, D]: requests group_indptr[g] to group_indptr[g + 1] share group g's keys. A
    request in no group gets nothing from that level. Levels run beside each other, largest groups first.

    A level with a group for each request is attend_own_kernel's if most keys are on it; where they are not, if there is
    more than one program for each multiprocessor, unless those can be single warps.

    Groups of many rows take what the level for all leaves of the multiprocessors, if that is enough for a program each.
    If it is not, and the small programs come in many rounds, those go ahead: they run beside the level for all.
    """
    q, scale = without_sign(q, scale)
    kv_heads = kv_cache.shape[3]
    levels = sorted((level for level in levels if level[1].shape[0] > 1), key=lambda level: level[1].shape[0])
    reads = [(level[1].shape[0] - 1) * mean_keys(level, kv_cache) for level in levels]
    own = [None] * len(levels)
    items = q.shape[0] * kv_heads
    warps = kv_heads == q.shape[1] and alone(q, items)
    for i, level in enumerate(levels):
        pays = 2 * reads[i] >= sum(reads) or (items > multiprocessors(q) and not warps)
        if level[1].shape[0] - 1 >= max(2, q.shape[0]) and pays and scale > 0 and copies(q, kv_heads):
            own[i] = described_own(q, kv_cache)
    parts, many, small, left = [], [], 0, multiprocessors(q)
    for i, level in enumerate(levels):
        groups, keys = level[1].shape[0] - 1, mean_keys(level, kv_cache)
        programs = groups * kv_heads * row_blocks(q, triton.cdiv(q.shape[0], groups) * q.shape[1] // kv_heads)
        many.append(groups > 1 and fetches(q, groups, kv_heads))
        if groups == 1:
            copied = len(levels) == 2 and own[1] is not None
            parts.append(shared_splits(q, keys, kv_heads, sum(reads) - reads[i], bulk(q), copied))
        elif many[i]:
            room = left if left >= programs else multiprocessors(q)
            parts.append(max(1, min(room // programs, keys // 256)))
        else:
            parts.append(own_splits(q, groups, keys, kv_heads, sum(reads[i + 1 :]), own[i] is not None))
        if groups == 1 or many[i]:
            left -= programs * parts[i]
        else:
            small += programs * parts[i]
    late = left < 0 and small > 8 * multiprocessors(q)
    order = sorted(range(len(levels)), key=lambda i: late and many[i])
    v, s = workspace(q, sum(parts))
    first = 0
    for place, i in enumerate(order):
        end = first + parts[i]
        states = v[:, first:end], s[:, first:end]
        if q.shape[0] and own[i] is not None:
            launch_own(q, own[i], kv_cache, levels[i], scale, *states, place > 0)
        elif q.shape[0]:
            launch_paged(q, kv_cache, levels[i], scale, *states, place > 0, 64 if bulk(q) else 0)
        first = end
    return merge_states(v, s, q.dtype)
