"""What l2's misconceptions about merging yield, in float64 tensors. Those about partial_attention: split_formulas.py.

A wrong rule merges parts along axis 0, m[N, ...], l[N, ...], o[N, ..., D] → (m, l, o), and serves merge_pair and
merge_mlo alike; None stands for a result that the misconception says nothing about. Never used by graded code.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from drills.lessons.oracle import finite_shift, largest, merge_mlo

Rule = Callable[[Tensor, Tensor, Tensor], tuple]


def on_pair(rule: Rule) -> Callable[..., tuple]:
    """merge_pair by `rule`."""

    def formula(m_a, l_a, o_a, m_b, l_b, o_b):
        return rule(
            torch.stack([m_a, m_b]).double(), torch.stack([l_a, l_b]).double(), torch.stack([o_a, o_b]).double()
        )

    return formula


def on_all(rule: Rule) -> Callable[..., tuple]:
    """merge_mlo by `rule`."""

    def formula(m, l, o):
        return (rule(m.double(), l.double(), o.double())[2],)

    return formula


def decay(m: Tensor) -> Tensor:
    """exp(m - max m) along axis 0; 0 for an empty part."""
    return torch.exp(m - finite_shift(largest(m, 0)))


def used(w: Tensor, o: Tensor) -> Tensor:
    """o, with 0 where the weight is 0."""
    return torch.where(w[..., None] > 0, o, 0.0)


def summed(w: Tensor, o: Tensor) -> Tensor:
    return (w[..., None] * used(w, o)).sum(0)


def divided(o: Tensor, total: Tensor) -> Tensor:
    """o / total, with 0 where there is nothing to divide by."""
    return o / torch.where(total == 0, 1.0, total)[..., None]


# Wrong weights: m and l as they should be.


def averaged(m, l, o):
    return largest(m, 0), None, o.sum(0) / max(1, len(o))


def without_l(m, l, o):
    w = decay(m)
    return largest(m, 0), (w * l).sum(0), divided(summed(w, o), w.sum(0))


def without_l_at_all(m, l, o):
    """In the merged l as well."""
    return largest(m, 0), decay(m).sum(0), without_l(m, l, o)[2]


def without_exp(m, l, o):
    return largest(m, 0), None, divided(summed(l, o), l.sum(0))


def divided_by_bare_l(m, l, o):
    """The weights as they should be, over a sum of l that are not scaled to one max."""
    w = decay(m) * l
    return largest(m, 0), None, divided(summed(w, o), l.sum(0))


def over_l(m, l, o):
    """exp(m - max m) / l, where l is not 0."""
    w = torch.where(l > 0, decay(m) / torch.where(l > 0, l, 1.0), 0.0)
    return largest(m, 0), w.sum(0), divided(summed(w, o), w.sum(0))


def numerator_without_l(m, l, o):
    """As if o were not normalized yet."""
    w = decay(m)
    return largest(m, 0), (w * l).sum(0), divided(summed(w, o), (w * l).sum(0))


def not_divided(m, l, o):
    w = decay(m) * l
    return largest(m, 0), w.sum(0), summed(w, o)


def divided_by_count(m, l, o):
    return largest(m, 0), None, summed(decay(m) * l, o) / max(1, len(o))


def swapped(m, l, o):
    return *merge_mlo(m, l, o)[:2], merge_mlo(m, l, o.flip(0))[2]


def base_2(m, l, o):
    """exp2 where exp belongs."""
    w = torch.exp2(m - finite_shift(largest(m, 0))) * l
    return largest(m, 0), w.sum(0), divided(summed(w, o), w.sum(0))


# Wrong m or l.


def l_not_rescaled(m, l, o):
    return largest(m, 0), l.sum(0), merge_mlo(m, l, o)[2]


def l_without_l(m, l, o):
    """The merged l as the sum of the decays; o is right."""
    return largest(m, 0), decay(m).sum(0), merge_mlo(m, l, o)[2]


def l_is_one(m, l, o):
    """As if o, being normalized, had an l of 1."""
    right = merge_mlo(m, l, o)
    return right[0], torch.where(right[1] > 0, 1.0, 0.0).double(), right[2]


def l_swapped(m, l, o):
    """exp(m_n - max m) with the other part's l."""
    w = decay(m) * l.flip(0)
    return largest(m, 0), w.sum(0), divided(summed(w, o), w.sum(0))


# Empty parts.


def all_empty(m: Tensor) -> Tensor:
    return largest(m, 0) == -math.inf


def two_empty_nan(m, l, o):
    """(-inf) - (-inf), in l and in o."""
    right = merge_mlo(m, l, o)
    nothing = all_empty(m)
    return right[0], torch.where(nothing, math.nan, right[1]), torch.where(nothing[..., None], math.nan, right[2])


def zero_by_zero(m, l, o):
    """l is right; o is 0 / 0."""
    right = merge_mlo(m, l, o)
    return *right[:2], torch.where(all_empty(m)[..., None], math.nan, right[2])


def empty_payload(m, l, o):
    """0 * NaN is NaN."""
    w = decay(m) * l
    return *merge_mlo(m, l, o)[:2], divided((w[..., None] * o).sum(0), w.sum(0))


def nan_filtered(m, l, o):
    """A NaN is replaced by 0 whatever its part weighs; 0 * inf is still NaN."""
    return empty_payload(m, l, torch.where(o.isnan(), 0.0, o))


def payload_of(part: int) -> Rule:
    """That of one part only."""

    def rule(m, l, o):
        w = decay(m) * l
        clean = used(w, o)
        clean[part] = o[part]
        return *merge_mlo(m, l, o)[:2], divided((w[..., None] * clean).sum(0), w.sum(0))

    return rule


def empty_wins(*parts: int) -> Rule:
    """Where one of these parts is empty, the result is."""

    def rule(m, l, o):
        gone = (m[list(parts)] == -math.inf).any(0)
        top, total, out = merge_mlo(m, l, o)
        return torch.where(gone, -math.inf, top), torch.where(gone, 0.0, total), torch.where(gone[..., None], 0.0, out)

    return rule


def unguarded(m, l, o):
    """Both: no care for -inf at all."""
    top, total, payload = empty_payload(m, l, o)
    nothing = all_empty(m)
    return top, torch.where(nothing, math.nan, total), torch.where(nothing[..., None], math.nan, payload)


def first_empty_nan(block: int) -> Rule:
    """A running max over steps of `block` parts: NaN from the start where all parts of the first step are empty."""

    def rule(m, l, o):
        right = merge_mlo(m, l, o)
        nothing = all_empty(m[:block])
        return right[0], torch.where(nothing, math.nan, right[1]), torch.where(nothing[..., None], math.nan, right[2])

    return rule


def unguarded_first(block: int) -> Rule:
    """The same, and the payload of an empty part is not left out either."""

    def rule(m, l, o):
        top, total, payload = empty_payload(m, l, o)
        nothing = all_empty(m[:block])
        return top, torch.where(nothing, math.nan, total), torch.where(nothing[..., None], math.nan, payload)

    return rule


# Wrong parts.


def only(kept: slice) -> Rule:
    """The other parts are left out."""
    return lambda m, l, o: merge_mlo(m[kept], l[kept], o[kept])


def heads_first(m, l, o):
    """m[N, H], l and o read as if H came first."""
    n, h = m.shape[:2]
    return merge_mlo(m.reshape(h, n).t(), l.reshape(h, n).t(), o.reshape(h, n, o.shape[-1]).transpose(0, 1))
