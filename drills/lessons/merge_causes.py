"""What a cause is: one misconception about merging states, and the mistakes that it makes of the exercises of l4.

A cause has rules (merge_rules.py, merge_loop_rules.py), the cases that show it (merge_cases.py) and the exercises in
which it can happen. Lists none: see merge_mistakes.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from drills.lessons import merge_cases as draws
from drills.lessons.base import Mistake
from drills.lessons.merge_lift import in_place, on_many, on_runs, on_two
from drills.lessons.merge_rules import Rule

TWO = ("merge_state", "merge_state_in_place")
MANY = ("merge_states", "variable_length_merge_states")
NOT_IN_PLACE = ("merge_state", *MANY)

LIFT: dict[str, Callable] = {
    "merge_state": on_two,
    "merge_state_in_place": in_place,
    "merge_states": on_many,
    "variable_length_merge_states": on_runs,
}
"""Exercise → what makes a formula of its arguments out of a rule."""

ARGS = {
    "merge_state": draws.two_args,
    "merge_state_in_place": draws.masked_args,
    "merge_states": draws.many_args,
    "variable_length_merge_states": draws.equal_runs,
}
"""Exercise → what makes arguments out of drawn states."""


@dataclass(frozen=True)
class Cause:
    """One misconception. rules: the first is the usual code, the others are variants. edit, sizes: of its cases."""

    id: str
    rules: tuple[Rule, ...]
    anchor: str
    says: str
    exercises: tuple[str, ...] = TWO + MANY
    edit: draws.Edit | None = None
    dtype: torch.dtype = torch.float32
    sizes: tuple[tuple[str, int], ...] = ()

    def mistakes(self) -> list[Mistake]:
        """One an exercise."""
        return [self._mistake(exercise) for exercise in self.exercises]

    def _mistake(self, exercise: str) -> Mistake:
        first, *others = (LIFT[exercise](rule) for rule in self.rules)
        special = self.edit or self.sizes or self.dtype != torch.float32
        cases = draws.cases(ARGS[exercise], self.edit or draws.nothing, self.dtype, **dict(self.sizes))
        return Mistake(
            id=self.id,
            exercise=exercise,
            formula=first,
            says=self.says,
            anchor=self.anchor,
            cases=cases if special else None,
            variants=tuple(others),
        )
