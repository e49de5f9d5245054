"""Which known mistake explains a wrong answer? One is named only if it is the only one that does.

A mistake explains an answer if its formula yields the same results, within tolerance, on every failing case, at least
two of them, and nowhere predicts an error where the answer is right.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from drills.judge.compare import compare, matches
from drills.lessons.base import Args, Exercise, Lesson, Mistake

ENOUGH = 2
"""Failing cases that a mistake must explain before it is named."""

MOST_GIVEN = 6
MOST_DRAWN = 8
"""Bounds on the work: cases looked at, and fresh cases that the learner's code is asked for."""

Ask = Callable[[Args], "tuple | None"]


def diagnose(
    lesson: Lesson, exercise: Exercise, failed: Sequence[tuple[Args, tuple]], ask: Ask, rng: torch.Generator
) -> Mistake | None:
    """The one mistake that explains every case, or None.

    failed: pairs (arguments as they were before the call, results) of failed comparisons.
    ask: runs the learner's code on fresh arguments → results of the right form, or None if it gave none.
    rng: draws the fresh cases.
    """
    candidates = [mistake for mistake in lesson.mistakes if mistake.exercise == exercise.name]
    seen = 0
    for args, results in failed[:MOST_GIVEN]:
        candidates = [mistake for mistake in candidates if _explains(exercise, mistake, args, results)]
        seen += 1
    for args in _fresh_cases(exercise, candidates, rng):
        if not candidates or (seen >= ENOUGH and _one_group(candidates)):
            break
        results = ask(args)
        if results is None:
            continue
        right = _right(exercise, args, results)
        candidates = [mistake for mistake in candidates if _consistent(exercise, mistake, args, results, right)]
        seen += not right
    return candidates[0] if candidates and seen >= ENOUGH and _one_group(candidates) else None


def _fresh_cases(exercise: Exercise, candidates: list[Mistake], rng: torch.Generator):
    """Draws in turn for each candidate, from its own cases."""
    draws = [mistake.cases or exercise.draw for mistake in candidates] or [exercise.draw]
    for turn in range(MOST_DRAWN):
        yield draws[turn % len(draws)](rng)


def _explains(exercise: Exercise, mistake: Mistake, args: Args, results: tuple) -> bool:
    return matches(exercise, args, results, mistake.formula(*args))


def _consistent(exercise: Exercise, mistake: Mistake, args: Args, results: tuple, right: bool) -> bool:
    """On a right answer, a mistake that predicts an error is ruled out; on a wrong one it must predict that error."""
    return _explains(exercise, mistake, args, results) or (
        right and _right(exercise, args, _rounded(exercise, args, mistake))
    )


def _rounded(exercise: Exercise, args: Args, mistake: Mistake) -> tuple:
    return mistake.formula(*args)


def _right(exercise: Exercise, args: Args, results: tuple) -> bool:
    return all(one.right for one in compare(exercise, args, results, exercise.oracle(*args)))


def _one_group(candidates: list[Mistake]) -> bool:
    """Is it one mistake, or mistakes that each name the others as twins?"""
    first, *others = candidates
    return all(other.id in first.twins or first.id in other.twins for other in others)
