"""Attention of few rows to requests' own pages, in Gluon: fetched by the copy engine, keys as rows of the products."""

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
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

from solutions.fast_cascade.attend_bulk import page_numbers, wait_if_last


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
def ask_for_q(
    q, tile, ready, item, B, q_rows, HKV: gl.constexpr, CUT: gl.constexpr, G: gl.constexpr
):  # fmt: skip
    """Ask for an item's queries. They are there when `ready` has counted their bytes."""
    mbarrier.expect(ready, tile.shape[0] * tile.shape[1] * tile.dtype.primitive_bitwidth // 8)
    request = item // HKV
    if CUT:
        request = request % B
    tma.async_copy_global_to_shared(q, [request * q_rows + item % HKV * G, 0], ready, tile)


@gluon.jit
def fetch_own(
    q, kv, tiles, q_tiles, ready, free, q_ready, q_free, places, lengths, indices, items, B, q_rows, kv_h, page_rows,
    v_row, HKV: gl.constexpr, CUT: gl.constexpr, G: gl.constexpr,
):  # fmt: skip
    """The warp that fetches: of each item q, and of each step two tiles of K and two of V.

    Page numbers are asked for a step ahead, while it waits for slots. The first item's q and the first tile have been
    asked for.
    """
    PAGE: gl.constexpr = kv.block_shape[0]
    SLOTS: gl.constexpr = tiles.shape[0]
    BLOCK_N: gl.constexpr = tiles.shape[1]
    HALF: gl.constexpr = BLOCK_N // PAGE
    BYTES: gl.constexpr = BLOCK_N * tiles.shape[2] * tiles.dtype.primitive_bitwidth // 8
    slot = 1
    phase = 1
    asked = 1
    n = 0
    item = gl.program_id(0)
    length = entry(lengths, 0)
    table = indices + entry(places, 0)
    numbers = page_numbers(table, 0, gl.cdiv(length, PAGE), 2 * HALF)
    while item < items:
        kv_head = item % HKV
        if n > 0:
            mbarrier.wait(q_free.index(n & 1), ((n >> 1) & 1) ^ 1)
            ask_for_q(q, q_tiles.index(n & 1), q_ready.index(n & 1), item, B, q_rows, HKV, CUT, G)
        item += gl.num_programs(0)
        n += 1
        steps = gl.maximum(gl.cdiv(length, 2 * BLOCK_N), 1)
        for i in range(steps):
            next_page = (i + 1) * 2 * HALF
            if i + 1 == steps:  # the next item's
                next_page = 0
                length = entry(lengths, n)
                table = indices + entry(places, n)
            next_numbers = page_numbers(table, next_page, gl.cdiv(length, PAGE), 2 * HALF)
            for j in range(asked, 4):
                mbarrier.wait(free.index(slot), phase)
                mbarrier.expect(ready.index(slot), BYTES)
                row = gl.where(j >= 2, v_row, 0)
                for page in gl.static_range(HALF):
                    at = gl.where(j % 2 == 0, numbers[page], numbers[HALF + page]) * page_rows + row
                    tile = tiles.index(slot).slice(page * PAGE, PAGE)
                    tma.async_copy_global_to_shared(kv, [at, kv_head * kv_h], ready.index(slot), tile)
                phase = gl.where(slot == SLOTS - 1, phase ^ 1, phase)
                slot = gl.where(slot == SLOTS - 1, 0, slot + 1)
            asked = 0
            numbers = next_numbers


@gluon.jit
def merge_own(v, s, v_out, s_out, items, HKV: gl.constexpr, G: gl.constexpr, D: gl.constexpr, N: gl.constexpr):
    """As merge_states_kernel, in Gluon, for the rows of this program's items; of up to 5 states, two pieces a thread.

    v and s begin with the own states, the last of each row's N.
    """
    PIECES: gl.constexpr = D // 4
    HEADS: gl.constexpr = HKV * G
    BLOCK_R: gl.constexpr = 32 * gl.num_warps() * (2 if N <= 5 else 1)
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
        state = request * (N * HEADS) + head
        at_v = v + (state * D)[:, None] + cols
        at_s = s + state
        values = ()
        sizes = ()
        for i in gl.static_range(N):
            values = values + (gl.load(at_v - i * HEADS * D, mask=live[:, None], other=0.0, volatile=True),)
        for i in gl.static_range(N):
            sizes = sizes + (gl.load(at_s - i * HEADS, mask=live, other=float("-inf"), volatile=True),)
        m = sizes[0]
        for i in gl.static_range(1, N):
            m = gl.maximum(m, sizes[i])
        shift = gl.where(m == float("-inf"), 0.0, m)
        total = gl.exp2(sizes[0] - shift)
        acc = values[0] * total[:, None]
        for i in gl.static_range(1, N):
            weight = gl.exp2(sizes[i] - shift)
            acc += values[i] * weight[:, None]
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
        merge_own(v_out, s_out, merged_v, merged_s, items, HKV, G, D, MERGED)


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
    first = gl.program_id(0)
    LATER: gl.constexpr = not (CUT or GROUPED)  # the first item's pages are found at once, the others' behind its tile
    if LATER:
        first_page = gl.load(indptr + first // HKV)
        pages = (gl.load(indptr + first // HKV + 1) - first_page).to(gl.int32)
        numbers = page_numbers(indices + first_page, 0, pages, BLOCK_N // PAGE)
    flat: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [0])
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
    # q and a first tile of K are asked for before the warps get their roles, which takes a while.
    fence_async_shared()
    ask_for_q(q, q_tiles.index(0), q_ready.index(0), first, B, q_rows, HKV, CUT, G)
    places = gl.allocate_shared_memory(gl.int32, [128], flat)
    lengths = gl.allocate_shared_memory(gl.int32, [128], flat)
    if not LATER:
        look_up(
            places, lengths, group_indptr, indptr, last_page_len, items, B, groups, parts, HKV, CUT, PAGE, 2 * BLOCK_N,
            GROUPED,
        )  # fmt: skip
        numbers = page_numbers(indices + entry(places, 0), 0, gl.cdiv(entry(lengths, 0), PAGE), BLOCK_N // PAGE)
    mbarrier.expect(ready.index(0), BLOCK_N * D * dtype.primitive_bitwidth // 8)
    for page in gl.static_range(BLOCK_N // PAGE):
        tile = tiles.index(0).slice(page * PAGE, PAGE)
        at = [numbers[page] * page_rows, first % HKV * kv_h]
        tma.async_copy_global_to_shared(kv, at, ready.index(0), tile)
    if LATER:
        look_up(
            places, lengths, group_indptr, indptr, last_page_len, items, B, groups, parts, HKV, CUT, PAGE, 2 * BLOCK_N,
            GROUPED,
        )  # fmt: skip
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
