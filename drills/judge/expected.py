"""What is right for a case, worked out once: form, values, place and cause of an error are all judged against it."""

from __future__ import annotations

from collections import deque
from functools import cached_property
from operator import is_

import torch

from drills.lessons.base import Args, Exercise


class Case:
    """An exercise and the arguments of one call. results: the oracle's, as float64; nobody may change them."""

    def __init__(self, exercise: Exercise, args: Args) -> None:
        self.exercise = exercise
        self.args = tuple(args)
        self.changes = changes(args)

    @cached_property
    def results(self) -> tuple:
        return self.exercise.oracle(*self.args)

    @cached_property
    def score_bound(self) -> float:
        return self.exercise.score_bound(*self.args)

    def is_of(self, exercise: Exercise, args: Args) -> bool:
        """Whether it is the same exercise and the very same arguments, as they were."""
        if self.exercise is not exercise or len(self.args) != len(args) or not all(map(is_, self.args, args)):
            return False
        return self.changes == changes(args)


_known: deque[Case] = deque(maxlen=4)
"""The last cases. Each holds its arguments, so that no others can stand in their place."""


def case(exercise: Exercise, args: Args) -> Case:
    """This case, with what is known of it already."""
    for one in _known:
        if one.is_of(exercise, args):
            return one
    _known.append(Case(exercise, args))
    return _known[-1]


def changes(args: Args) -> list[int]:
    """How often each tensor has been written to."""
    return [one._version for one in args if isinstance(one, torch.Tensor)]


def right_results(exercise: Exercise, args: Args) -> tuple:
    """The oracle's results for these arguments."""
    return case(exercise, args).results
