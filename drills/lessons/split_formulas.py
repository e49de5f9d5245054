"""What l2's misconceptions about partial_attention yield, in float64 tensors: m[N, H], l[N, H], o[N, H, D].

A formula takes the arguments of the exercise: q[H, D], k[L, H, D], v[L, H, D], num_splits, scale.
Never used by graded code.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

from drills.lessons.oracle import LOG2_E
from drills.lessons.parts import default_scale, partial, scores, spans
from drills.lessons.running import over_l, run_heads
from drills.lessons.softmax_formulas import Recurrence


def right(q, k, v, num_splits, scale=None):
    return partial(scores(q, k, scale), v, spans(len(k), num_splits))


def unscaled(q, k, v, num_splits, scale=None):
    return partial(scores(q, k, 1.0), v, spans(len(k), num_splits))


def scaled_twice(q, k, v, num_splits, scale=None):
    s = q.shape[-1] ** -0.5 if scale is None else scale
    return partial(scores(q, k, s * s), v, spans(len(k), num_splits))


def default_scale_always(q, k, v, num_splits, scale=None):
    return partial(scores(q, k), v, spans(len(k), num_splits))


def keys_and_values_swapped(q, k, v, num_splits, scale=None):
    return right(q, v, k, num_splits, scale)


def lse_for_m(q, k, v, num_splits, scale=None):
    """m + ln l where m belongs; l and o are right."""
    m, l, o = right(q, k, v, num_splits, scale)
    return m + torch.log(l), l, o


def rounded_down(q, k, v, num_splits, scale=None):
    """T = L // N: the last L % N keys belong to no part."""
    step = len(k) // num_splits
    return partial(scores(q, k, scale), v, [slice(n * step, (n + 1) * step) for n in range(num_splits)])


def one_key_more(q, k, v, num_splits, scale=None):
    """T = L // N + 1: right where N does not divide L."""
    step = len(k) // num_splits + 1
    ends = [min(n * step, len(k)) for n in range(num_splits + 1)]
    return partial(scores(q, k, scale), v, [slice(a, b) for a, b in zip(ends, ends[1:], strict=False)])


def zero_is_no_scale(q, k, v, num_splits, scale=None):
    """`scale or default`."""
    return right(q, k, v, num_splits, scale or None)


def scale_of_padded_d(q, k, v, num_splits, scale=None):
    """1/√D with D rounded up to a power of two."""
    padded = 1 << (q.shape[-1] - 1).bit_length()
    return right(q, k, v, num_splits, padded**-0.5 if scale is None else scale)


