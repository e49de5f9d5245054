"""The verdict on values: a `Failure` that shows the worst element beside the right one, or None.

Says what is wrong and where; the likely cause comes from `pattern` (the shape of the error) and `diagnosis`.
"""

from __future__ import annotations

from dataclasses import replace

import torch

from drills.judge import words
from drills.judge.compare import Comparison, compare
from drills.judge.expected import right_results
from drills.judge.form import result_dtype
from drills.judge.misread import WRONG_STRIDES
from drills.judge.pattern import shape_of_error
from drills.judge.signature import axes_of_result
from drills.judge.where import where
from drills.lessons.base import Args, Exercise, Lesson, Mistake
from drills.report.model import Failure


def values(
    exercise: Exercise, args: Args, results: tuple, expected: tuple | None = None, level: str = "value"
) -> Failure | None:
    """None if every result is within tolerance of `expected` (float64; the oracle's if left out).

    results: of the right form, one tensor an output, see `form.unpack`.
    """
    expected = right_results(exercise, args) if expected is None else expected
    return _verdict(exercise, args, results, expected, level, "wrong_value")


def agree(exercise: Exercise, args: Args, results: tuple, others: tuple, level: str = "value") -> Failure | None:
    """None if two answers agree with each other within tolerance: for properties such as commutativity."""
    return _verdict(exercise, args, results, others, level, "disagree")


def exact(
    exercise: Exercise, args: Args, results: tuple, facts: dict[str, torch.Tensor], level: str = "value"
) -> Failure | None:
    """None if the results named in `facts` equal them bit for bit, NaN equal to NaN; KeyError for an unknown name."""
    names = [output.name for output in exercise.outputs]
    for name, fact in facts.items():
        index = names.index(name) if name in names else None
        if index is None:
            raise KeyError(f"{exercise.name} has no result {name!r}, only {', '.join(names)}")
        got = results[index].to("cpu", torch.float64)
        right = torch.as_tensor(fact).to("cpu", torch.float64).expand(got.shape)
        wrong = (got != right) & ~(got.isnan() & right.isnan())
        if bool(wrong.any()):
            one = Comparison(index, exercise.outputs[index], got, right, torch.zeros_like(right), wrong)
            return _failure(exercise, args, [one], level, "wrong_value", "")
    return None


def named(failure: Failure, lesson: Lesson, mistake: Mistake) -> Failure:
    """The same failure with its cause: what the mistake says, its id, and where the page explains it.

    Of strides that were ignored the failure's own case tells more, if it does: which, and what was taken for them.
    """
    own = WRONG_STRIDES in failure.likely and mistake.id.endswith("strides_ignored")
    likely = failure.likely if own else mistake.says
    return replace(failure, likely=likely, mistake=mistake.id, read=f"content/{lesson.stem}.md#{mistake.anchor}")


def pointed(failure: Failure, lesson: Lesson) -> Failure:
    """The same failure with where the page tells of its kind, unless it points somewhere already."""
    said = (anchor for key, anchor in lesson.reads.items() if key == failure.kind or key in failure.likely)
    anchor = "" if failure.read else next(said, "")
    return replace(failure, read=f"content/{lesson.stem}.md#{anchor}") if anchor else failure


def _verdict(exercise: Exercise, args: Args, results: tuple, expected: tuple, level: str, kind: str) -> Failure | None:
    compared = compare(exercise, args, results, expected)
    if all(one.right for one in compared):
        return None
    likely = shape_of_error(exercise, args, compared)
    return _failure(exercise, args, compared, level, kind, likely)


def _failure(exercise: Exercise, args: Args, compared: list[Comparison], level: str, kind: str, likely: str) -> Failure:
    shown = next(one for one in compared if not one.right)
    not_finite = bool((~shown.got.isfinite() & shown.expected.isfinite() & shown.wrong).any())
    return Failure(
        kind="not_finite" if not_finite and kind == "wrong_value" else kind,
        level=level,
        called=words.called(exercise, args),
        got=_got(exercise, args, shown, [one for one in compared if one is not shown]),
        expected=_expected(exercise, args, shown),
        likely=likely,
    )


def _got(exercise: Exercise, args: Args, shown: Comparison, others: list[Comparison]) -> str:
    """ "v[3, 1, 17] = 0.43, 240 of 1200 elements of v are wrong (positions 3 and 4); s is right"."""
    index = shown.worst()
    value, _ = words.two_numbers(float(shown.got[index]), float(shown.expected[index]))
    text = f"{_element(shown, index)} = {value}"
    count, total = int(shown.wrong.sum()), shown.wrong.numel()
    if total > 1:
        rows = shown.wrong_rows
        axes = axes_of_result(exercise, shown.index)
        place = words.rows(rows, axes)
        reason = where(exercise, args, shown)
        if count == total:
            text += f"; all {total} elements of {shown.output.name} are wrong"
        else:
            text += f"; {count} of {total} elements of {shown.output.name} {'is' if count == 1 else 'are'} wrong"
            text += f" ({place}{': ' + reason if reason else ''})" if not bool(rows.all()) else ""
    states = [f"{one.output.name} is {'right' if one.right else 'wrong too'}" for one in others]
    return "; ".join([text, *states])


def _expected(exercise: Exercise, args: Args, shown: Comparison) -> str:
    index = shown.worst()
    _, value = words.two_numbers(float(shown.got[index]), float(shown.expected[index]))
    right = shown.expected[shown.wrong]
    if right.numel() > 1 and bool((right == right[0]).all()):
        return f"{shown.output.name} = {value} there"
    limit = float(shown.limit[index])
    margin = f", give or take {limit:.1e}" if limit > 0 else ""
    dtype = words.short(result_dtype(exercise, args, shown.output))
    return f"{_element(shown, index)} = {value}{margin} ({dtype})"


def _element(shown: Comparison, index: tuple[int, ...]) -> str:
    return shown.output.name + (words.shape(index) if index else "")
