"""The fast partial attention: what partial_attention of l2_mlo_merge.py computes, with keys that are fetched ahead.

Same function, same contract. A program's keys and values come into a ring in shared memory, two steps ahead, and a
thread has a piece of 8 of them a step. With 512 programs and more each is a single warp, which waits for nobody. That
is said in Gluon, Triton's lower level, where a program decides which thread has what; other inputs, the interpreter and
other GPUs take the lesson's kernel. What it bought stands in content/performance.md.
"""

import functools
import math

import torch
import triton
import triton.language as tl
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.ampere import async_copy

LOG2E = gl.constexpr(1.4426950408889634)

EACH = 8
"""Keys that a thread has a piece of, a step."""

SLOTS = 3
"""Steps in shared memory: the one that is worked on and two on their way, 8 KB each for a warp."""

FEWEST = 128
"""Programs; fewer have more than 4 warps each in the lesson's kernel, and were not tried here."""

MOST = 256 << 20
"""Bytes of k and v. Of some GB the lesson's kernel takes what reading takes; single warps were 3 % slower there."""


@triton.jit
def no_nan(m):
    """What to subtract for a max m: (-inf) - (-inf) is NaN, (-inf) - 0 is not."""
    return tl.where(m == float("-inf"), 0.0, m)


@triton.jit(do_not_specialize=["H", "L", "T"])
def partial_attention_kernel(
    q_ptr,  # [H, D] contiguous
    k_ptr,  # [L, H, D] with the strides below
    v_ptr,  # [L, H, D] with the strides below
    m_ptr,  # [N, H] float32, result
    l_ptr,  # [N, H] float32, result
    o_ptr,  # [N, H, D] float32, result
    H,
    L,
    T,  # keys a part
    scale,
    stride_kl, stride_kh, stride_kd,  # elements from one key, head, column of k to the next
    stride_vl, stride_vh, stride_vd,  # the same for v
    D: tl.constexpr,
    BLOCK_L: tl.constexpr,  # keys a step
    BLOCK_D: tl.constexpr,  # D rounded up to a power of two
):  # fmt: skip
    """The lesson's kernel."""
    head = (tl.program_id(0) % H).to(tl.int64)  # heads side by side: their keys are neighbors in memory
    part = tl.program_id(0) // H
    d = tl.arange(0, BLOCK_D)
    q = tl.load(q_ptr + head * D + d, mask=d < D, other=0.0).to(tl.float32) * scale

    # Each of the BLOCK_L places in a step is a recurrence of its own, and no thread waits for another: the places are
    # parts of the part, and merge at the end.
    m = tl.full((BLOCK_L,), float("-inf"), tl.float32)
    l = tl.zeros((BLOCK_L,), tl.float32)
    o = tl.zeros((BLOCK_L, BLOCK_D), tl.float32)
    end = tl.minimum((part + 1) * T, L)
    for start in tl.range(part * T, end, BLOCK_L, num_stages=4):
        key = (start + tl.arange(0, BLOCK_L)).to(tl.int64)
        ok = (key < end)[:, None] & (d < D)[None, :]
        d_wide = d[None, :].to(tl.int64)
        k = tl.load(k_ptr + key[:, None] * stride_kl + head * stride_kh + d_wide * stride_kd, mask=ok, other=0.0)
        v = tl.load(v_ptr + key[:, None] * stride_vl + head * stride_vh + d_wide * stride_vd, mask=ok, other=0.0)
        score = tl.sum(q[None, :] * k.to(tl.float32), axis=1)  # [BLOCK_L]
        score = tl.where(key < end, score, float("-inf"))  # a key past the end would score 0

        m_new = tl.maximum(m, score)
        shift = no_nan(m_new)
        keep = tl.exp(m - shift)
        w = tl.exp(score - shift)
        o = o * keep[:, None] + w[:, None] * v.to(tl.float32)
        l = l * keep + w
        m = m_new

    m_part = tl.max(m, axis=0)
    w = tl.exp(m - no_nan(m_part))
    l_part = tl.sum(l * w, axis=0)
    o_part = tl.sum(o * w[:, None], axis=0) / tl.where(l_part > 0.0, l_part, 1.0)
    row = part.to(tl.int64) * H + head  # [N, H]
    tl.store(m_ptr + row, m_part)
    tl.store(l_ptr + row, l_part)
    tl.store(o_ptr + row * D + d, o_part, mask=d < D)


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
def ask(x, slots, step, steps, key, stride, end):
    """Sends for the rows key[EACH, PLACES, pieces, 4] of step `step`, if there is such a step."""
    if step < steps:
        n = key + step * (slots.shape[1] * slots.shape[2])
        slot = slots.index(step % slots.shape[0])
        async_copy.async_copy_global_to_shared(slot, x + n.to(gl.int64) * stride, mask=n < end)