def balanced(q, k, v, num_splits, scale=None):
    """Part n covers keys n L // N to (n + 1) L // N."""
    ends = [n * len(k) // num_splits for n in range(num_splits + 1)]
    return partial(scores(q, k, scale), v, [slice(a, b) for a, b in zip(ends, ends[1:], strict=False)])


def m_unscaled(q, k, v, num_splits, scale=None):
    """The max of q · k; l and o are right."""
    return unscaled(q, k, v, num_splits)[0], *right(q, k, v, num_splits, scale)[1:]


def max_before_scale(q, k, v, num_splits, scale=None):
    """m is the largest q @ k, times the scale; l is relative to it."""
    m, l, o = right(q, k, v, num_splits, scale)
    largest = unscaled(q, k, v, num_splits)[0]
    scaled = torch.where(l > 0, largest * default_scale(q, scale), m)
    return scaled, l * torch.exp(torch.where(l > 0, m - scaled, 0.0)), o


def swapped(q, k, v, num_splits, scale=None):
    m, l, o = right(q, k, v, num_splits, scale)
    return l, m, o


def o_not_divided(q, k, v, num_splits, scale=None):
    m, l, o = right(q, k, v, num_splits, scale)
    return m, l, o * l[..., None]


def o_divided_twice(q, k, v, num_splits, scale=None):
    m, l, o = right(q, k, v, num_splits, scale)
    return m, l, over_l(o, l)


def whole_blocks(block: int) -> Callable[..., tuple]:
    """T rounded up to whole blocks of `block` keys."""

    def formula(q, k, v, num_splits, scale=None):
        step = -(-len(k) // num_splits)
        step = -(-step // block) * block
        parts = [slice(min(n * step, len(k)), min((n + 1) * step, len(k))) for n in range(num_splits)]
        return partial(scores(q, k, scale), v, parts)

    return formula


WHOLE_BLOCKS = tuple(whole_blocks(block) for block in (16, 2, 4, 8, 32, 64, 128))


def nan_at_scale_zero(q, k, v, num_splits, scale=None):
    """(-inf) * 0 is NaN: in a part whose last block is not full, scores masked before they are scaled."""
    m, l, o = right(q, k, v, num_splits, scale)
    spoilt = (l > 0) & (scale == 0)
    return None, torch.where(spoilt, math.nan, l), torch.where(spoilt[..., None], math.nan, o)


def m_in_base_2(q, k, v, num_splits, scale=None):
    m, l, o = right(q, k, v, num_splits, scale)
    return m * LOG2_E, l, o


def every_part_whole(q, k, v, num_splits, scale=None):
    """Each part saw all keys."""
    return partial(scores(q, k, scale), v, [slice(0, len(k))] * num_splits)


def interleaved(q, k, v, num_splits, scale=None):
    """Part n took keys n, n + N, n + 2N …"""
    return partial(scores(q, k, scale), v, [slice(n, None, num_splits) for n in range(num_splits)])


def empty_part_nan(q, k, v, num_splits, scale=None):
    """0 / 0 in parts past the end."""
    m, l, o = right(q, k, v, num_splits, scale)
    return m, l, torch.where((l == 0)[..., None], math.nan, o)


def padding_scores_zero(block: int) -> Callable[..., tuple]:
    """Keys that fill a part's last block of `block` have score 0 and value 0, and count."""

    def formula(q, k, v, num_splits, scale=None):
        x, triples = scores(q, k, scale), []
        for part in spans(len(k), num_splits):
            more = -(part.stop - part.start) % block
            padded = torch.cat([x[..., part], x.new_zeros(*x.shape[:-1], more)], -1)
            zeros = v.new_zeros(more, *v.shape[1:])
            triples.append(partial(padded, torch.cat([v[part], zeros]), [slice(None)]))
        return tuple(torch.cat(items) for items in zip(*triples, strict=True))

    return formula


def rest_to_the_last(q, k, v, num_splits, scale=None):
    """T = L // N, and the last part goes on to key L."""
    step = len(k) // num_splits
    starts = [n * step for n in range(num_splits)]
    ends = [*starts[1:], len(k)]
    return partial(scores(q, k, scale), v, [slice(a, b) for a, b in zip(starts, ends, strict=True)])


def base_2(q, k, v, num_splits, scale=None):
    """exp2 of natural scores; m is right."""
    m, _, _ = right(q, k, v, num_splits, scale)
    _, l, o = right(q, k, v, num_splits, default_scale(q, scale) * math.log(2))
    return m, l, o


def heads_first(*which: str) -> Callable[..., tuple]:
    """k, or v, or both addressed as [H, L, D]."""

    def formula(q, k, v, num_splits, scale=None):
        keys, heads, size = k.shape
        turned = {name: x.reshape(heads, keys, size).transpose(0, 1) for name, x in (("k", k), ("v", v))}
        k, v = (turned[name] if name in which else x for name, x in (("k", k), ("v", v)))
        return right(q, k, v, num_splits, scale)

    return formula


HEADS_FIRST = heads_first("k", "v"), heads_first("k"), heads_first("v")


def keys_of_head_0(q, k, v, num_splits, scale=None):
    """The head is missing in the address of k and v."""
    return right(q, k[:, :1].expand_as(k), v[:, :1].expand_as(v), num_splits, scale)


def keys_as_values(q, k, v, num_splits, scale=None):
    return right(q, k, k, num_splits, scale)


def stored_heads_first(q, k, v, num_splits, scale=None):
    """The results of part n, head h stored where [H, N] would have them."""
    return tuple(x.transpose(0, 1).reshape(x.shape) for x in right(q, k, v, num_splits, scale))


def by_rule(rule: Recurrence, block: int, m_kept: bool = True, guarded: bool = True) -> Callable[..., tuple]:
    """The recurrence as `rule` has it. m_kept: is the max returned although nothing was shifted by it?"""

    def formula(q, k, v, num_splits, scale=None):
        x, triples = scores(q, k, scale), []
        for part in spans(len(k), num_splits):
            m, l, o = run_heads(rule, block, x[:, part], v[part])
            m = m if rule.shift or m_kept else torch.zeros_like(m)
            triples.append((m, l, over_l(o, l) if guarded else o / l[..., None]))
        return tuple(torch.stack(items) for items in zip(*triples, strict=True))

    return formula


def past_its_end(block: int | None) -> Callable[..., tuple]:
    """A part's last block of `block` is masked by key < L alone; None: every part goes on to key L."""

    def formula(q, k, v, num_splits, scale=None):
        parts = []
        for part in spans(len(k), num_splits):
            whole = -(-(part.stop - part.start) // block) * block if block else len(k)
            parts.append(slice(part.start, min(part.start + whole, len(k))))
        return partial(scores(q, k, scale), v, parts)

    return formula
