"""The fast merge of many states: what merge_states and variable_length_merge_states of l4_merge_states.py compute.

Same two functions, same contract. To 31 states a thread takes all states of its piece of a row, one after the other,
and nothing crosses threads; beyond, the states stand side by side in the tile, as in the lesson. Where rows are few and
have many states, merge_states fetches those some steps ahead, into a ring in shared memory. That is said in Gluon,
Triton's lower level; other inputs, the interpreter and other GPUs do without. What each change against the lesson's
version bought stands in content/performance.md. Names are those of l4_merge_states.py.
"""

import functools
import math

import torch
import triton
import triton.language as tl
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.ampere import async_copy

FEW = 4
"""So many states, or fewer, need no loop."""

STEP = 8
"""States a step at most, where a thread takes all states of its columns one by one."""

EACH = 8
"""States that a thread has a piece of, a step, where they are fetched ahead."""

SLOTS = 4
"""Steps in shared memory: the one that is worked on and three on their way, 4 KB each for a warp."""

ROWS = range(128, 1024)
"""Rows (S * H) for which fetching ahead pays. More are programs enough to hide each other's waiting."""

MANY = 128
"""States from which on it does."""


def columns_a_piece(D: int) -> int:
    """A row of a tile is a piece of 8 columns, what one thread loads: 16 bytes, the widest load there is, of halves.

    D is so many pieces, whatever D is: no thread has columns past D, and none needs what another has. A D that is no
    multiple of 8 has smaller pieces.
    """
    return math.gcd(D, 8)


