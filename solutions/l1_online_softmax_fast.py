"""The fast softmax: what softmax of l1_online_softmax.py computes, with rows of half a megabyte read from memory once.

Same function, same contract. A row has to be seen twice: first for m and l, then for the result. Where all rows
together are more than L2 keeps, the lesson's kernel fetches them from memory twice. Here a program is a
multiprocessor's only one and keeps what it can of its row: 192 KB in registers and 224 KB in shared memory, of the
512 KB that 262,144 columns are. Only the rest is fetched again. That is said in Gluon, Triton's lower level, where a
program decides what lies in shared memory; other inputs, the interpreter and other GPUs take the lesson's kernels.
What it bought stands in content/performance.md.
"""

import functools
import math

import torch
import triton
import triton.language as tl
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.ampere import async_copy

LOG2E = tl.constexpr(1.4426950408889634)

ROW = 1 << 14
"""Columns of the longest row that a program of the lesson's kernels holds."""

CHUNK = 8192
"""Columns of a chunk, 16 KB: what is fetched, kept or worked on at a time; 32 a thread of WARPS warps."""

WARPS = 8
"""Few, with 255 registers a thread: 192 of them hold HELD chunks."""

SLOTS = 14
"""Chunks in shared memory: 224 of its 227 KB."""

HELD = 12
"""Chunks that stay in registers."""

BATCH = 6
"""So many are moved from shared memory to registers at a time. 1 + BATCH + AHEAD slots are in use then, of SLOTS."""

AHEAD = 4
"""Chunks on their way while one is worked on, 64 KB. With more, memory serves too many places at once: all 14 take
longer."""

FEWEST = 64
"""Rows: with fewer, most multiprocessors have nothing to do, and the more threads a row has the better."""

IN_CACHE = 40 << 20
"""Bytes of x that L2 keeps from the first read to the second, about: so much and less is fetched once anyhow."""


@triton.jit
def no_nan(m):
    """What to subtract for a running max m: (-inf) - (-inf) is NaN, (-inf) - 0 is not."""
    return tl.where(m == float("-inf"), 0.0, m)


@triton.jit
def exp(x):
    """e^x for x <= 0."""
    return tl.exp2(x * LOG2E)


@triton.jit
def multiple(size, of: tl.constexpr):
    """`size`, which is a multiple of `of`, so that the compiler knows: by itself it learns of multiples of 16 only.

    Of a row that may begin anywhere it loads 2 bytes at a time.
    """
    return size // of * of


