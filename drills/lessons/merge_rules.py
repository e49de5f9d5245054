"""Wrong ways to merge states, as small float64 functions: what l4's mistakes are built from.

A rule takes states along axis 0, v[N, ..., D] and s[N, ...], and answers (v[..., D], s[...]) as code with one
misconception would; None in place of a result that the misconception says nothing about. `oracle.merge` is the right
rule. Never used by graded code.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import torch
from torch import Tensor

from drills.lessons.oracle import LOG2_E, finite_shift, largest, merge

Rule = Callable[[Tensor, Tensor], tuple[Tensor | None, Tensor | None]]


def weights(s: Tensor) -> Tensor:
    """2^(s - max s) along axis 0, 0 for an empty state."""
    return torch.exp2(s.double() - finite_shift(largest(s, 0)))


def drop_unused(w: Tensor, v: Tensor) -> Tensor:
    """v in float64, with 0 where the weight is 0."""
    return torch.where(w[..., None] > 0, v.double(), 0.0)


def divided(v: Tensor, total: Tensor) -> Tensor:
    """v / total, with 0 where there is nothing to divide by."""
    return v / torch.where(total == 0, 1.0, total)[..., None]


# The wrong base.

exp_for_exp2: Rule = functools.partial(merge, exp=torch.exp)
ln_for_log2: Rule = functools.partial(merge, log=torch.log)
natural: Rule = functools.partial(merge, exp=torch.exp, log=torch.log)


def exp_for_exp2_in_v(v: Tensor, s: Tensor):
    """s is computed apart, and right."""
    return exp_for_exp2(v, s)[0], merge(v, s)[1]


def exp_in_one_weight(at: int) -> Rule:
    """The weight of the first state alone (0), or of the last (-1), is e^(s - m)."""

    def formula(v: Tensor, s: Tensor):
        m = finite_shift(largest(s, 0))
        apart = s.double() - m
        apart[at] *= LOG2_E
        return merge(v, m + apart)

    return formula


def converted(v: Tensor, s: Tensor):
    """s, base 2 already, times log2 e."""
    return merge(v, s.double() * LOG2_E)


LN_2 = 1 / LOG2_E
SHORT_LN_2 = (0.69, 0.693, 0.6931, 0.69315, 0.69314, 0.7)
SHORT_LOG2_E = (1.44, 1.442, 1.443, 1.4427, 1.44269, 1.4)


def through_natural(inwards: float, outwards: float) -> Rule:
    """s is made natural by one factor, which should be ln 2, and base 2 again by the other, which should be log2 e."""

    def formula(v: Tensor, s: Tensor):
        right_v, natural_s = merge(v, s.double() * inwards, exp=torch.exp, log=torch.log)
        return right_v, natural_s * outwards

    return formula


SHORT_CONSTANTS: tuple[Rule, ...] = (
    *(through_natural(short, 1 / short) for short in SHORT_LN_2),
    *(through_natural(1 / short, short) for short in SHORT_LOG2_E),
    *(through_natural(short, LOG2_E) for short in SHORT_LN_2),
    *(through_natural(LN_2, short) for short in SHORT_LOG2_E),
    *(through_natural(one, other) for one in SHORT_LN_2 for other in SHORT_LOG2_E),
)
"""A constant of a change of base with too few digits: there and back, one way alone, or two of them."""


# The wrong weights.


def averaged(v: Tensor, s: Tensor):
    return v.double().sum(0) / max(1, len(v)), None


def swapped(v: Tensor, s: Tensor):
    """Each state has the other's weight."""
    return merge(v.flip(0), s)[0], merge(v, s)[1]


def not_normalized(v: Tensor, s: Tensor):
    w = weights(s)
    return (w[..., None] * drop_unused(w, v)).sum(0), merge(v, s)[1]


def divided_by_count(v: Tensor, s: Tensor):
    """The weighted sum over the number of states."""
    w = weights(s)
    return (w[..., None] * drop_unused(w, v)).sum(0) / max(1, len(v)), None


def divided_by_count_too(v: Tensor, s: Tensor):
    """Normalized, and then divided by the number of states."""
    return merge(v, s)[0] / max(1, len(v)), merge(v, s)[1]


def inverted(v: Tensor, s: Tensor):
    """Weights 2^(max s - s)."""
    w = torch.where(s == -torch.inf, 0.0, torch.exp2(finite_shift(largest(s, 0)) - s.double()))
    return divided((w[..., None] * drop_unused(w, v)).sum(0), w.sum(0)), None


def s_as_weight(v: Tensor, s: Tensor):
    """Weights s in place of 2^s."""
    w = s.double()
    return (w[..., None] * v.double()).sum(0) / w.sum(0)[..., None], None


def unshifted(v: Tensor, s: Tensor):
    """2^s in float32 with no maximum taken off: too large, or 0 throughout, for a large |s|."""
    w = torch.exp2(s.float())
    total = w.sum(0).double()
    used = drop_unused(w, v)
    return (w.double()[..., None] * used).sum(0) / total[..., None], torch.log2(total)


def max_from(start: float) -> Rule:
    """The running max starts at a finite number: in float32, every weight is 0 where all s are far below."""

    def formula(v: Tensor, s: Tensor):
        m = largest(s, 0).clamp(min=start)
        w = torch.exp2((s.double() - m).float()).double()
        return (w[..., None] * drop_unused(w, v)).sum(0) / w.sum(0)[..., None], m + torch.log2(w.sum(0))

    return formula


