"""Formulas of cascade_mistakes.py: what each known misconception about cascade attention yields, in float64.

Each takes the arguments of its exercise and answers what code written with that misconception would return.
Never used by graded code.
"""

from __future__ import annotations

import math

import torch

from drills.lessons.base import Args
from drills.lessons.paging import (
    State,
    attend,
    draw_cascade,
    draw_levels,
    gather,
    group_of,
    keys_of,
    merge,
    stack,
)


def modulo(h: int, group: int, kv_heads: int) -> int:
    return h % kv_heads


def to_natural(state: State) -> State:
    return state[0], state[1] * math.log(2)


def shared(q, k, v, scale=None, kv_head=None) -> State:
    return stack([attend(one, k, v, scale, kv_head) for one in q], q)


def paged(q, kv_cache, indptr, indices, last_page_len, scale=None, *, kv_head=None, keys=keys_of) -> State:
    own = [keys(kv_cache, indptr, indices, last_page_len, i) for i in range(len(q))]
    return stack([attend(one, k, v, scale, kv_head) for one, (k, v) in zip(q, own, strict=True)], q)


def both(q, k_shared, v_shared, *rest) -> tuple[State, State]:
    """The shared and the own state. rest: kv_cache, indptr, indices, last_page_len and, if given, scale."""
    scale = rest[4] if len(rest) > 4 else None
    return shared(q, k_shared, v_shared, scale), paged(q, *rest)


def pages(indptr, indices, i: int):
    return indices[int(indptr[i]) : int(indptr[i + 1])]


def keys_sorted(kv_cache, indptr, indices, last_page_len, i):
    return gather(kv_cache, pages(indptr, indices, i).sort().values, int(last_page_len[i]))


def keys_without_table(kv_cache, indptr, indices, last_page_len, i):
    positions = torch.arange(int(indptr[i]), int(indptr[i + 1])).clamp(max=len(kv_cache) - 1)
    return gather(kv_cache, positions, int(last_page_len[i]))


def keys_of_full_pages(kv_cache, indptr, indices, last_page_len, i):
    return gather(kv_cache, pages(indptr, indices, i), kv_cache.shape[2])


def keys_without_last_page(kv_cache, indptr, indices, last_page_len, i):
    return gather(kv_cache, pages(indptr, indices, i)[:-1], kv_cache.shape[2])


def with_keys(keys):
    """attend_paged with another idea of which keys a request has."""

    def formula(q, kv_cache, indptr, indices, last_page_len, scale=None):
        return paged(q, kv_cache, indptr, indices, last_page_len, scale, keys=keys)

    return formula


def cascade_with_keys(keys):
    def formula(q, k_shared, v_shared, kv_cache, indptr, indices, last_page_len, scale=None):
        own = paged(q, kv_cache, indptr, indices, last_page_len, scale, keys=keys)
        return merge(shared(q, k_shared, v_shared, scale), own)

    return formula


def average(states: list[State]) -> State:
    """v averaged; s as it should be."""
    return torch.stack([one[0] for one in states]).mean(0), merge(*states)[1]


def unscaled_shared(q, k, v, scale=None):
    return shared(q, k, v, 1.0)


def unscaled_paged(q, kv_cache, indptr, indices, last_page_len, scale=None):
    return paged(q, kv_cache, indptr, indices, last_page_len, 1.0)


def modulo_cascade(q, k_shared, v_shared, *rest):
    scale = rest[4] if len(rest) > 4 else None
    own = paged(q, *rest[:4], scale, kv_head=modulo)
    return merge(shared(q, k_shared, v_shared, scale, modulo), own)


def shared_natural(*args):
    shared, own = both(*args)
    return merge(to_natural(shared), own)


def own_natural(*args):
    shared, own = both(*args)
    return merge(shared, to_natural(own))


def prefix_twice(*args):
    shared, own = both(*args)
    return merge(shared, merge(shared, own))


def only_shared_s(*args):
    shared, own = both(*args)
    return merge(shared, own)[0], shared[1]


def empty_suffix_nan(*args):
    shared, own = both(*args)
    v, s = merge(shared, own)
    empty = own[1] == -math.inf
    return v.masked_fill(empty[..., None], math.nan), s.masked_fill(empty, math.nan)


def level_states(q, kv_cache, levels, scale=None) -> list[State]:
    states = []
    for level in levels:
        rows = []
        for i, one in enumerate(q):
            g = group_of(level[0], i)
            k, v = keys_of(kv_cache, *level[1:], g) if g is not None else (kv_cache[0, 0, :0], kv_cache[0, 1, :0])
            rows.append(attend(one, k, v, scale))
        states.append(stack(rows, q))
    return states


def levels_in_half(q, kv_cache, levels, scale=None):
    half = q.dtype if q.dtype != torch.float32 else torch.float16
    total = None
    for v, s in level_states(q, kv_cache, levels, scale):
        rounded = v.to(half).double(), s.to(half).double()
        total = rounded if total is None else tuple(x.to(half).double() for x in merge(total, rounded))
    return total


def levels_averaged(q, kv_cache, levels, scale=None):
    return average(level_states(q, kv_cache, levels, scale))


def first_level_only(q, kv_cache, levels, scale=None):
    return level_states(q, kv_cache, levels, scale)[0]


def levels_natural(q, kv_cache, levels, scale=None):
    return merge(*(to_natural(state) for state in level_states(q, kv_cache, levels, scale)))


def outsider_nan(q, kv_cache, levels, scale=None):
    v, s = merge(*level_states(q, kv_cache, levels, scale))
    outside = torch.tensor([any(group_of(level[0], i) is None for level in levels) for i in range(len(q))])
    return v.masked_fill(outside[:, None, None], math.nan), s.masked_fill(outside[:, None], math.nan)


def draw_suffix_missing(rng) -> Args:
    q, k, v, kv_cache, indptr, indices, last = draw_cascade(rng)
    indptr[2:] = indptr[1].clone()
    return q, k, v, kv_cache, indptr, indices, last


def draw_outsider(rng) -> Args:
    q, kv_cache, levels = draw_levels(rng)
    group_indptr, *pages = levels[1]
    return q, kv_cache, [levels[0], (group_indptr.clamp(max=3), *pages), levels[2]]


def draw_half_levels(rng) -> Args:
    q, kv_cache, levels = draw_levels(rng)
    return q.half(), kv_cache.half(), levels