def tile_of_states(N: int, H: int, rows: int, D: int) -> tuple[int, int, int, int]:
    """States a step, heads or pieces of heads, columns and warps a program, to merge about N states of `rows` rows.

    Below 32 states a thread takes all states of its piece, in steps of equal length (12 states are 2 times 6). To 4
    states 512 threads are a program, unless rows (S * H) are so few that multiprocessors would idle; beyond, a warp is
    one, and its threads get the registers to ask for all states of a step at once.
    From 32 states on, one head of 128, or several small ones, and 4,096 elements a step: with 1 warp the sum over
    states stays within a few threads. The fewer programs there are, the more must be in flight: below 1,024 rows twice
    as much each, in twice as many, which have half of a head of 128 or half as many small ones. Below 128 rows more
    warps help too.
    """
    columns = triton.next_power_of_2(D)
    if N < 32 or columns > 256:
        width = columns_a_piece(D)
        pieces = max(512 if N <= FEW and rows >= 1024 else 32, triton.next_power_of_2(D // width))
        pieces = min(pieces, triton.next_power_of_2(H * D // width))
        return triton.cdiv(max(1, N), triton.cdiv(max(1, N), STEP)), pieces, width, warps_for(pieces)
    heads = max(1, min(triton.next_power_of_2(H), 128 // columns))
    elements, warps = (4096, 1) if rows >= 1024 else (16384, 2)
    if rows < 128:
        columns, warps = min(columns, 64), 8
    elif rows < 1024:
        heads = max(1, min(triton.next_power_of_2(H), 64 // columns))
        columns, elements, warps = max(min(columns, 64), columns // 2), 8192, 1
    return min(elements // (heads * columns), triton.next_power_of_2(N)), heads, columns, warps


def head_tiles(H: int, D: int, BLOCK_N: int, BLOCK_H: int, BLOCK_D: int) -> int:
    """How many tiles of tile_of_states hold the heads of a position."""
    return triton.cdiv(H, BLOCK_H * BLOCK_D // D if BLOCK_N <= STEP else BLOCK_H)


def warps_for(pieces: int) -> int:
    """A thread a piece."""
    return max(1, pieces // 32)


@triton.jit
def pieces_of_heads(tile, H, D: tl.constexpr, BLOCK_H: tl.constexpr, BLOCK_D: tl.constexpr):
    """head[BLOCK_H], d[BLOCK_H, BLOCK_D], ok[BLOCK_H] of a tile of pieces; and which of them write s."""
    PIECES: tl.constexpr = D // BLOCK_D
    HEADS: tl.constexpr = BLOCK_H // PIECES
    r = tl.arange(0, BLOCK_H)
    head = tile * HEADS + r // PIECES
    d = (r % PIECES * BLOCK_D)[:, None] + tl.arange(0, BLOCK_D)[None, :]
    ok = (r < HEADS * PIECES) & (head < H)
    return head, d, ok, ok & (r % PIECES == 0)


@triton.jit
def whole_heads(tile, H, BLOCK_H: tl.constexpr, BLOCK_D: tl.constexpr):
    """The same for whole heads, or for BLOCK_D columns of each: d is [1, BLOCK_D]."""
    head = tile * BLOCK_H + tl.arange(0, BLOCK_H)
    d = (tl.program_id(1) * BLOCK_D + tl.arange(0, BLOCK_D))[None, :]
    return head, d, head < H, (head < H) & (tl.program_id(1) == 0)


@triton.jit
def add_states(v, total, m, v_ptr, s_ptr, row, left, d, ok, H, D: tl.constexpr, BLOCK_N: tl.constexpr):
    """Adds BLOCK_N states, `left` of them at most, from row row[R] on to the weighted sums v[R, BLOCK_D], total[R].

    A thread has a piece of a head and takes one state after the other; nothing crosses threads. Both sums are kept
    under m[R], the largest s so far, and scaled down when a larger one comes. All loads are asked for first.
    """
    # What nobody reads again is the first to leave the cache: worth it where more is read than written.
    KEEP: tl.constexpr = "evict_first" if BLOCK_N > 2 else ""
    m_new = m
    states = ()
    for n in tl.static_range(BLOCK_N):
        live = ok & (n < left)
        s_n = tl.load(s_ptr + row + n * H, mask=live, other=float("-inf"))
        v_at = v_ptr + (row + n * H)[:, None] * D + d
        states = states + ((tl.load(v_at, mask=live[:, None], other=0.0, eviction_policy=KEEP), s_n),)
        m_new = tl.maximum(m_new, s_n)
    shift = tl.where(m_new == float("-inf"), 0.0, m_new)  # (-inf) - (-inf) is NaN, (-inf) - 0 is not
    keep = tl.exp2(m - shift)
    v *= keep[:, None]
    total *= keep
    for n in tl.static_range(BLOCK_N):
        v_n, s_n = states[n]
        w = tl.exp2(s_n - shift)
        v += tl.where(w[:, None] > 0, v_n.to(tl.float32), 0.0) * w[:, None]  # 0 * NaN is NaN
        total += w
    return v, total, m_new


@triton.jit
def merge_few(v_ptr, s_ptr, begin, count, head, d, ok, H, D: tl.constexpr, BLOCK_N: tl.constexpr, LOOP: tl.constexpr):
    """Merges rows begin to begin + count of v[rows, H, D], s[rows, H] for heads head[R] and columns d[R, BLOCK_D].

    LOOP: count may exceed BLOCK_N. Returns v[R, BLOCK_D] and s[R].
    """
    m = tl.full(head.shape, float("-inf"), tl.float32)
    total = tl.zeros(head.shape, tl.float32)
    v = tl.zeros(d.shape, tl.float32)
    if LOOP:
        for start in range(0, count, BLOCK_N):
            row = (begin + start) * H + head
            v, total, m = add_states(v, total, m, v_ptr, s_ptr, row, count - start, d, ok, H, D, BLOCK_N)
    else:
        v, total, m = add_states(v, total, m, v_ptr, s_ptr, begin * H + head, count, d, ok, H, D, BLOCK_N)
    total = tl.where(m == float("-inf"), 1.0, total)
    return v * (1.0 / total)[:, None], m + tl.log2(total)


@triton.jit
def merge_many(v_ptr, s_ptr, begin, count, head, d, ok, H, D: tl.constexpr, BLOCK_N: tl.constexpr):
    """As merge_few, with BLOCK_N states side by side in the tile: threads share the states out among them."""
    m = tl.full(head.shape, float("-inf"), tl.float32)
    total = tl.zeros(head.shape, tl.float32)
    v = tl.zeros((head.shape[0], d.shape[1]), tl.float32)
    for start in tl.range(0, count, BLOCK_N, loop_unroll_factor=2):  # the next loads need not wait for this step's sum
        n = start + tl.arange(0, BLOCK_N)
        live = (n < count)[:, None] & ok[None, :]  # [BLOCK_N, BLOCK_H]
        row = (begin + n)[:, None] * H + head[None, :]
        s_n = tl.load(s_ptr + row, mask=live, other=float("-inf"))  # padding is empty: it weighs 0
        v_at = v_ptr + row[:, :, None] * D + d[None, :, :]  # [BLOCK_N, BLOCK_H, BLOCK_D]
        v_n = tl.load(v_at, mask=live[:, :, None] & (d < D)[None, :, :], other=0.0, eviction_policy="evict_first")

        m_new = tl.maximum(m, tl.max(s_n, axis=0))
        shift = tl.where(m_new == float("-inf"), 0.0, m_new)
        w = tl.exp2(s_n - shift)
        keep = tl.exp2(m - shift)
        v_n = tl.where(w[:, :, None] > 0, v_n.to(tl.float32), 0.0)
        v = v * keep[:, None] + tl.sum(v_n * w[:, :, None], axis=0)
        total = total * keep + tl.sum(w, axis=0)
        m = m_new
    total = tl.where(m == float("-inf"), 1.0, total)
    return v / total[:, None], m + tl.log2(total)


@triton.jit
def store_state(v_ptr, s_ptr, v, s, position, head, d, ok, writes_s, H, D: tl.constexpr):
    """Writes v[BLOCK_H, BLOCK_D] and s[BLOCK_H] to position `position` of v[S, H, D] and s[S, H]."""
    row = position * H + head
    tl.store(v_ptr + row[:, None] * D + d, v.to(v_ptr.dtype.element_ty), mask=ok[:, None] & (d < D))
    tl.store(s_ptr + row, s, mask=writes_s)


@triton.jit
def tiles_of_heads(H, D: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_H: tl.constexpr, BLOCK_D: tl.constexpr):
    """As head_tiles."""
    HEADS: tl.constexpr = BLOCK_H * BLOCK_D // D if BLOCK_N <= 8 else BLOCK_H
    return tl.cdiv(H, HEADS)


@triton.jit
def merge_run(
    v_ptr, s_ptr, begin, count, tile, H,
    D: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_H: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """Merges a run of states for a tile of heads. Returns v, s and where they go: head, d, ok, writes_s."""
    if BLOCK_N <= 8:  # STEP
        head, d, ok, writes_s = pieces_of_heads(tile, H, D, BLOCK_H, BLOCK_D)
        v, s = merge_few(v_ptr, s_ptr, begin, count, head, d, ok, H, D, BLOCK_N, True)
    else:
        head, d, ok, writes_s = whole_heads(tile, H, BLOCK_H, BLOCK_D)
        v, s = merge_many(v_ptr, s_ptr, begin, count, head, d, ok, H, D, BLOCK_N)
    return v, s, head, d, ok, writes_s


@triton.jit(do_not_specialize=["H"])
def few_states_kernel(
    v_n_ptr, s_n_ptr, v_ptr, s_ptr, H,
    D: tl.constexpr, N: tl.constexpr, BLOCK_H: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """merge_states_kernel for N <= FEW: a constant, so that there is no loop. Grid: positions, tiles of heads."""
    position = tl.program_id(0).to(tl.int64)
    head, d, ok, writes_s = pieces_of_heads(tl.program_id(1), H, D, BLOCK_H, BLOCK_D)
    v, s = merge_few(v_n_ptr, s_n_ptr, position * N, N, head, d, ok, H, D, N, False)
    store_state(v_ptr, s_ptr, v, s, position, head, d, ok, writes_s, H, D)


@triton.jit(do_not_specialize=["N", "H"])
def merge_states_kernel(
    v_n_ptr,  # [S, N, H, D]
    s_n_ptr,  # [S, N, H] float32
    v_ptr,  # [S, H, D] result
    s_ptr,  # [S, H] float32 result
    N,
    H,
    D: tl.constexpr,
    BLOCK_N: tl.constexpr,  # states a step
    BLOCK_H: tl.constexpr,  # heads a program, or pieces of heads
    BLOCK_D: tl.constexpr,  # columns a program, a power of two
):
    tiles = tiles_of_heads(H, D, BLOCK_N, BLOCK_H, BLOCK_D)
    position = (tl.program_id(0) // tiles).to(tl.int64)
    tile = tl.program_id(0) % tiles
    v, s, head, d, ok, writes_s = merge_run(v_n_ptr, s_n_ptr, position * N, N, tile, H, D, BLOCK_N, BLOCK_H, BLOCK_D)
    store_state(v_ptr, s_ptr, v, s, position, head, d, ok, writes_s, H, D)


@gluon.constexpr_function
def tile(width, pieces, warps):
    """Which thread has what of [EACH, PLACES, pieces, width]: `width` values of a piece of a row, of EACH rows.

    A row is `pieces` pieces, a thread each, so a warp holds 32 // pieces rows side by side: its places.
    """
    return gl.BlockedLayout([1, 1, 1, width], [1, 32 // pieces, pieces, 1], [1, warps, 1, 1], [3, 2, 1, 0])


@gluon.constexpr_function
def along(axis, layout):
    """The layout of what has only axis `axis` of four."""
    for other in (3, 2, 1, 0):
        if other != axis:
            layout = gl.SliceLayout(other, layout)
    return layout


@gluon.jit
def values(pairs, dtype: gl.constexpr):
    """float32 [EACH, PLACES, pieces, 8] of pairs[EACH, PLACES, pieces, 4]: two halves an int32, the lower first."""
    if dtype == gl.bfloat16:  # the upper half of a float32
        low = (pairs << 16).to(gl.float32, bitcast=True)
        high = (pairs & -0x10000).to(gl.float32, bitcast=True)
    else:
        low = (pairs & 0xFFFF).to(gl.int16).to(dtype, bitcast=True).to(gl.float32)
        high = (pairs >> 16).to(gl.int16).to(dtype, bitcast=True).to(gl.float32)
    x = gl.join(low, high).reshape([pairs.shape[0], pairs.shape[1], pairs.shape[2], 8])
    return gl.convert_layout(x, tile(8, pairs.shape[2], gl.num_warps()), assert_trivial=True)


@gluon.jit
def ask(x, slots, step, N, n, stride):
    """Sends for states n of step `step`, `stride` apart at x, if there is such a step. n: those of step 0."""
    STEP: gl.constexpr = slots.shape[1] * slots.shape[2]
    if step * STEP < N:
        at = n + step * STEP
        slot = slots.index(step % slots.shape[0])
        async_copy.async_copy_global_to_shared(slot, x + at.to(gl.int64) * stride, mask=at < N)


@gluon.jit(do_not_specialize=["N", "H"])
def merge_ahead_kernel(
    v_n_ptr,  # [S, N, H, D] float16 or bfloat16
    s_n_ptr,  # [S, N, H] float32
    v_ptr,  # [S, H, D] result
    s_ptr,  # [S, H] float32 result
    N,
    H,
    D: gl.constexpr,  # 64, 128 or 256
    EACH: gl.constexpr,
    SLOTS: gl.constexpr,
):
    """A row a program. Every PLACES-th state has the same place, and a place is a recurrence of its own."""
    dtype: gl.constexpr = v_n_ptr.dtype.element_ty
    WARPS: gl.constexpr = gl.num_warps()
    PIECES: gl.constexpr = D // 8
    PLACES: gl.constexpr = 32 * WARPS // PIECES
    STEP: gl.constexpr = EACH * PLACES
    loads: gl.constexpr = tile(4, PIECES, WARPS)  # int32
    halves: gl.constexpr = tile(8, PIECES, WARPS)
    weights: gl.constexpr = gl.SliceLayout(2, gl.SliceLayout(3, halves))  # [EACH, PLACES]
    sums: gl.constexpr = gl.SliceLayout(0, halves)  # [PLACES, PIECES, 8]
    once: gl.constexpr = gl.BlockedLayout([1, 1], [PIECES, 32 // PIECES], [1, WARPS], [1, 0])  # a thread a state

    head = gl.program_id(0) % H
    begin = (gl.program_id(0) // H).to(gl.int64) * N * H + head  # row of the first state
    each = gl.arange(0, EACH, layout=along(0, loads))[:, None, None, None]
    place = gl.arange(0, PLACES, layout=along(1, loads))[None, :, None, None]
    piece = gl.arange(0, PIECES, layout=along(2, loads))[None, None, :, None]
    within = gl.arange(0, 4, layout=along(3, loads))[None, None, None, :]
    n_v = each * PLACES + place + gl.zeros([EACH, PLACES, PIECES, 4], gl.int32, loads)
    v_n = (v_n_ptr + begin * D).to(gl.pointer_type(gl.int32), bitcast=True) + piece * 4 + within
    n_s = gl.arange(0, EACH, layout=gl.SliceLayout(1, once))[:, None] * PLACES
    n_s = n_s + gl.arange(0, PLACES, layout=gl.SliceLayout(0, once))[None, :]
    v_slots = gl.allocate_shared_memory(
        gl.int32, [SLOTS, EACH, PLACES, PIECES, 4], gl.SwizzledSharedLayout(1, 1, 1, [3, 2, 1, 0])
    )
    s_slots = gl.allocate_shared_memory(gl.float32, [SLOTS, EACH, PLACES], gl.SwizzledSharedLayout(1, 1, 1, [1, 0]))
    for step in gl.static_range(SLOTS - 1):
        ask(v_n, v_slots, step, N, n_v, H * (D // 2))
        ask(s_n_ptr + begin, s_slots, step, N, n_s, H)
        async_copy.commit_group()

    n = gl.arange(0, EACH, layout=gl.SliceLayout(1, weights))[:, None] * PLACES
    n = n + gl.arange(0, PLACES, layout=gl.SliceLayout(0, weights))[None, :]
    m = gl.full([PLACES], float("-inf"), gl.float32, gl.SliceLayout(0, weights))
    total = gl.full([PLACES], 0.0, gl.float32, gl.SliceLayout(0, weights))
    v = gl.full([PLACES, PIECES, 8], 0.0, gl.float32, sums)
    for step in range(gl.cdiv(N, STEP)):
        async_copy.wait_group(SLOTS - 2)  # a group a step, an empty one too
        pairs = v_slots.index(step % SLOTS).load(loads)
        s = s_slots.index(step % SLOTS).load(weights)
        ask(v_n, v_slots, step + SLOTS - 1, N, n_v, H * (D // 2))
        ask(s_n_ptr + begin, s_slots, step + SLOTS - 1, N, n_s, H)
        async_copy.commit_group()

        s = gl.where(n + step * STEP < N, s, float("-inf"))  # padding is empty: it weighs 0
        m_new = gl.maximum(m, gl.max(s, 0))
        shift = gl.where(m_new == float("-inf"), 0.0, m_new)  # (-inf) - (-inf) is NaN, (-inf) - 0 is not
        w = gl.exp2(s - shift[None, :])
        keep = gl.exp2(m - shift)
        live = gl.convert_layout(w > 0, gl.SliceLayout(2, gl.SliceLayout(3, loads)), assert_trivial=True)
        pairs = gl.where(live[:, :, None][:, :, :, None], pairs, 0)  # 0 * NaN is NaN
        more = gl.sum(w[:, :, None][:, :, :, None] * values(pairs, dtype), 0)
        scaled = gl.convert_layout(keep, gl.SliceLayout(1, gl.SliceLayout(2, sums)), assert_trivial=True)
        v = v * scaled[:, None][:, :, None] + more
        total = total * keep + gl.sum(w, 0)
        m = m_new

    m_all = gl.max(m, 0)  # the places merge
    w = gl.exp2(m - gl.where(m_all == float("-inf"), 0.0, m_all))
    total = gl.sum(total * w, 0)
    total = gl.where(m_all == float("-inf"), 1.0, total)
    w = gl.convert_layout(w, gl.SliceLayout(1, gl.SliceLayout(2, sums)), assert_trivial=True)
    v = gl.sum(v * w[:, None][:, :, None], 0) / total
    row = gl.program_id(0).to(gl.int64)
    rows: gl.constexpr = gl.SliceLayout(0, sums)  # [PIECES, 8]
    d = gl.arange(0, PIECES, layout=gl.SliceLayout(1, rows))[:, None] * 8
    d = d + gl.arange(0, 8, layout=gl.SliceLayout(0, rows))[None, :]
    gl.store(v_ptr + row * D + d, v.to(dtype))
    gl.store(s_ptr + row, m_all + gl.log2(total))


@functools.cache
def is_hopper(device: torch.device) -> bool:
    """Was measured."""
    return torch.cuda.get_device_capability(device)[0] == 9


def fetches_ahead(v: torch.Tensor) -> bool:
    """Whether merge_ahead_kernel takes the contiguous v[S, N, H, D], and is faster."""
    S, N, H, D = v.shape
    if not (v.is_cuda and v.dtype in (torch.float16, torch.bfloat16) and D in (64, 128, 256) and is_hopper(v.device)):
        return False
    return v.data_ptr() % 16 == 0 and N >= MANY and S * H in ROWS


def merge_states(v: torch.Tensor, s: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Merges the N states of every position and head.

    v: [S, N, H, D]. s: [S, N, H] float32, base 2. Any N from 0 to thousands; N = 0 gives (0, -inf).
    Returns new v [S, H, D] in v's dtype and s [S, H] float32.
    Traffic: every value of v read once, s at most twice, every result written once.
    """
    S, N, H, D = v.shape
    out_v = torch.empty((S, H, D), dtype=v.dtype, device=v.device)
    out_s = torch.empty((S, H), dtype=torch.float32, device=v.device)
    if S == 0:
        return out_v, out_s
    v, s = v.contiguous(), s.contiguous()
    if fetches_ahead(v):
        warps = min(4, triton.next_power_of_2(triton.cdiv(512, S * H)))
        merge_ahead_kernel[(S * H,)](v, s, out_v, out_s, N, H, D, EACH, SLOTS, num_warps=warps)
        return out_v, out_s
    BLOCK_N, BLOCK_H, BLOCK_D, warps = tile_of_states(N, H, S * H, D)
    tiles = head_tiles(H, D, BLOCK_N, BLOCK_H, BLOCK_D)
    if 0 < N <= FEW:
        few_states_kernel[(S, tiles)](v, s, out_v, out_s, H, D, N, BLOCK_H, BLOCK_D, num_warps=warps)
    else:
        programs = (S * tiles, 1 if BLOCK_N <= STEP else triton.cdiv(D, BLOCK_D))
        merge_states_kernel[programs](v, s, out_v, out_s, N, H, D, BLOCK_N, BLOCK_H, BLOCK_D, num_warps=warps)
    return out_v, out_s


@triton.jit(do_not_specialize=["H"])
def variable_length_kernel(
    v_m_ptr,  # [M, H, D]
    s_m_ptr,  # [M, H] float32
    indptr_ptr,  # [S + 1] int32 or int64
    v_ptr,  # [S, H, D] result
    s_ptr,  # [S, H] float32 result
    H,
    D: tl.constexpr,
    BLOCK_N: tl.constexpr,  # states a step
    BLOCK_H: tl.constexpr,  # heads a program, or pieces of heads
    BLOCK_D: tl.constexpr,  # columns a program, a power of two
):
    tiles = tiles_of_heads(H, D, BLOCK_N, BLOCK_H, BLOCK_D)
    position = (tl.program_id(0) // tiles).to(tl.int64)
    begin = tl.load(indptr_ptr + position).to(tl.int64)
    count = (tl.load(indptr_ptr + position + 1).to(tl.int64) - begin).to(tl.int32)
    tile = tl.program_id(0) % tiles
    v, s, head, d, ok, writes_s = merge_run(v_m_ptr, s_m_ptr, begin, count, tile, H, D, BLOCK_N, BLOCK_H, BLOCK_D)
    store_state(v_ptr, s_ptr, v, s, position, head, d, ok, writes_s, H, D)


def variable_length_merge_states(
    v: torch.Tensor, s: torch.Tensor, indptr: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Merges rows indptr[i] to indptr[i + 1] into position i, for every head.

    v: [M, H, D]. s: [M, H] float32, base 2. indptr: [S + 1] int32 or int64, never decreasing; indptr[0] may exceed 0
    and indptr[-1] may stop short of M. An empty range gives (0, -inf).
    Returns new v [S, H, D] in v's dtype and s [S, H] float32.
    """
    H, D = v.shape[1:]
    S = indptr.shape[0] - 1
    out_v = torch.empty((S, H, D), dtype=v.dtype, device=v.device)
    out_s = torch.empty((S, H), dtype=torch.float32, device=v.device)
    if S == 0:
        return out_v, out_s
    BLOCK_N, BLOCK_H, BLOCK_D, warps = tile_of_states(v.shape[0] // S, H, S * H, D)
    tiles = head_tiles(H, D, BLOCK_N, BLOCK_H, BLOCK_D)
    variable_length_kernel[(S * tiles, 1 if BLOCK_N <= STEP else triton.cdiv(D, BLOCK_D))](
        v.contiguous(), s.contiguous(), indptr.contiguous(), out_v, out_s,
        H, D, BLOCK_N, BLOCK_H, BLOCK_D, num_warps=warps,
    )  # fmt: skip
    return out_v, out_s