@gluon.jit(do_not_specialize=["H", "L", "T", "k_key", "k_head", "v_key", "v_head"])
def attend_ahead_kernel(
    q_ptr,  # [H, D] contiguous
    k_ptr,  # [L, H, D] float16 or bfloat16, columns side by side, every row at a multiple of 16 bytes
    v_ptr,  # [L, H, D], the same
    m_ptr,  # [N, H] float32, result
    l_ptr,  # [N, H] float32, result
    o_ptr,  # [N, H, D] float32, result
    H,
    L,
    T,  # keys a part
    scale,
    k_key, k_head,  # elements from one key, head of k to the next, / 8
    v_key, v_head,  # the same for v
    D: gl.constexpr,  # 64, 128 or 256
    EACH: gl.constexpr,
    SLOTS: gl.constexpr,
):  # fmt: skip
    """A head of a part a program. Every PLACES-th key has the same place, and a place is a recurrence of its own."""
    PIECES: gl.constexpr = D // 8
    PLACES: gl.constexpr = 32 * gl.num_warps() // PIECES
    STEP: gl.constexpr = EACH * PLACES
    loads: gl.constexpr = tile(4, PIECES, gl.num_warps())  # int32
    halves: gl.constexpr = tile(8, PIECES, gl.num_warps())
    scores: gl.constexpr = gl.SliceLayout(2, gl.SliceLayout(3, halves))  # [EACH, PLACES]
    sums: gl.constexpr = gl.SliceLayout(0, halves)  # [PLACES, PIECES, 8]

    head = (gl.program_id(0) % H).to(gl.int64)
    part = gl.program_id(0) // H
    end = gl.minimum((part + 1) * T, L)
    steps = gl.cdiv(gl.maximum(end - part * T, 0), STEP)
    each = gl.arange(0, EACH, layout=along(0, loads))[:, None, None, None]
    place = gl.arange(0, PLACES, layout=along(1, loads))[None, :, None, None]
    piece = gl.arange(0, PIECES, layout=along(2, loads))[None, None, :, None]
    within = gl.arange(0, 4, layout=along(3, loads))[None, None, None, :]
    key = part * T + each * PLACES + place + gl.zeros([EACH, PLACES, PIECES, 4], gl.int32, loads)
    k = (k_ptr + head * k_head * 8).to(gl.pointer_type(gl.int32), bitcast=True) + piece * 4 + within
    v = (v_ptr + head * v_head * 8).to(gl.pointer_type(gl.int32), bitcast=True) + piece * 4 + within
    plain: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [3, 2, 1, 0])
    k_slots = gl.allocate_shared_memory(gl.int32, [SLOTS, EACH, PLACES, PIECES, 4], plain)
    v_slots = gl.allocate_shared_memory(gl.int32, [SLOTS, EACH, PLACES, PIECES, 4], plain)
    for step in gl.static_range(SLOTS - 1):
        ask(k, k_slots, step, steps, key, k_key * 4, end)
        ask(v, v_slots, step, steps, key, v_key * 4, end)
        async_copy.commit_group()

    d = gl.arange(0, PIECES, layout=along(2, halves))[None, None, :, None] * 8
    d = d + gl.arange(0, 8, layout=along(3, halves))[None, None, None, :]
    q = gl.load(q_ptr + head * D + d).to(gl.float32) * scale
    n = gl.arange(0, EACH, layout=gl.SliceLayout(1, scores))[:, None] * PLACES
    n = part * T + n + gl.arange(0, PLACES, layout=gl.SliceLayout(0, scores))[None, :]
    m = gl.full([PLACES], float("-inf"), gl.float32, gl.SliceLayout(0, scores))
    l = gl.full([PLACES], 0.0, gl.float32, gl.SliceLayout(0, scores))
    o = gl.full([PLACES, PIECES, 8], 0.0, gl.float32, sums)
    for step in range(steps):
        async_copy.wait_group(SLOTS - 2)  # a group a step, an empty one too
        k_pairs = k_slots.index(step % SLOTS).load(loads)
        v_pairs = v_slots.index(step % SLOTS).load(loads)
        ask(k, k_slots, step + SLOTS - 1, steps, key, k_key * 4, end)
        ask(v, v_slots, step + SLOTS - 1, steps, key, v_key * 4, end)
        async_copy.commit_group()

        score = gl.sum(gl.sum(q * values(k_pairs, k_ptr.dtype.element_ty), 3), 2)
        score = gl.where(n + step * STEP < end, score, float("-inf"))  # a key past the end would score 0
        m_new = gl.maximum(m, gl.max(score, 0))
        shift = gl.where(m_new == float("-inf"), 0.0, m_new)
        keep = gl.exp2((m - shift) * LOG2E)
        w = gl.exp2((score - shift[None, :]) * LOG2E)
        more = gl.sum(w[:, :, None][:, :, :, None] * values(v_pairs, v_ptr.dtype.element_ty), 0)
        scaled = gl.convert_layout(keep, gl.SliceLayout(1, gl.SliceLayout(2, sums)), assert_trivial=True)
        o = o * scaled[:, None][:, :, None] + more
        l = l * keep + gl.sum(w, 0)
        m = m_new

    m_part = gl.max(m, 0)  # the places merge
    w = gl.exp2((m - gl.where(m_part == float("-inf"), 0.0, m_part)) * LOG2E)
    l_part = gl.sum(l * w, 0)
    w = gl.convert_layout(w, gl.SliceLayout(1, gl.SliceLayout(2, sums)), assert_trivial=True)
    o_part = gl.sum(o * w[:, None][:, :, None], 0) / gl.where(l_part > 0.0, l_part, 1.0)
    row = part.to(gl.int64) * H + head
    gl.store(m_ptr + row, m_part)
    gl.store(l_ptr + row, l_part)
    rows: gl.constexpr = gl.SliceLayout(0, sums)  # [PIECES, 8]
    d = gl.arange(0, PIECES, layout=gl.SliceLayout(1, rows))[:, None] * 8
    d = d + gl.arange(0, 8, layout=gl.SliceLayout(0, rows))[None, :]
    gl.store(o_ptr + row * D + d, o_part)


