"""Compares results with what they should be, element by element. Words and verdicts are made elsewhere."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from drills.judge.form import result_dtype
from drills.judge.tolerance import tolerance
from drills.lessons.base import Args, Exercise, Output


@dataclass(frozen=True)
class Comparison:
    """One result beside the right one: got, expected, limit (float64) and wrong (bool), all of one shape.

    index: the result's place in `exercise.outputs`.
    """

    index: int
    output: Output
    got: torch.Tensor
    expected: torch.Tensor
    limit: torch.Tensor
    wrong: torch.Tensor

    @property
    def right(self) -> bool:
        return not bool(self.wrong.any())

    @property
    def wrong_rows(self) -> torch.Tensor:
        """Which rows hold a wrong element: values lose their last axis, the other kinds have no axis to lose."""
        if self.output.kind == "value" and self.wrong.dim():
            return self.wrong.any(dim=-1)
        return self.wrong

    def worst(self) -> tuple[int, ...]:
        """The index of the element that is furthest outside its tolerance; NaN and infinities come first."""
        excess = (self.got - self.expected).abs() / self.limit.clamp(min=torch.finfo(torch.float64).tiny)
        excess = torch.where(self.wrong, excess.nan_to_num(nan=torch.inf), -1.0)
        flat = int(excess.flatten().argmax())
        index = []
        for size in reversed(self.wrong.shape):
            index.append(flat % size)
            flat //= size
        return tuple(reversed(index))


def compare(exercise: Exercise, args: Args, results: tuple, expected: tuple) -> list[Comparison]:
    """One `Comparison` an output. `results` have the right form; `expected` are float64.

    An expected NaN (the payload of an empty state that is to stay untouched) asks for a NaN, an infinity for itself.
    """
    return [
        _compare_one(exercise, args, index, got, right)
        for index, (got, right) in enumerate(zip(results, expected, strict=True))
    ]


def matches(exercise: Exercise, args: Args, results: tuple, formula: tuple) -> bool:
    """Do `results` agree with what a formula yields, once that is rounded to the results' dtypes?

    A formula's None says nothing about that result.
    """
    for index, (got, value) in enumerate(zip(results, formula, strict=True)):
        if value is None:
            continue
        if got.shape != value.shape:
            return False
        rounded = value.to(result_dtype(exercise, args, exercise.outputs[index]))
        if not _compare_one(exercise, args, index, got, rounded).right:
            return False
    return True


def _compare_one(exercise: Exercise, args: Args, index: int, got: torch.Tensor, expected: torch.Tensor) -> Comparison:
    output = exercise.outputs[index]
    got = got.detach().to("cpu", torch.float64)
    expected = expected.detach().to("cpu", torch.float64)
    limit = tolerance(exercise, args, output, expected)
    same = (got == expected) | (got.isnan() & expected.isnan())
    near = got.isfinite() & expected.isfinite() & ((got - expected).abs() <= limit)
    return Comparison(index, output, got, expected, limit, ~(same | near))
