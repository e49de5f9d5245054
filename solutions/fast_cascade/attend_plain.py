"""Attention in plain Triton: to shared keys, and to pages. What every GPU and the interpreter take."""

import triton
import triton.language as tl
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait


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
    tl.store(v_out + at, acc * (1.0 / safe)[:, None], mask=live[:, None] & (cols < D)[None, :])
    tl.store(s_out + state, tl.where(l > 0, m + tl.log2(safe), float("-inf")), mask=live)


@triton.jit
def wait_for_launch_ahead():
    """Makes the end of this launch mean that the launch ahead of it has ended too.

    A launch is over when its last program is, so that one program waits. The others leave the multiprocessor free.
    """
    last = (tl.program_id(0) == tl.num_programs(0) - 1) & (tl.program_id(1) == tl.num_programs(1) - 1)
    if last & (tl.program_id(2) == tl.num_programs(2) - 1):
        gdc_wait()


@triton.jit
def touch(table, count, LINES: tl.constexpr):
    """Have the first LINES lines of table[count] in L2: read a number of each, volatile, since nobody uses it."""
    at = tl.arange(0, LINES) * (1024 // table.dtype.element_ty.primitive_bitwidth)
    tl.load(table + at, mask=at < count, other=0, volatile=True)


@triton.jit(do_not_specialize=["B", "P", "N", "pages"])
def attend_shared_kernel(
    q,  # [B, Hq, D]
    k,  # [P, Hkv, D]
    v,  # [P, Hkv, D]
    v_out,  # [B, splits of N, Hq, D] float32; a request's states are N apart
    s_out,  # [B, splits of N, Hq] float32
    indptr,  # [B + 1]; this and the next two only if the next launch begins with them
    indices,  # [pages]
    last_page_len,  # [B]
    scale,
    B, P, HEADS, N, pages,
    q_b, q_h, q_d, k_n, k_h, k_d, v_n, v_h, v_d,  # strides
    G: tl.constexpr,
    D: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr,
    BESIDE: tl.constexpr,  # runs beside the launch ahead of it
    OVERLAP: tl.constexpr,  # lets the next launch run beside it
    TOUCH: tl.constexpr,  # the tables
):  # fmt: skip
    if OVERLAP:
        gdc_launch_dependents()
    if TOUCH and (tl.program_id(0) + tl.program_id(1) + tl.program_id(2) == 0):
        touch(indptr, B + 1, 256)
        touch(last_page_len, B, 256)
        touch(indices, pages, 256)
    # Rows are counted from the first one's request on: what is 64 bits wide then is the same for all of them.
    first_row = tl.program_id(0) * BLOCK_M
    first = first_row // G
    row = first_row - first * G + tl.arange(0, BLOCK_M)
    kv_head = tl.program_id(1)
    split = tl.program_id(2)
    cols = tl.arange(0, BLOCK_D)
    cols_wide = cols[None, :].to(tl.int64)
    keys = tl.arange(0, BLOCK_N)

    live_row = row < (B - first) * G
    q += first.to(tl.int64) * q_b + kv_head.to(tl.int64) * G * q_h
    q_at = (row // G).to(tl.int64) * q_b + (row % G).to(tl.int64) * q_h
    q_rows = tl.load(q + q_at[:, None] + cols_wide * q_d, mask=live_row[:, None] & (cols < D)[None, :], other=0.0)

    m = tl.full([BLOCK_M], float("-inf"), tl.float32)
    l = tl.zeros([BLOCK_M], tl.float32)
    acc = tl.zeros([BLOCK_M, BLOCK_D], tl.float32)
    share = tl.cdiv(tl.cdiv(P, BLOCK_N), tl.num_programs(2)) * BLOCK_N
    begin = split * share
    end = tl.minimum(begin + share, P)
    whole = begin + tl.maximum(end - begin, 0) // BLOCK_N * BLOCK_N
    at_k = k + kv_head.to(tl.int64) * k_h + cols_wide * k_d
    at_v = v + kv_head.to(tl.int64) * v_h + cols_wide * v_d
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

    state = (first.to(tl.int64) * N + split) * HEADS + kv_head * G
    at = (row // G).to(tl.int64) * (N * HEADS) + row % G
    store_states(v_out + state * D, s_out + state, at, live_row, m, l, acc, D, BLOCK_D)
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
    row = page * kv_p + (key % PAGE).to(tl.int64) * kv_n + kv_head.to(tl.int64) * kv_h
    at = row[:, None] + cols[None, :].to(tl.int64) * kv_d
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
    cols_wide = cols[None, :].to(tl.int64)

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
        q_at = request * q_b + head.to(tl.int64) * q_h
        q_rows = tl.load(q + q_at[:, None] + cols_wide * q_d, mask=live_row[:, None] & live_col[None, :], other=0.0)

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
