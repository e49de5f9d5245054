"""What is right for a case, worked out once: form, values, place and cause of an error are all judged against it."""

from __future__ import annotations

from collections import deque
from operator import is_

import torch

from drills.lessons.base import Args, Exercise

_known: deque[tuple[Exercise, Args, list[int], tuple]] = deque(maxlen=4)
"""The last cases, with their results. An entry holds its arguments, so that no others can stand in their place."""


def right_results(exercise: Exercise, args: Args) -> tuple:
    """The oracle's results for these arguments, as float64. Nobody may change the results."""
    changes = [one._version for one in args if isinstance(one, torch.Tensor)]
    for one, given, before, results in _known:
        if one is exercise and len(given) == len(args) and all(map(is_, given, args)) and before == changes:
            return results
    results = exercise.oracle(*args)
    _known.append((exercise, tuple(args), changes, results))
    return results
