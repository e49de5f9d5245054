"""What l5's misconceptions about attend_shared and attend_paged yield, in float64.

Each takes the arguments of its exercise and answers what code written with that misconception would return. Slips in
how a state is made of (m, l, o) serve both exercises. Never used by graded code.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from drills.lessons import merge_loop_rules
from drills.lessons.oracle import LOG2_E, softmax_stats
from drills.lessons.paging import State, attend, default_scale, keys_of, stack
from drills.lessons.parts import scores
from drills.lessons.running import over_l, run_heads
from drills.lessons.softmax_formulas import Recurrence

Slip = Callable[[Tensor, Tensor, Tensor], State]
"""(m[Hq] natural, l[Hq], o[Hq, D] normalized) of one request → the state that is made of them."""


def modulo(h: int, group: int, kv_heads: int) -> int:
    return h % kv_heads


def to_natural(state: State) -> State:
    return state[0], state[1] * math.log(2)


def shared(q, k, v, scale=None, kv_head=None) -> State:
    return stack([attend(one, k, v, scale, kv_head) for one in q], q)


def paged(q, kv_cache, indptr, indices, last_page_len, scale=None, *, kv_head=None, keys=keys_of) -> State:
    own = [keys(kv_cache, indptr, indices, last_page_len, i) for i in range(len(q))]
    return stack([attend(one, k, v, scale, kv_head) for one, (k, v) in zip(q, own, strict=True)], q)


# The scale.


def scaled_by(right, change):
    """`right` with another scale: change(q, scale) is what code takes for it."""

    def formula(q, *rest):
        tensors = [x for x in rest if isinstance(x, Tensor)]
        scale = rest[len(tensors)] if len(rest) > len(tensors) else None
        return right(q, *tensors, change(q, scale))

    return formula


def forgotten(q, scale):
    return 1.0


def ignored(q, scale):
    return None


def twice(q, scale):
    return default_scale(q, scale) ** 2


def without_log2e(q, scale):
    """exp2 of scores that do not carry log2(e)."""
    return default_scale(q, scale) * math.log(2)


def log2e_in_the_default_only(q, scale):
    """A scale that is given lacks log2(e)."""
    return None if scale is None else scale * math.log(2)


def of_the_block(q, scale):
    """1/sqrt of D rounded up to a power of two."""
    return (1 << (q.shape[-1] - 1).bit_length()) ** -0.5 if scale is None else scale


def zero_is_none(q, scale):
    """`scale or default`."""
    return scale or None


def without_sign(q, scale):
    """|scale|."""
    return None if scale is None else abs(scale)


def nan_at_scale_zero(right):
    """(-inf) * 0 is NaN: scores masked before they are scaled."""

    def formula(*args):
        v, s = right(*args)
        if isinstance(args[-1], (Tensor, list)) or args[-1] != 0:
            return v, s
        return v.masked_fill((s > -math.inf)[..., None], math.nan), None

    return formula


# A state made of m, l and o.


def with_slip(slip: Slip, keys=None):
    """attend_shared, or attend_paged where `keys` says which keys a request has, with states made by `slip`."""

    def formula(q, *rest):
        tensors = [x for x in rest if isinstance(x, Tensor)]
        scale = rest[len(tensors)] if len(rest) > len(tensors) else None
        own = [tensors if keys is None else keys(*tensors, i) for i in range(len(q))]
        return stack([slip(*_triple(one, k, v, scale)) for one, (k, v) in zip(q, own, strict=True)], q)

    return formula


def _triple(q, k, v, scale) -> tuple[Tensor, Tensor, Tensor]:
    m, l = softmax_stats(scores(q, for_query_heads(q, k), scale))
    return m, l, attend(q, k, v, scale)[0]


def for_query_heads(q, x: Tensor) -> Tensor:
    """x[n, Hkv, D] → [n, Hq, D]: query head h has KV head h // G."""
    return x.repeat_interleave(q.shape[-2] // x.shape[1], 1)


def not_divided(m, l, o):
    return o * l[:, None], m * LOG2_E + torch.log2(l)


def without_m(m, l, o):
    return o, torch.log2(l)


def m_plus_l(m, l, o):
    return o, m * LOG2_E + l


def ln_of_l(m, l, o):
    return o, m * LOG2_E + torch.log(l)


def m_stays_natural(m, l, o):
    return o, m + torch.log2(l)


def empty_nan(m, l, o):
    """0 / 0 in v; s is right."""
    return o.masked_fill((l == 0)[:, None], math.nan), m * LOG2_E + torch.log2(l)


def empty_nan_in_both(m, l, o):
    v, s = empty_nan(m, l, o)
    return v, s.masked_fill(l == 0, math.nan)


def scores_in_half(scaled: bool, keys=None):
    """Scores rounded to q's dtype, before or after they are scaled. keys: as in with_slip."""

    def formula(q, *rest):
        tensors = [x for x in rest if isinstance(x, Tensor)]
        scale = default_scale(q, rest[len(tensors)] if len(rest) > len(tensors) else None)
        own = [tensors if keys is None else keys(*tensors, i) for i in range(len(q))]
        return stack([_of_rounded(one, k, v, scale, scaled) for one, (k, v) in zip(q, own, strict=True)], q)

    return formula


def summed_in_half(block: int, keys=None):
    """The running output kept in the dtype of v. Keys are merged as states: s is the score in base 2."""
    rule = merge_loop_rules.summed_in_half(block, total_too=False, follows=True)

    def formula(q, *rest):
        tensors = [x for x in rest if isinstance(x, Tensor)]
        scale = rest[len(tensors)] if len(rest) > len(tensors) else None
        own = [tensors if keys is None else keys(*tensors, i) for i in range(len(q))]
        states = []
        for one, (k, v) in zip(q, own, strict=True):
            s = scores(one, for_query_heads(one, k), scale).movedim(-1, 0) * LOG2_E
            states.append((rule(for_query_heads(one, v), s)[0], attend(one, k, v, scale)[1]))
        return stack(states, q)

    return formula


def _of_rounded(q, k, v, scale, scaled: bool) -> State:
    if not len(k):
        return attend(q, k, v, scale)
    x = scores(q, for_query_heads(q, k), scale if scaled else 1.0).to(q.dtype).double() * (1.0 if scaled else scale)
    weight = torch.softmax(x, -1)
    return torch.einsum("hn,nhd->hd", weight, for_query_heads(q, v).double()), torch.logsumexp(x, -1) * LOG2_E


# The recurrence over blocks of keys.


def by_rule(rule: Recurrence, block: int, guarded: bool = True):
    """attend_shared. guarded: a sum that is not positive is not divided by."""

    def formula(q, k, v, scale=None):
        m, l, o = run_heads(rule, block, scores(q, for_query_heads(q, k), scale), for_query_heads(q, v))
        m = m if rule.shift else torch.zeros_like(m)
        s = torch.where(l > 0, m * LOG2_E + torch.log2(torch.where(l > 0, l, 1.0)), -math.inf)
        return over_l(o, l) if guarded else o / l[..., None], s

    return formula


def paged_by_rule(rule: Recurrence, block: int, guarded: bool = True):
    """attend_paged."""

    def formula(q, kv_cache, indptr, indices, last_page_len, scale=None):
        own = [keys_of(kv_cache, indptr, indices, last_page_len, i) for i in range(len(q))]
        return stack([at_once(one, k, v, scale) for one, (k, v) in zip(q, own, strict=True)], q)

    at_once = by_rule(rule, block, guarded)
    return formula


# attend_shared: which keys and rows.


def whole_blocks_only(block: int):
    """Keys past the last whole block are not read."""

    def formula(q, k, v, scale=None):
        most = len(k) // block * block
        return shared(q, k[:most], v[:most], scale)

    return formula


def keys_heads_first(q, k, v, scale=None):
    """k and v addressed as [Hkv, P, D]."""
    keys, heads, size = k.shape
    k, v = (x.reshape(heads, keys, size).transpose(0, 1) for x in (k, v))
    return shared(q, k, v, scale)


def rows_heads_first(q, k, v, scale=None):
    """q and the results addressed as if rows of one request were requests of one head: row (h, b) for (b, h)."""
    requests, heads, size = q.shape
    v_out, s_out = shared(q.reshape(heads, requests, size).transpose(0, 1), k, v, scale)
    return v_out.transpose(0, 1).reshape(q.shape), s_out.t().reshape(requests, heads)


def keys_and_values_swapped(q, k, v, scale=None):
    return shared(q, v, k, scale)


def keys_as_values(q, k, v, scale=None):
    return shared(q, k, k, scale)
