"""Which known mistake explains a wrong answer? One is named only if it is the only one that does.

A mistake explains an answer if one of its formulas yields the same results, within tolerance, on every failing case,
at least two of them, and nowhere predicts an error where the answer is right. Zeros for everything agree with a formula
that happens to predict zeros: on one of the cases at least, the answer must hold two different numbers. And the tests'
small cases can make formulas alike that are not: one fresh case at least is asked for before a mistake is named, where
the code answers any.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

import torch

from drills.judge.compare import compare, matches
from drills.judge.expected import right_results
from drills.judge.form import result_dtype
from drills.lessons.base import Args, Exercise, Lesson, Mistake

ENOUGH = 2
"""Failing cases that a mistake must explain before it is named."""

MOST_GIVEN = 4
MOST_ASKED = 8
MOST_DRAWN = 24
"""Bounds on the work: given cases looked at, the smallest first; fresh cases run; fresh cases drawn."""

Ask = Callable[[Args], "tuple | None"]
Formula = Callable[..., tuple]
_asked: deque[tuple[tuple[Args, tuple], dict[Formula, bool]]] = deque(maxlen=2 * MOST_GIVEN)
"""The last failed cases, and which formulas explain them."""

Candidates = list[tuple[Mistake, Formula]]
"""Mistakes that explain all cases so far, each with a formula that does."""


def diagnose(
    lesson: Lesson, exercise: Exercise, failed: Sequence[tuple[Args, tuple]], ask: Ask, rng: torch.Generator
) -> Mistake | None:
    """The one mistake that explains every case, or None.

    failed: pairs (arguments as they were before the call, results) of failed comparisons.
    ask: runs the learner's code on fresh arguments → results of the right form, or None if it gave none.
    rng: draws the fresh cases.
    """
    mistakes = [mistake for mistake in lesson.mistakes if mistake.exercise == exercise.name]
    left: Candidates = [(mistake, one) for mistake in mistakes for one in (mistake.formula, *mistake.variants)]
    given = sorted(failed, key=_size)[:MOST_GIVEN]
    for case in given:
        left = [one for one in left if _explains_given(exercise, one[1], case)]
    seen, asked = len(given), 0
    telling = any(_varies(results) for _, results in given)
    for turn in range(MOST_DRAWN):
        if not left or asked == MOST_ASKED or (asked and seen >= ENOUGH and telling and _one_group(left)):
            break
        args = _draw(exercise, left, turn)(rng)
        if asked and telling and not _worth_asking(exercise, left, args, seen):
            continue
        asked += 1
        results = ask(args)
        if results is None:
            continue
        right = _right(exercise, args, results)
        left = [one for one in left if _consistent(exercise, one[1], args, results, right)]
        seen += not right
        telling = telling or _varies(results)
    return left[0][0] if seen >= ENOUGH and telling and _one_group(left) else None


def _varies(results: tuple) -> bool:
    """Does any result hold two different numbers? NaN, which differs from itself, counts as such."""
    return any(one.numel() and bool((one != one.flatten()[0]).any()) for one in results)


def _size(case: tuple[Args, tuple]) -> int:
    return sum(one.numel() for one in case[0] if isinstance(one, torch.Tensor))


def _draw(exercise: Exercise, left: Candidates, turn: int) -> Callable[[torch.Generator], Args]:
    """An ordinary case first: it is small, and tells most mistakes apart. Then each remaining mistake's own in turn."""
    draws = list(dict.fromkeys(mistake.cases or exercise.draw for mistake, _ in left))
    return exercise.draw if turn == 0 else draws[(turn - 1) % len(draws)]


def _worth_asking(exercise: Exercise, left: Candidates, args: Args, seen: int) -> bool:
    """Do the remaining mistakes predict different results here; or, while failing cases lack, does one predict any?"""
    predicted = [_whole(exercise, args, formula) for _, formula in left]
    if seen < ENOUGH and not all(_right(exercise, args, one) for one in predicted):
        return True
    first, *others = predicted
    return not all(matches(exercise, args, first, other) for other in others)


def _whole(exercise: Exercise, args: Args, formula: Formula) -> tuple:
    """What the formula yields, in the results' dtypes, with the right result where it says nothing."""
    all_three = zip(exercise.outputs, formula(*args), right_results(exercise, args), strict=True)
    return tuple(
        (right if value is None else value).to(result_dtype(exercise, args, one)) for one, value, right in all_three
    )


def _explains_given(exercise: Exercise, formula: Formula, case: tuple[Args, tuple]) -> bool:
    """Does the formula explain this failed case? Each further failure asks that of the earlier ones again."""
    known = next((verdicts for one, verdicts in _asked if one is case), None)
    if known is None:
        known = {}
        _asked.append((case, known))
    if formula not in known:
        known[formula] = _explains(exercise, formula, *case)
    return known[formula]


def _explains(exercise: Exercise, formula: Formula, args: Args, results: tuple) -> bool:
    """Does the formula yield these results, and is what it yields an error?"""
    predicted = formula(*args)
    return matches(exercise, args, results, predicted) and not matches(
        exercise, args, right_results(exercise, args), predicted
    )


def _consistent(exercise: Exercise, formula: Formula, args: Args, results: tuple, right: bool) -> bool:
    """On a wrong answer, the formula must explain it; on a right one, it must be right too."""
    if right:
        return matches(exercise, args, right_results(exercise, args), formula(*args))
    return _explains(exercise, formula, args, results)


def _right(exercise: Exercise, args: Args, results: tuple) -> bool:
    return all(one.right for one in compare(exercise, args, results, right_results(exercise, args)))


def _one_group(left: Candidates) -> bool:
    """Is it one mistake, or mistakes that each name the others as twins?"""
    if not left:
        return False
    first = left[0][0]
    others = [mistake for mistake, _ in left if mistake is not first]
    return all(other.id in first.twins or first.id in other.twins for other in others)
