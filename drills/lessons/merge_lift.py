"""From a rule on states to a formula on an exercise's arguments: which states belong together, and where they go.

Used for the right rule (the oracle) and for the wrong ones alike. Never used by graded code.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from drills.lessons.merge_rules import Rule

Formula = Callable[..., tuple]


def stack_two(v_a: Tensor, s_a: Tensor, v_b: Tensor, s_b: Tensor) -> tuple[Tensor, Tensor]:
    """v[2, S, H, D], s[2, S, H]; values of two dtypes in the one that holds both."""
    common = torch.promote_types(v_a.dtype, v_b.dtype)
    return torch.stack([v_a.to(common), v_b.to(common)]), torch.stack([s_a, s_b])


def on_two(rule: Rule) -> Formula:
    """merge_state: the states are a and b."""

    def formula(v_a, s_a, v_b, s_b):
        return rule(*stack_two(v_a, s_a, v_b, s_b))

    return formula


def in_place(rule: Rule) -> Formula:
    """merge_state_in_place: the states are the own and the other one; a position with a False mask keeps its own."""

    def formula(v, s, v_other, s_other, mask=None):
        changed = rule(*stack_two(v, s, v_other, s_other))
        return where_masked(mask, changed, (v, s))

    return formula


def where_masked(mask: Tensor | None, changed: tuple, kept: tuple) -> tuple:
    """`changed` at the positions where the mask is True, `kept` at the others; None stays None."""
    if mask is None:
        return changed
    return tuple(
        None if new is None else torch.where(mask.reshape(-1, *[1] * (old.dim() - 1)), new, old.double())
        for new, old in zip(changed, kept, strict=True)
    )


def on_many(rule: Rule) -> Formula:
    """merge_states: the states lie along axis 1."""

    def formula(v, s):
        return rule(v.movedim(1, 0), s.movedim(1, 0))

    return formula


def on_runs(rule: Rule) -> Formula:
    """variable_length_merge_states: the states of position i are rows indptr[i] to indptr[i + 1]."""

    def formula(v, s, indptr):
        bounds = indptr.tolist()
        return merge_runs(rule, v, s, list(zip(bounds, bounds[1:], strict=False)))

    return formula


def merge_runs(rule: Rule, v: Tensor, s: Tensor, runs: list[tuple[int, int]]) -> tuple:
    """The rule on rows begin to end of each run; the results stacked."""
    merged = [rule(v[begin:end], s[begin:end]) for begin, end in runs]
    if not merged:
        return torch.zeros(0, *v.shape[1:]).double(), torch.zeros(0, *s.shape[1:]).double()
    return tuple(None if one[0] is None else torch.stack(one) for one in zip(*merged, strict=True))
