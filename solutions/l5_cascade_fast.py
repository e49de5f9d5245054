"""The fast cascade: what l5_cascade.py computes, in launches that overlap, with loops that a Hopper GPU likes.

Same four functions, same contract. Each change against the lesson's version stands in content/fast_cascade.md with
the time that it bought. Names are those of l5_cascade.py. What everybody shares is attended to in Gluon, Triton's lower
level, where a program says which warps do what, and so are requests' own pages if there are many; the interpreter and
other GPUs take the plain kernels. Here stand the four functions and which side goes first; kernels, launches and sizes
stand in fast_cascade/.

Inputs are float16, bfloat16 or float32 with any strides, Hkv divides Hq, indices are integers of any width. They are
trusted: nothing is checked, and nothing is raised but what torch and Triton raise.
"""

import torch
import triton

from solutions.fast_cascade.launches import described_own, launch_own, launch_paged, launch_shared
from solutions.fast_cascade.merge import merge_states
from solutions.fast_cascade.sizes import (
    alone,
    bulk,
    copies,
    fetches,
    mean_keys,
    multiprocessors,
    own_splits,
    results,
    row_blocks,
    shared_splits,
    shared_tile,
    two_blocks,
    without_sign,
    workspace,
)


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

    attend_own_kernel can wait for the prefix and merge. It does if all its programs fit on the GPU at once, which two
    groups of warps beside them prevent: those that wait would keep others out.
    """
    q, scale = without_sign(q, scale)
    batch, kv_heads, shared_keys = q.shape[0], k_shared.shape[1], k_shared.shape[0]
    level = (None, indptr, indices, last_page_len)
    keys = mean_keys(level, kv_cache)
    many = two_blocks(q, kv_heads)
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
        tables = None if own is None or beside else tuple(x.contiguous() for x in level[1:])
        launch_shared(q, k_shared, v_shared, scale, v[:, :shared], s[:, :shared], beside, tile_keys, tables)

    def attend_own_pages(beside: bool) -> None:
        if own is None:
            launch_paged(q, kv_cache, level, scale, *own_states, beside, tile_keys)
        else:
            taken = shared * kv_heads * row_blocks(q, rows) if tile_keys and many else 0
            slots = 5 if tile_keys and reading else 3
            tight = tile_keys == 128 and not reading
            launch_own(q, own, kv_cache, level, scale, *own_states, beside, taken, slots, tight, merged)

    launches = [attend_prefix, attend_own_pages]
    own_parts = v.shape[1] - shared
    long = kv_heads == q.shape[1] and alone(q, batch * kv_heads) and keys >= shared_keys
    own_first = batch * kv_heads * own_parts <= multiprocessors(q) or long
    merged = None
    few = own_parts == 1 and v.shape[1] <= 8
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
    parts, many, taken, small, left = [], [], [], 0, multiprocessors(q)
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
            ahead, behind = sum(reads[:i]), sum(reads[i + 1 :])
            parts.append(own_splits(q, groups, keys, kv_heads, ahead, behind, own[i] is not None))
        taken.append(programs * parts[i] if groups == 1 or many[i] else 0)
        left -= taken[i]
        small += programs * parts[i] - taken[i]
    late = left < 0 and small > 8 * multiprocessors(q)
    order = sorted(range(len(levels)), key=lambda i: late and many[i])
    v, s = workspace(q, sum(parts))
    first = 0
    for place, i in enumerate(order):
        end = first + parts[i]
        states = v[:, first:end], s[:, first:end]
        if q.shape[0] and own[i] is not None:
            ahead = sum(taken[one] for one in order[:place]) if two_blocks(q, kv_heads) else 0
            launch_own(q, own[i], kv_cache, levels[i], scale, *states, place > 0, ahead)
        elif q.shape[0]:
            launch_paged(q, kv_cache, levels[i], scale, *states, place > 0, 64 if bulk(q) else 0)
        first = end
    return merge_states(v, s, q.dtype)