@functools.cache
def is_hopper(device: torch.device) -> bool:
    """Was measured."""
    return torch.cuda.get_device_capability(device)[0] == 9


def fetches_ahead(k: torch.Tensor, v: torch.Tensor, num_splits: int) -> bool:
    """Whether attend_ahead_kernel takes k and v, and is faster. A thread's 16 bytes are 8 columns of whatever row."""
    L, H, D = k.shape
    worth = num_splits * H >= FEWEST and 2 * L * H * D * k.element_size() <= MOST
    if not (worth and k.is_cuda and D in (64, 128, 256) and is_hopper(k.device)):
        return False
    return all(
        x.dtype in (torch.float16, torch.bfloat16)
        and x.data_ptr() % 16 == 0
        and x.stride(2) == 1
        and all(stride % 8 == 0 and stride < 1 << 31 for stride in x.stride()[:2])
        for x in (k, v)
    )


def partial_attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, num_splits: int, scale: float | None = None
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Attention of one query over num_splits parts of the keys, each part by itself.

    q: [H, D], k and v: [L, H, D], float16, bfloat16 or float32, any strides. scale: 1/sqrt(D) if None.
    Part n covers keys n * T to min((n + 1) * T, L), T = ceil(L / num_splits). Scores are q . k * scale.
    Returns m [N, H], l [N, H], o [N, H, D], all float32, N = num_splits: the part's largest score, its sum of
    exp(score - m), its normalized output. A part with no keys gives (-inf, 0, 0).
    At least N * H programs run. Traffic: one read of k and v will do; more than twice the least fails.
    """
    H, D = q.shape
    L = k.shape[0]
    m = torch.empty((num_splits, H), dtype=torch.float32, device=q.device)
    l = torch.empty((num_splits, H), dtype=torch.float32, device=q.device)
    o = torch.empty((num_splits, H, D), dtype=torch.float32, device=q.device)
    scale = 1.0 / math.sqrt(D) if scale is None else scale
    T = triton.cdiv(L, num_splits)
    if fetches_ahead(k, v, num_splits):
        warps = min(4, triton.next_power_of_2(triton.cdiv(512, num_splits * H)))
        attend_ahead_kernel[(num_splits * H,)](
            q.contiguous(), k, v, m, l, o, H, L, T, scale,
            k.stride(0) // 8, k.stride(1) // 8, v.stride(0) // 8, v.stride(1) // 8, D, EACH, SLOTS, num_warps=warps,
        )  # fmt: skip
        return m, l, o
    BLOCK_D = triton.next_power_of_2(D)
    # 512 elements a step and warp. Where programs are few, each has the more warps: about 1,024 in all, to 8.
    warps = min(8, triton.next_power_of_2(triton.cdiv(1024, max(1, num_splits * H))))
    BLOCK_L = max(1, min(64, 512 // BLOCK_D)) * warps
    partial_attention_kernel[(num_splits * H,)](
        q.contiguous(), k, v, m, l, o, H, L, T, scale,
        *k.stride(), *v.stride(), D, BLOCK_L, BLOCK_D, num_warps=warps,
    )  # fmt: skip
    return m, l, o
