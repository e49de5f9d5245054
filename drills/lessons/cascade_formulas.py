"""What l5's misconceptions about cascade and multi_level_cascade yield, in float64.

Each takes the arguments of its exercise and answers what code written with that misconception would return.
Never used by graded code.
"""

from __future__ import annotations

import math

import torch

from drills.lessons.attend_formulas import modulo, paged, shared, to_natural
from drills.lessons.paging import State, attend, group_of, keys_of, merge, stack


def both(*args) -> tuple[State, State]:
    """The shared and the own state."""
    return in_parts(*args)


def in_parts(q, k_shared, v_shared, *rest, kv_head=None, shared_scaled=True, own_scaled=True) -> tuple[State, State]:
    """The shared and the own state. rest: kv_cache, indptr, indices, last_page_len and, if given, scale.

    kv_head: as in paging.attend. shared_scaled, own_scaled: does that side get the scale, or the default?
    """
    scale = rest[4] if len(rest) > 4 else None
    return (
        shared(q, k_shared, v_shared, scale if shared_scaled else None, kv_head),
        paged(q, *rest[:4], scale if own_scaled else None, kv_head=kv_head),
    )


def merged_parts(**faults):
    """cascade with parts that are computed with these faults."""
    return lambda *args: merge(*in_parts(*args, **faults))


MODULO = merged_parts(kv_head=modulo)


def cascade_with_keys(keys):
    def formula(q, k_shared, v_shared, kv_cache, indptr, indices, last_page_len, scale=None):
        own = paged(q, kv_cache, indptr, indices, last_page_len, scale, keys=keys)
        return merge(shared(q, k_shared, v_shared, scale), own)

    return formula


def average(states: list[State]) -> State:
    """v averaged; s as it should be."""
    return torch.stack([one[0] for one in states]).mean(0), merge(*states)[1]


def averaged(*args):
    return average(list(both(*args)))


def added(*args):
    """v_shared + v_own; s as it should be."""
    prefix, own = both(*args)
    return prefix[0] + own[0], merge(prefix, own)[1]


def swapped(*args):
    """Each side has the other's weight."""
    prefix, own = both(*args)
    return merge((own[0], prefix[1]), (prefix[0], own[1]))[0], merge(prefix, own)[1]


def merged_with_exp(*args):
    """Weights e^s of base-2 s; s as log2 of their sum, as ln of it, or right."""
    prefix, own = both(*args)
    return merge((prefix[0], prefix[1] / math.log(2)), (own[0], own[1] / math.log(2)))[0], None


def shared_natural(*args):
    prefix, own = both(*args)
    return merge(to_natural(prefix), own)


def own_natural(*args):
    prefix, own = both(*args)
    return merge(prefix, to_natural(own))


def result_natural(*args):
    return to_natural(merge(*both(*args)))


def prefix_twice(*args):
    prefix, own = both(*args)
    return merge(prefix, merge(prefix, own))


def with_s(choose):
    """v is right; s is `choose(s_shared, s_own)`."""

    def formula(*args):
        prefix, own = both(*args)
        return merge(prefix, own)[0], choose(prefix[1], own[1])

    return formula


def nan_where_empty(side: int, in_s: bool):
    """0 / 0, or 0 * NaN, where one side (0: the prefix, 1: the own pages) is empty; in s as well?"""

    def formula(*args):
        states = both(*args)
        v, s = merge(*states)
        empty = states[side][1] == -math.inf
        return v.masked_fill(empty[..., None], math.nan), s.masked_fill(empty, math.nan) if in_s else s

    return formula


# multi_level_cascade.


