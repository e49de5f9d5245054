"""What a lesson is: the vocabulary that every lesson file, the judge and the tools share.

A lesson file builds one `Lesson` called `LESSON`. It may import torch and this package only: never the graded
code, never the sandbox, never pytest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

Args = tuple[Any, ...]
"""Positional arguments of one call: tensors, numbers, None, or lists and tuples of these."""


@dataclass(frozen=True)
class Output:
    """One result of an exercise.

    name: the field's name for it: v, s, m, l, o, y, lse.
    kind: which tolerance applies: "value" (dtype of the values read), "lse" (LSE and s), "m" (exact), "l".
    dtype: "input" for the dtype of the values read, else a torch dtype's name such as "float32".
    inplace: position of the argument that carries this result; None if the function returns it.
    """

    name: str
    kind: str
    dtype: str = "input"
    inplace: int | None = None


@dataclass(frozen=True)
class Exercise:
    """One function that a learner writes.

    signature: as LESSONS.md states it, shapes included; shown in "called".
    oracle: the same arguments as the exercise → a tuple of float64 tensors, one an output.
    outputs: what is returned, in order (or carried by an argument, see `Output.inplace`).
    reads: position of the argument whose dtype sets the tolerance and the dtype of "input" outputs.
    score_bound: arguments → the largest |score or s| of the case (a finite float ≥ 0), for the tolerance's 2⁻²² term.
    draw: a seeded torch.Generator → arguments of a small ordinary case. Different every time; used to diagnose.
    floor: arguments → the least bytes that any right kernel moves; None where no traffic is graded.
    limit: largest allowed multiple of that floor.
    counted: names of the parameters whose loads alone are counted against the floor; () counts all bytes moved.
    read_again: advice on a parameter, {}, that is read more often than allowed; "": one that the figures suggest.
    must_read: arguments → the least bytes that kernels must load to have computed the result.
    load_width: bytes a thread of the solution's kernel loads at once, as the compile gate measures it; 0: no advice.
    """

    name: str
    signature: str
    oracle: Callable[..., tuple]
    outputs: tuple[Output, ...]
    reads: int
    score_bound: Callable[..., float]
    draw: Callable[[Any], Args]
    floor: Callable[..., int] | None = None
    limit: float = 1.05
    counted: tuple[str, ...] = ()
    read_again: str = ""
    must_read: Callable[..., int] | None = None
    load_width: int = 0


@dataclass(frozen=True)
class Mistake:
    """One misconception, as a formula that can be compared with an answer.

    formula: the same arguments as the exercise → what the misconception yields, as float64 tensors, one an output;
        None for an output that the misconception says nothing about.
    variants: formulas of other code with the same misconception; one and the same must match in every case.
    says: one sentence for the learner: the likely cause and what to do.
    anchor: the heading's anchor on the lesson's page, without '#'.
    cases: a seeded torch.Generator → arguments for which the mistake shows; None: the exercise's `draw`.
    twins: ids of mistakes that no input can tell from this one.
    """

    id: str
    exercise: str
    formula: Callable[..., tuple]
    says: str
    anchor: str
    cases: Callable[[Any], Args] | None = None
    twins: tuple[str, ...] = ()
    variants: tuple[Callable[..., tuple], ...] = ()


@dataclass(frozen=True)
class BenchCase:
    """One benchmark shape: `label` for the table, `make(device, dtype, generator)` → arguments.

    sample: (arguments, results) → arguments and results of a few of the rows, where the float64 oracle is slow on all.
    """

    exercise: str
    label: str
    make: Callable[..., Args]
    sample: Callable[[Args, tuple], tuple[Args, tuple]] | None = None


@dataclass(frozen=True)
class Lesson:
    """A lesson: `stem` is shared by its five files, `title` is the scorecard's.

    reads: kind of a failure, or a phrase in its likely cause → the anchor of what the lesson's page says about it.
    """

    stem: str
    title: str
    exercises: tuple[Exercise, ...]
    mistakes: tuple[Mistake, ...]
    bench: Sequence[BenchCase] = field(default=())
    reads: dict[str, str] = field(default_factory=dict)

    @property
    def short(self) -> str:
        """The lesson's prefix: "l4"."""
        return self.stem.split("_", 1)[0]

    def exercise(self, name: str) -> Exercise:
        """The exercise called `name`; KeyError if there is none."""
        for exercise in self.exercises:
            if exercise.name == name:
                return exercise
        raise KeyError(name)
