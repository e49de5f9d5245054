"""What l5's misconceptions about cascade yield, in float64.

Each takes the arguments of its exercise and answers what code written with that misconception would return.
Never used by graded code.
"""

from __future__ import annotations

import math

import torch

from drills.lessons.attend_formulas import modulo, paged, shared, to_natural
from drills.lessons.paging import State, merge
from drills.lessons.strides import unstrided


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


def q_unstrided(side: int):
    """The q of one side, 0 the shared one and 1 the own one, read as if it were contiguous."""

    def formula(q, *rest):
        states = list(in_parts(q, *rest))
        states[side] = in_parts(unstrided(q), *rest)[side]
        return merge(*states)

    return formula


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


def sides_in_half(dtype=None):
    """v of both sides rounded to a dtype, None for that of q; s is not."""
    return lambda q, *rest: merge(*((v.to(dtype or q.dtype).double(), s) for v, s in both(q, *rest)))


def over_one(states, at: int, guarded: bool) -> State:
    """Weights 2^(s - s of one state) in float32; of the largest where that is -inf and guarded. None for s."""
    s = torch.stack([one[1] for one in states])
    v = torch.stack([one[0] for one in states])
    top = s.amax(0)
    off = torch.where((s[at] == -math.inf) & guarded, torch.where(top == -math.inf, 0.0, top), s[at])
    w = torch.exp2((s - off).float()).double()
    total = w.sum(0)
    total = torch.where(guarded & (total == 0), 1.0, total)
    return (w[..., None] * torch.where(w[..., None] > 0, v, 0.0)).sum(0) / total[..., None], None


def shifted_by_side(at: int, guarded: bool):
    return lambda *args: over_one(both(*args), at, guarded)


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
