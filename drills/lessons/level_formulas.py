"""What l5's misconceptions about multi_level_cascade yield, in float64.

Each takes the arguments of the exercise and answers what code written with that misconception would return. Never used
by graded code.
"""

from __future__ import annotations

import math

import torch

from drills.lessons.attend_formulas import modulo, to_natural
from drills.lessons.cascade_formulas import average, over_one
from drills.lessons.paging import State, attend, gather, group_of, keys_of, merge, stack


def level_states(q, kv_cache, levels, scale=None, group=group_of, kv_head=None) -> list[State]:
    """The state of every request at each level; the empty one where there is no level.

    group: group_indptr, request → the group that it is taken to be in, or None. kv_head: as in paging.attend.
    """
    nothing = kv_cache[0, 0, :0], kv_cache[0, 1, :0]
    states = []
    for level in levels:
        groups = [group(level[0], i) for i in range(len(q))]
        own = [nothing if g is None else keys_of(kv_cache, *level[1:], g) for g in groups]
        states.append(stack([attend(one, k, v, scale, kv_head) for one, (k, v) in zip(q, own, strict=True)], q))
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


def shifted_by_one(at: int, guarded: bool):
    """Levels merged one after another; the s so far (0), or the new level's (1), is subtracted from both."""

    def formula(*args):
        total, *others = level_states(*args)
        for state in others:
            total = over_one([total, state], at, guarded)[0], merge(total, state)[1]
        return total[0], None if others else total[1]

    return formula


def levels_v_in_half(dtype, running: bool):
    """Each level's v rounded to a dtype, None for that of q; s is not. running: the v that they merge to as well?"""

    def formula(q, kv_cache, levels, scale=None):
        half = dtype or q.dtype
        first, *others = ((v.to(half).double(), s) for v, s in level_states(q, kv_cache, levels, scale))
        total = first
        for state in others:
            v, s = merge(total, state)
            total = v.to(half).double() if running else v, s
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


def all_levels_but(at: int):
    """One level is left out, where there are several."""

    def formula(*args):
        states = level_states(*args)
        kept = [state for i, state in enumerate(states) if i != at % len(states)] or states
        return merge(*kept)

    return formula


def with_own_table(change):
    """Levels whose kv_indptr and last_page_len are changed: change(kv_indptr, last_page_len) → both."""

    def formula(q, kv_cache, levels, scale=None):
        changed = []
        for bounds, indptr, indices, last in levels:
            other = change(indptr, last)
            changed.append((bounds, other[0], indices, other[1]))
        return merge(*level_states(q, kv_cache, changed, scale))

    return formula


def pages_from_zero(indptr, last):
    return indptr - indptr[:1], last


def length_of_first_group(indptr, last):
    return indptr, last[:1].expand_as(last)


def full_last_pages(q, kv_cache, levels, scale=None):
    """All slots of every last page."""
    full = with_own_table(lambda indptr, last: (indptr, torch.full_like(last, kv_cache.shape[2])))
    return full(q, kv_cache, levels, scale)


LAST_BY_REQUEST = (
    lambda last, i, slots: last[min(i, len(last) - 1)],
    lambda last, i, slots: last[i % len(last)],
    lambda last, i, slots: last[i] if i < len(last) else 0,
    lambda last, i, slots: last[i] if i < len(last) else slots,
)
"""kv_last_page_len[groups], a request, slots of a page → the length that is looked up by the request's number."""


def last_len_by_request(look_up):
    def formula(q, kv_cache, levels, scale=None):
        nothing = kv_cache[0, 0, :0], kv_cache[0, 1, :0]
        states = []
        for bounds, indptr, indices, last in levels:
            own = []
            for i in range(len(q)):
                g = group_of(bounds, i)
                pages = indices[int(indptr[g]) : int(indptr[g + 1])] if g is not None else ()
                length = look_up(last, i, kv_cache.shape[2]) if len(pages) else 0
                own.append(gather(kv_cache, pages, int(length)) if len(pages) else nothing)
            states.append(stack([attend(one, k, v, scale) for one, (k, v) in zip(q, own, strict=True)], q))
        v, s = merge(*(states or level_states(q, kv_cache, levels, scale)))
        return v, None if bool(s.isnan().any()) else s  # a maximum may skip a NaN, and s be a number

    return formula


def levels_modulo(*args):
    """Query head h has KV head h % Hkv at every level."""
    return merge(*level_states(*args, kv_head=modulo))


def group_from_zero(group_indptr, request):
    """As if the first group began at request 0."""
    return group_of(group_indptr - group_indptr[:1], request)


def group_without_an_end(group_indptr, request):
    """The last group that begins at or before the request."""
    begun = [g for g in range(len(group_indptr) - 1) if group_indptr[g] <= request]
    return begun[-1] if begun else None


def first_request_of_group(group_indptr, request):
    """Only the first request of a group has it."""
    g = group_of(group_indptr, request)
    return g if g is not None and int(group_indptr[g]) == request else None


def s_of_level(at: int):
    def formula(*args):
        states = level_states(*args)
        return merge(*states)[0], states[at][1]

    return formula


def levels_default_scale(q, kv_cache, levels, scale=None):
    return merge(*level_states(q, kv_cache, levels))


def scale_without_sign(q, kv_cache, levels, scale=None):
    return merge(*level_states(q, kv_cache, levels, None if scale is None else abs(scale)))


def log2e_in_the_default_only(q, kv_cache, levels, scale=None):
    """A scale that is given lacks log2(e)."""
    return merge(*level_states(q, kv_cache, levels, None if scale is None else scale * math.log(2)))


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
