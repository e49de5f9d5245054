"""Attention of many rows to shared keys, in Gluon: warps with roles, and the copy engine of a Hopper GPU."""

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
def sums_by_thread(p):
    """p[rows, keys] summed up to [rows, 4]: by each thread its own, so that nothing crosses threads."""
    return gl.sum(gl.sum(p.reshape((p.shape[0], p.shape[1] // 8, 4, 2)), 3), 1)


@gluon.jit
def at_once(sums):
    """`sums` of exponentials as they are, and none put off: no thread goes on before its warp has seen all their signs.

    With nobody waiting for them, the exponentials were moved behind the wait for a product, past a branch too.
    """
    return gl.inline_asm_elementwise(
        "{ .reg .pred p; setp.lt.f32 p, $1, 0f00000000; vote.sync.any.pred p, p, -1; selp.f32 $0, 0f00000000, $1, p; }",
        "=f,f", [sums], dtype=gl.float32, is_pure=False, pack=1,
    )  # fmt: skip


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

    # Products with 64 keys read as much of Q as of K: from shared memory they would wait for both.
    held: gl.constexpr = gl.DotOperandLayout(0, scored, 2) if BLOCK_N == 64 else loaded
    rows = first + gl.arange(0, BLOCK_M, layout=gl.SliceLayout(1, held))
    q_at = (rows // G).to(gl.int64) * q_b + (kv_head * G + rows % G) * q_h
    cols = gl.arange(0, D, layout=gl.SliceLayout(0, held))
    q_rows = gl.load(q + q_at[:, None] + cols[None, :], mask=(rows < last_row)[:, None], other=0.0)
    if BLOCK_N != 64:
        q_tile.store(q_rows)
        fence_async_shared()
        q_rows = q_tile

    zeros = gl.full([BLOCK_M, BLOCK_N], 0.0, gl.float32, scored)
    acc = gl.full([BLOCK_M, D], 0.0, gl.float32, summed)
    last = begin + (steps - 1) * BLOCK_N
    mbarrier.wait(ready.index(0), 0)
    products = warpgroup_mma(q_rows, k_tiles.index(0).permute((1, 0)), zeros, use_acc=False)
    mbarrier.arrive(free.index(0))
    keys = last + gl.arange(0, BLOCK_N, layout=gl.SliceLayout(0, scored))
    products = gl.where((keys < end)[None, :], products, float("-inf"))
    m = gl.max(products, 1) * scale
    p = gl.exp2(products * scale - gl.where(m == float("-inf"), 0.0, m)[:, None])
    sums = sums_by_thread(p)
    weights = gl.convert_layout(p.to(dtype), weighing)
    mbarrier.wait(ready.index(1), 0)
    if last + BLOCK_N > end:  # what lies in a page's other slots may be NaN, and 0 * NaN is
        slots = last + gl.arange(0, BLOCK_N, layout=gl.SliceLayout(1, loaded))
        v_tiles.index(1).store(gl.where((slots < end)[:, None], v_tiles.index(1).load(loaded), 0.0))
        fence_async_shared()

    for i in range(1, steps):
        slot = i % STAGES
        products = warpgroup_mma(q_rows, k_tiles.index(slot).permute((1, 0)), zeros, use_acc=False, is_async=True)
        acc = warpgroup_mma(weights, v_tiles.index(slot), acc, is_async=True)
        products = warpgroup_mma_wait(1, deps=[products])
        m_new = gl.maximum(m, gl.max(products, 1) * scale)
        p = gl.exp2(products * scale - m_new[:, None])
        rescale = gl.exp2(m - m_new)
        sums = at_once(sums * gl.convert_layout(rescale[:, None], sums.type.layout) + sums_by_thread(p))
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
    l = gl.convert_layout(gl.sum(sums, 1), gl.SliceLayout(1, summed))
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
