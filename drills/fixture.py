"""What a graded test holds in its hands: `drill`, whose attributes are the exercises, and the answers they give.

A call goes to the worker and comes back judged for form and for what the instruments saw; the test then says what
the values must be. Must never import the graded code.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import torch

from drills import judge
from drills.calls import call_of, judged
from drills.explain import explain
from drills.instruments.notes import CallOptions
from drills.judge import GradedFailure
from drills.lesson_run import GradedTest, LessonRun
from drills.lessons.base import Args, Exercise
from drills.lessons.strides import at_most
from drills.report.model import Failure
from drills.sandbox.client import Call
from drills.sandbox.outcome import Reply

ON_A_GPU = 9 * 10**9
"""Bytes that one call's tensors may have there: offsets of halves beyond 2^31 elements need twice 4.3 GB."""

ONCE_MORE = "a call of an earlier test once more, with other values"
"""The title of a test whose own calls were right, when another's was not the second time."""


class Drill:
    """The fixture. `drill.rng` draws the test's inputs; `drill.<exercise>(*args)` calls the graded function."""

    def __init__(self, run: LessonRun, test: GradedTest) -> None:
        self._run = run
        self._test = test
        self.rng: torch.Generator = run.generator(test)
        self._order_seed = int(torch.randint(2**31, (1,), generator=run.generator(test, "order")))

    def __getattr__(self, name: str) -> Callable[..., Answer]:
        try:
            exercise = self._run.lesson.exercise(name)
        except KeyError:
            raise AttributeError(f"{self._run.lesson.stem} has no exercise {name}") from None
        return lambda *args: self._first(exercise, args)

    def compiles(self) -> None:
        """Every distinct launch that this exercise's tests made compiles for each GPU target."""
        failure = self._run.compile_failure(self._test.exercise)
        if failure is not None:
            raise GradedFailure(failure)

    def passed(self) -> None:
        """The test found nothing. After the last one of an exercise, if none has, calls are made again: see `twins`."""
        run, test = self._run, self._test
        if not (run.makes_twins and run.instruments_on and run.is_last(test)):
            return
        self._test = replace(test, level="value")
        for twin in run.twins.others(test.exercise, partial(run.generator, "twin", test.exercise), run.every_twin):
            try:
                self._answer(run.lesson.exercise(twin.exercise), twin).agrees()
            except GradedFailure as error:
                raise GradedFailure(error.failure, ONCE_MORE) from None

    def _first(self, exercise: Exercise, args: Args) -> Answer:
        args = at_most(args, ON_A_GPU) if self._run.device == "cuda" else args
        call = call_of(exercise, args, CallOptions(order_seed=self._order_seed))
        begun = time.monotonic()
        answer = self._answer(exercise, call)
        self._run.twins.good(call, time.monotonic() - begun, answer.reply.notes.told)
        return answer

    def _answer(self, exercise: Exercise, call: Call) -> Answer:
        reply = self._run.call(call)
        self._run.submit(exercise.name, reply.notes.launches)
        self._run.note_printed(self._test, reply.printed)
        if reply.death:
            self._run.count_death(self._test.exercise, reply.death)
        failure, results = judged(exercise, call.args, reply, self._test.level)
        if failure is None and self._run.instruments_on:
            failure = self._run.twins.told(exercise, call.args, reply.notes, self._test.level)
        if failure is not None:
            raise GradedFailure(failure)
        return Answer(results, self._run, self._test, exercise, call, reply)


class Answer(tuple):
    """The results of one call, in the order of the exercise's outputs, with what can be asked of them.

    Every question returns the answer itself or raises GradedFailure.
    """

    def __new__(cls, results: tuple, *_: Any) -> Answer:
        return super().__new__(cls, results)

    def __init__(
        self, results: tuple, run: LessonRun, test: GradedTest, exercise: Exercise, call: Call, reply: Reply
    ) -> None:
        self._run, self._test, self._call = run, test, call
        self.exercise, self.args, self.reply = exercise, call.args, reply

    def agrees(self) -> Answer:
        """Every result is within tolerance of the lesson's float64 oracle."""
        failure = judge.values(self.exercise, self.args, self, None, self._test.level)
        if failure is not None:
            raise GradedFailure(explain(self._run, self.exercise, self._call, self, failure))
        return self._must_have_read()

    def equals(self, other: tuple) -> Answer:
        """The results agree with those of another call within tolerance."""
        return self._unless(judge.agree(self.exercise, self.args, self, tuple(other), self._test.level))

    def is_exactly(self, **facts: torch.Tensor | float) -> Answer:
        """The results named equal these tensors bit for bit; NaN equals NaN."""
        return self._unless(judge.exact(self.exercise, self.args, self, facts, self._test.level))

    def moves_at_most(self, limit: float | None = None) -> Answer:
        """The kernels moved at most `limit` (the exercise's own, if left out) times the least bytes possible."""
        if not self._run.sees_traffic:
            return self
        exercise = self.exercise if limit is None else replace(self.exercise, limit=limit)
        launches = [*self.reply.notes.launches, *self.reply.notes.copies]
        self._run.note_traffic(exercise.name, judge.multiple(exercise, self.args, launches))
        return self._unless(judge.traffic(exercise, self.args, launches, self._test.level))

    def runs_at_least(self, programs: int) -> Answer:
        """One of the call's launches has at least so many programs."""
        launches = self.reply.notes.launches
        return self._unless(judge.too_few_programs(self.exercise, self.args, launches, programs, self._test.level))

    def _must_have_read(self) -> Answer:
        if not self._run.sees_traffic:
            return self
        return self._unless(
            judge.read_too_little(self.exercise, self.args, self.reply.notes.launches, self._test.level)
        )

    def _unless(self, failure: Failure | None) -> Answer:
        if failure is not None:
            raise GradedFailure(failure)
        return self