@triton.jit
def softmax_kernel(
    x_ptr,  # [M, N] with the strides below
    y_ptr,  # [M, N] contiguous, result
    N,
    stride_row, stride_col,
    BLOCK: tl.constexpr,  # columns a step
    STAGES: tl.constexpr,  # loads in flight at a time
    WHOLE: tl.constexpr,  # N and stride_row are multiples of it
):  # fmt: skip
    """The lesson's kernel for long rows: two reads, each thread with an m and an l of its own in the first."""
    N, stride_row = multiple(N, WHOLE), multiple(stride_row, WHOLE)
    row = tl.program_id(0).to(tl.int64)
    WIDTH: tl.constexpr = min(BLOCK, 8)
    m = tl.full((BLOCK // WIDTH,), float("-inf"), tl.float32)
    l = tl.zeros((BLOCK // WIDTH,), tl.float32)
    for start in tl.range(0, N, BLOCK, loop_unroll_factor=STAGES):
        col = start + tl.arange(0, BLOCK // WIDTH)[:, None] * WIDTH + tl.arange(0, WIDTH)[None, :]
        x = tl.load(x_ptr + row * stride_row + col.to(tl.int64) * stride_col, mask=col < N, other=float("-inf"))
        x = x.to(tl.float32)
        m_new = tl.maximum(m, tl.max(x, axis=1))
        shift = no_nan(m_new)
        l = l * exp(m - shift) + tl.sum(exp(x - shift[:, None]), axis=1)
        m = m_new
    shift = no_nan(tl.max(m, axis=0))
    l_all = tl.sum(l * exp(m - shift), axis=0)
    scale = 1.0 / tl.where(l_all > 0.0, l_all, 1.0)
    for start in tl.range(0, N, BLOCK, loop_unroll_factor=STAGES):
        col = start + tl.arange(0, BLOCK)
        x_at = x_ptr + row * stride_row + col.to(tl.int64) * stride_col
        x = tl.load(x_at, mask=col < N, other=float("-inf"), eviction_policy="evict_first")
        y = exp(x.to(tl.float32) - shift) * scale
        tl.store(y_ptr + row * N + col, y.to(y_ptr.dtype.element_ty), mask=col < N, eviction_policy="evict_first")


@triton.jit
def softmax_whole_rows_kernel(
    x_ptr,  # [M, N] with the strides below
    y_ptr,  # [M, N] contiguous, result
    N,
    stride_row, stride_col,
    BLOCK: tl.constexpr,  # N or more
    WHOLE: tl.constexpr,  # N and stride_row are multiples of it
):  # fmt: skip
    """The lesson's kernel for rows that fit into registers."""
    N, stride_row = multiple(N, WHOLE), multiple(stride_row, WHOLE)
    row = tl.program_id(0).to(tl.int64)
    col = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride_row + col.to(tl.int64) * stride_col, mask=col < N, other=float("-inf"))
    x = x.to(tl.float32)
    e = exp(x - no_nan(tl.max(x, axis=0)))
    l = tl.sum(e, axis=0)
    y = e * (1.0 / tl.where(l > 0.0, l, 1.0))
    tl.store(y_ptr + row * N + col, y.to(y_ptr.dtype.element_ty), mask=col < N)


@gluon.constexpr_function
def tile(width, warps):
    """Which thread has what of a chunk [STEPS, THREADS, width]: all steps of its place, `width` values side by side."""
    return gl.BlockedLayout([1, 1, width], [1, 32, 1], [1, warps, 1], [2, 1, 0])


@gluon.jit
def columns(COUNT: gl.constexpr, WIDTH: gl.constexpr):
    """0 to COUNT in the shape [STEPS, THREADS, WIDTH] of a chunk: step by step, and side by side for the threads."""
    THREADS: gl.constexpr = 32 * gl.num_warps()
    layout: gl.constexpr = tile(WIDTH, gl.num_warps())
    step = gl.arange(0, COUNT // (THREADS * WIDTH), layout=gl.SliceLayout(1, gl.SliceLayout(2, layout)))
    thread = gl.arange(0, THREADS, layout=gl.SliceLayout(0, gl.SliceLayout(2, layout)))
    within = gl.arange(0, WIDTH, layout=gl.SliceLayout(0, gl.SliceLayout(1, layout)))
    return (step[:, None, None] * THREADS + thread[None, :, None]) * WIDTH + within[None, None, :]


@gluon.jit
def low_and_high(pairs, dtype: gl.constexpr):
    """Both halves of each int32, in float32."""
    if dtype == gl.bfloat16:  # the upper half of a float32
        return (pairs << 16).to(gl.float32, bitcast=True), (pairs & -0x10000).to(gl.float32, bitcast=True)
    low = (pairs & 0xFFFF).to(gl.int16).to(dtype, bitcast=True)
    high = (pairs >> 16).to(gl.int16).to(dtype, bitcast=True)
    return low.to(gl.float32), high.to(gl.float32)


@gluon.jit
def values(pairs, dtype: gl.constexpr):
    """float32 [STEPS, THREADS, 8] of pairs[STEPS, THREADS, 4]: two halves in each int32, the lower one first.

    What is kept is kept in pairs: as halves the compiler gives each a register.
    """
    low, high = low_and_high(pairs, dtype)
    x = gl.join(low, high).reshape([pairs.shape[0], pairs.shape[1], 8])
    layout: gl.constexpr = tile(8, gl.num_warps())
    return gl.convert_layout(x, layout, assert_trivial=True)


@gluon.jit
def ask(x, slots, item, chunk, end, at, N):
    """Sends for chunk `chunk` of the row at x, as the item-th, if item < end. at: columns of a chunk, in pairs.

    Each call is a group of its own, an empty one too, so that `take` can count them.
    """
    if item < end:
        pair = chunk * (slots.shape[1] * slots.shape[2] * slots.shape[3]) + at
        async_copy.async_copy_global_to_shared(slots.index(item % slots.shape[0]), x + pair, mask=pair < N // 2)
    async_copy.commit_group()


@gluon.jit
def take(slots, item, LATER: gl.constexpr):
    """Waits for the item-th chunk, LATER having been asked for since, and returns its pairs."""
    async_copy.wait_group(LATER)
    return slots.index(item % slots.shape[0]).load(tile(4, gl.num_warps()))


@gluon.jit
def larger_float16(a, b):
    """The larger of two lower halves beside the larger of two upper ones, in one instruction."""
    return gl.inline_asm_elementwise("max.f16x2 $0, $1, $2;", "=r,r,r", [a, b], gl.int32, is_pure=True, pack=1)


@gluon.jit
def larger_bfloat16(a, b):
    """larger_float16 for bfloat16."""
    return gl.inline_asm_elementwise("max.bf16x2 $0, $1, $2;", "=r,r,r", [a, b], gl.int32, is_pure=True, pack=1)


@gluon.jit
def largest(pairs, dtype: gl.constexpr):
    """float32 [THREADS]: of what a thread has of a chunk."""
    if dtype == gl.bfloat16:
        pairs = gl.reduce(gl.reduce(pairs, 2, larger_bfloat16), 0, larger_bfloat16)
    else:
        pairs = gl.reduce(gl.reduce(pairs, 2, larger_float16), 0, larger_float16)
    low, high = low_and_high(pairs, dtype)
    layout: gl.constexpr = gl.SliceLayout(0, gl.SliceLayout(2, tile(8, gl.num_warps())))  # that of a sum over values
    return gl.convert_layout(gl.maximum(low, high), layout, assert_trivial=True)


@gluon.jit
def shift_of(m):
    """no_nan."""
    return gl.where(m == float("-inf"), 0.0, m)


@gluon.jit
def add(x, m_old, m, l):
    """l, so far under m_old, with the sum of exp(x - m)."""
    shift = shift_of(m)
    e = gl.exp2((x - shift[None, :, None]) * LOG2E)
    return l * gl.exp2((m_old - shift) * LOG2E) + gl.sum(gl.sum(e, 2), 0)


@gluon.jit
def first_pass(x, slots, pairs, m_old, m, l, begin, end, chunks, at, N, AHEAD: gl.constexpr, dtype: gl.constexpr):
    """Items begin to end - 1: the max with each, and the sum with the one before it, which `pairs` holds.

    The one's max and the other's exponentials do not depend on each other: while one unit is busy with these, another
    has work, though all warps are at the same step. m includes `pairs`, l does not; m_old is the m that l is under.
    """
    NOTHING: gl.constexpr = -0x3FF0400 if dtype == gl.float16 else -0x7F0080  # two times -inf
    for i in range(begin, end):
        next_pairs = take(slots, i, AHEAD - 1)
        ask(x, slots, i + AHEAD, i + AHEAD, chunks, at, N)
        if i == chunks - 1:  # it may be a part of one
            pair = i * (pairs.shape[0] * pairs.shape[1] * pairs.shape[2]) + at
            next_pairs = gl.where(pair < N // 2, next_pairs, NOTHING)
        m_new = gl.maximum(m, largest(next_pairs, dtype))
        l = add(values(pairs, dtype), m_old, m, l)
        pairs = next_pairs
        m_old = m
        m = m_new
    return pairs, m_old, m, l


@gluon.jit
def put(y, x, shift, log_l, chunk, at, N):
    """Writes chunk `chunk` of the row at y: exp(x - shift) / l."""
    col = chunk * (x.shape[0] * x.shape[1] * x.shape[2]) + at
    result = gl.exp2((x - shift) * LOG2E - log_l)
    gl.store(y + col, result.to(y.dtype.element_ty), mask=col < N, eviction_policy="evict_first")


@gluon.jit(do_not_specialize=["eighths", "stride_eighths"])
def softmax_kept_rows_kernel(
    x_ptr,  # [M, N] float16 or bfloat16, columns side by side, every row at a multiple of 16 bytes
    y_ptr,  # [M, N] contiguous, result
    eighths,  # N / 8
    stride_eighths,  # elements from one row of x to the next, / 8
    CHUNK: gl.constexpr,
    SLOTS: gl.constexpr,
    HELD: gl.constexpr,  # less than the row has
    BATCH: gl.constexpr,
    AHEAD: gl.constexpr,
):
    """A row a program. Its chunks come into SLOTS places of shared memory, one after the other, as items.

    The first HELD are moved on to registers; the last SLOTS are still there when the second pass begins. It begins with
    those, and where one has been, one of the chunks between is fetched again.
    """
    dtype: gl.constexpr = x_ptr.dtype.element_ty
    THREADS: gl.constexpr = 32 * gl.num_warps()
    N = eighths * 8
    row = gl.program_id(0).to(gl.int64)
    x = (x_ptr + row * stride_eighths * 8).to(gl.pointer_type(gl.int32), bitcast=True)
    y = y_ptr + row * N
    at = columns(CHUNK // 2, 4)
    plain: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [2, 1, 0])
    slots = gl.allocate_shared_memory(gl.int32, [SLOTS, CHUNK // (8 * THREADS), THREADS, 4], plain)
    chunks = gl.cdiv(N, CHUNK)

    for i in gl.static_range(AHEAD):
        ask(x, slots, i, i, chunks, at, N)
    pairs = take(slots, 0, AHEAD - 1)
    ask(x, slots, AHEAD, AHEAD, chunks, at, N)
    m = largest(pairs, dtype)
    m_old = gl.full(m.shape, float("-inf"), gl.float32, m.type.layout)
    l = gl.full(m.shape, 0.0, gl.float32, m.type.layout)
    held = ()
    for batch in gl.static_range(HELD // BATCH):
        begin = batch * BATCH + 1
        pairs, m_old, m, l = first_pass(x, slots, pairs, m_old, m, l, begin, begin + BATCH, chunks, at, N, AHEAD, dtype)
        for i in gl.static_range(BATCH):
            held = held + (slots.index((batch * BATCH + i) % SLOTS).load(tile(4, gl.num_warps())),)
    pairs, m_old, m, l = first_pass(x, slots, pairs, m_old, m, l, HELD + 1, chunks, chunks, at, N, AHEAD, dtype)
    l = add(values(pairs, dtype), m_old, m, l)
    shift = shift_of(gl.max(m, 0))
    l = gl.sum(l * gl.exp2((m - shift) * LOG2E), 0)
    log_l = gl.log2(gl.where(l > 0.0, l, 1.0))

    at_y = columns(CHUNK, 8)
    kept = gl.minimum(chunks - HELD, SLOTS)
    items = chunks + (chunks - HELD - kept)
    for i in range(chunks - kept, items):
        pairs = take(slots, i, SLOTS - 1)
        ask(x, slots, i + SLOTS, i + SLOTS - chunks + HELD, items, at, N)
        put(y, values(pairs, dtype), shift, log_l, gl.where(i < chunks, i, i - chunks + HELD), at_y, N)
    for i in gl.static_range(HELD):
        # A copy that the compiler knows nothing about: else it keeps the first pass's halves, two registers a pair.
        pairs = gl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [held[i]], gl.int32, is_pure=False, pack=1)
        put(y, values(pairs, dtype), shift, log_l, i, at_y, N)


@functools.cache
def is_hopper(device: torch.device) -> bool:
    """Has 227 KB of shared memory and 64 K registers a multiprocessor, and was measured."""
    return torch.cuda.get_device_capability(device)[0] == 9


def keeps_rows(x: torch.Tensor) -> bool:
    """Whether softmax_kept_rows_kernel takes x, and is faster.

    Shorter rows are as fast where two programs share a multiprocessor, and so is all that L2 keeps.
    """
    M, N = x.shape
    worth = N > SLOTS * CHUNK and M >= FEWEST and M * N * x.element_size() > IN_CACHE
    if not (worth and x.is_cuda and x.dtype in (torch.float16, torch.bfloat16) and is_hopper(x.device)):
        return False
    return x.stride(1) == 1 and N % 8 == 0 and x.stride(0) % 8 == 0 and x.data_ptr() % 16 == 0


def softmax(x: torch.Tensor, block: int = 1024) -> torch.Tensor:
    """Softmax over the last axis. A row that is all -inf gives zeros (torch.softmax gives NaN).

    x: [M, N] float16, bfloat16 or float32, any strides. block: columns a step, a power of two; a hint.
    Returns y [M, N] in x's dtype.
    Traffic: x is read at most twice, y is written once.
    """
    M, N = x.shape
    y = torch.empty((M, N), dtype=x.dtype, device=x.device)
    if M == 0 or N == 0:
        return y
    if keeps_rows(x):
        softmax_kept_rows_kernel[(M,)](
            x, y, N // 8, x.stride(0) // 8, CHUNK, SLOTS, HELD, BATCH, AHEAD, num_warps=WARPS
        )
        return y
    BLOCK = CHUNK if N > ROW else triton.next_power_of_2(max(min(N, block if N <= 2048 else N), 1))
    WHOLE = math.gcd(8, N, x.stride(0))
    if BLOCK < N:
        count = max(1, BLOCK // 256)
        softmax_kernel[(M,)](x, y, N, x.stride(0), x.stride(1), BLOCK, 4, WHOLE, num_warps=count)
    else:
        count = max(1, BLOCK // 1024)
        softmax_whole_rows_kernel[(M,)](x, y, N, x.stride(0), x.stride(1), BLOCK, WHOLE, num_warps=count)
    return y