def level_states(q, kv_cache, levels, scale=None, group=group_of) -> list[State]:
    """The state of every request at each level; the empty one where there is no level.

    group: group_indptr, request → the group that it is taken to be in, or None.
    """
    nothing = kv_cache[0, 0, :0], kv_cache[0, 1, :0]
    states = []
    for level in levels:
        groups = [group(level[0], i) for i in range(len(q))]
        own = [nothing if g is None else keys_of(kv_cache, *level[1:], g) for g in groups]
        states.append(stack([attend(one, k, v, scale) for one, (k, v) in zip(q, own, strict=True)], q))
    return states or [stack([attend(one, *nothing, scale) for one in q], q)]


def by_group(group):
    """multi_level_cascade with another idea of which group a request is in."""
    return lambda *args: merge(*level_states(*args, group=group))


def group_of_its_number(group_indptr, request):
    return request if request < len(group_indptr) - 1 else None


def group_of_equal_size(size_of):
    """Groups taken to hold equally many of the requests."""

    def group(group_indptr, request):
        groups = len(group_indptr) - 1
        size = size_of(group_indptr, groups) if groups else 0
        return request // size if size and request // size < groups else None

    return group


def _with_its_end(group_indptr, request) -> list[int]:
    """The groups that hold the request if group g holds request group_indptr[g + 1] too."""
    return [g for g in range(len(group_indptr) - 1) if group_indptr[g] <= request <= group_indptr[g + 1]]


def group_with_its_end(group_indptr, request):
    """The last group that says so wins."""
    inside = _with_its_end(group_indptr, request)
    return inside[-1] if inside else None


def first_group_with_its_end(group_indptr, request):
    inside = _with_its_end(group_indptr, request)
    return inside[0] if inside else None


def groups_overlap(q, kv_cache, levels, scale=None):
    """A request that several groups hold gets the keys of all."""
    rows = []
    for i, one in enumerate(q):
        nothing = kv_cache[0, 0, :0], kv_cache[0, 1, :0]
        own = [keys_of(kv_cache, *level[1:], g) for level in levels for g in _with_its_end(level[0], i)]
        keys = [torch.cat(items) for items in zip(nothing, *own, strict=True)]
        rows.append(attend(one, *keys, scale))
    return stack(rows, q)


def rounded(state: State, dtype) -> State:
    return state[0].to(dtype).double(), state[1].to(dtype).double()


def levels_in_half(dtype, parts_too: bool = True):
    """Levels merged one after another, rounded to half precision each time.

    dtype: None for q's, or float16 where that is float32. parts_too: are the levels' own states rounded?
    """

    def formula(q, kv_cache, levels, scale=None):
        half = dtype or (q.dtype if q.dtype != torch.float32 else torch.float16)
        first, *others = level_states(q, kv_cache, levels, scale)
        total = rounded(first, half)
        for state in others:
            total = rounded(merge(total, rounded(state, half) if parts_too else state), half)
        return total

    return formula


def levels_averaged(*args):
    return average(level_states(*args))


def levels_averaged_in_turn(from_nothing: bool):
    """(running + level) / 2, level after level, from the first one or from (0, -inf)."""

    def formula(*args):
        states = level_states(*args)
        first, *others = [state[0] for state in states]
        v = first / 2 if from_nothing else first
        for other in others:
            v = (v + other) / 2
        return v, merge(*states)[1]

    return formula


def one_level(at: int):
    return lambda *args: level_states(*args)[at]


def s_of_level(at: int):
    def formula(*args):
        states = level_states(*args)
        return merge(*states)[0], states[at][1]

    return formula


def levels_default_scale(q, kv_cache, levels, scale=None):
    return merge(*level_states(q, kv_cache, levels))


def levels_natural(*args):
    return merge(*(to_natural(state) for state in level_states(*args)))


def outsider_nan(in_s: bool):
    """NaN for a request that is empty at some level: in no group, or in one without a key."""

    def formula(*args):
        states = level_states(*args)
        v, s = merge(*states)
        empty = torch.stack([state[1] == -math.inf for state in states]).any(0)
        return v.masked_fill(empty[..., None], math.nan), s.masked_fill(empty, math.nan) if in_s else s

    return formula