def clamped(start: float) -> Rule:
    """No s is below a finite number. What is returned for s may be repaired afterwards."""

    def formula(v: Tensor, s: Tensor):
        return merge(v, s.clamp(min=start))[0], None

    return formula


def started(start: float) -> Rule:
    """The running sums start as a state with s = start and v = 0."""

    def formula(v: Tensor, s: Tensor):
        none = v.new_zeros(1, *v.shape[1:])
        return merge(torch.cat([v, none]), torch.cat([s, s.new_full((1, *s.shape[1:]), start)]))

    return formula


def empty_below(bound: float) -> Rule:
    """A state with s below a finite number is taken to be empty."""

    def formula(v: Tensor, s: Tensor):
        return merge(v, torch.where(s < bound, -torch.inf, s))[0], None

    return formula


def shifted_by(at: int, guarded: bool) -> Rule:
    """The s of one state is taken off in place of the largest: 2^(s - s_0) overflows where s_0 is far below.

    at: 0 for the first, -1 for the last. guarded: is the largest taken where that is -inf?
    """

    def formula(v: Tensor, s: Tensor):
        m = s[at] if len(s) else s.sum(0)
        m = torch.where((m == -torch.inf) & guarded, finite_shift(largest(s, 0)).float(), m)
        w = torch.exp2(s.float() - m)
        total = w.sum(0)
        used = torch.where(w[..., None] > 0, v.float(), 0.0)
        total = torch.where(guarded & (total == 0), 1.0, total)
        return ((w[..., None] * used).sum(0) / total[..., None]).double(), None

    return formula


def guarded(rule: Rule) -> Rule:
    """`rule`, with v = 0 where it divides 0 by 0."""

    def formula(v: Tensor, s: Tensor):
        wrong_v, wrong_s = rule(v, s)
        nothing = (wrong_s == -torch.inf)[..., None]
        return torch.where(nothing, 0.0, wrong_v), wrong_s

    return formula


IN_REACH = (-1e4, -2e4, -3e4, -5e4, -65504.0)
OUT_OF_REACH = (-1e5, -1e6, -1e9, -1e10, -1e30, -1e38, torch.finfo(torch.float32).min)
"""Numbers that are taken for minus infinity, above and below the scores of the cases."""

STAND_INS: tuple[Rule, ...] = (
    *(rule(start) for start in IN_REACH + OUT_OF_REACH for rule in (clamped, started)),
    *(max_from(start) for start in IN_REACH),
    *(guarded(max_from(start)) for start in IN_REACH),
    *(empty_below(start) for start in (-100.0, -200.0, -300.0, -500.0, -1000.0, -5000.0, *IN_REACH)),
)
"""Ways to put a finite number where -inf belongs. A maximum that starts out of reach does no harm of its own."""


# Empty states.


def all_empty(s: Tensor) -> Tensor:
    return largest(s, 0) == -torch.inf


def two_empties_nan(v: Tensor, s: Tensor):
    """(-inf) - (-inf), or 0 / 0."""
    return torch.where(all_empty(s)[..., None], torch.nan, merge(v, s)[0]), None


def two_empties_nan_in_s(v: Tensor, s: Tensor):
    right_v, right_s = merge(v, s)
    return right_v, torch.where(all_empty(s), torch.nan, right_s)


def no_states_weigh_one(v: Tensor, s: Tensor):
    """s = 0 where there is no state at all; states that are there and empty are handled."""
    right_v, right_s = merge(v, s)
    return right_v, right_s if len(s) else torch.zeros(s.shape[1:]).double()


def empties_weigh_one(v: Tensor, s: Tensor):
    """s = 0 where all states are empty, or where there is none."""
    right_v, right_s = merge(v, s)
    return right_v, torch.where(all_empty(s), 0.0, right_s)


def no_states_nan(v: Tensor, s: Tensor):
    """0 / 0 where there is no state at all; states that are there and empty are handled."""
    return (merge(v, s)[0] if len(s) else torch.full(v.shape[1:], torch.nan).double()), None


def empty_payload(v: Tensor, s: Tensor):
    """0 * NaN is NaN."""
    w = weights(s)
    return divided((w[..., None] * v.double()).sum(0), w.sum(0)), merge(v, s)[1]


def nan_filtered(v: Tensor, s: Tensor):
    """A NaN is replaced by 0 whatever its state weighs; 0 * inf is still NaN."""
    return empty_payload(torch.where(v.isnan(), 0.0, v), s)


def empty_payload_of(at: int) -> Rule:
    """0 * NaN in the first state alone (0), or in the last (-1)."""

    def formula(v: Tensor, s: Tensor):
        dropped = drop_unused(weights(s), v)
        if len(v):
            dropped[at] = v[at].double()
        return empty_payload(dropped, s)

    return formula


def unguarded(v: Tensor, s: Tensor):
    """Both of the above: no care for -inf at all."""
    return torch.where(all_empty(s)[..., None], torch.nan, empty_payload(v, s)[0]), None


# Columns.


def tail_dropped(v: Tensor, s: Tensor):
    """Columns from the largest power of two within D on are left 0."""
    right_v, right_s = merge(v, s)
    kept = 1 << (v.shape[-1].bit_length() - 1)
    return torch.where(torch.arange(v.shape[-1]) < kept, right_v, 0.0), right_s
