"""One lesson within one run: its worker, its expected tests, and what the tests found out so far.

Lives in the trusted parent. Must never import the graded file.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import torch

from drills import judge
from drills.instruments.notes import Launch, Status
from drills.judge.compiled import compiled
from drills.lessons.base import Args, Lesson
from drills.report.model import Failure, TestResult
from drills.sandbox.client import Call, Loaded
from drills.sandbox.outcome import Death, Reply
from drills.source import Source
from drills.twins import Twins

MOST_TIMEOUTS = 2
"""Time-outs of one exercise after which the rest of its tests is not run."""

MOST_DEATHS = 4
"""The same for whatever else ended the process: each end costs a new process, and the next ones say nothing new."""

MOST_EXPLAINED = 8
"""Failing tests of one exercise that are explained at most; Request.explaining bounds the time for them together."""

MOST_PRINTED = 4000
GATE_SECONDS = 60.0


class Calls(Protocol):
    """Who makes calls of graded code: a sandbox.client.Worker, or this process in debug mode."""

    status: Status | None

    def start(self) -> None:
        """Begin to load the graded file."""

    def load(self) -> Loaded:
        """Wait until it is loaded."""

    def call(self, call: Call, meanwhile: Callable[[], None] | None = None) -> Reply:
        """Make one call. meanwhile: what to do until it is answered."""

    def dismiss(self) -> None:
        """Begin to end it: no more calls are expected."""

    def close(self) -> None:
        """End it."""


@dataclass(frozen=True)
class GradedTest:
    """A test that the run expects: its pytest id, its name as a learner reads it, its exercise and its level."""

    id: str
    title: str
    exercise: str
    level: str


@dataclass
class LessonRun:
    """lesson: its facts. file: what is graded. source: how far the learner has come, read without running it.

    chosen: the exercises asked for. gate: the compile gate, None where there is none (`gate_off` says why).
    makes_twins: whether some calls are made once more, with other values. every_twin: every call is.
    """

    lesson: Lesson
    file: Path
    source: Source
    chosen: tuple[str, ...]
    worker: Calls
    device: str
    seed: int
    gate: Any = None
    gate_off: str = ""
    explaining_seconds: float = 4.0
    makes_twins: bool = True
    every_twin: bool = False
    tests: dict[str, GradedTest] = field(default_factory=dict)
    results: dict[str, TestResult] = field(default_factory=dict)
    failed: dict[str, list[tuple[Args, tuple]]] = field(default_factory=dict)
    traffic: dict[str, float] = field(default_factory=dict)
    reports: dict[str, list] = field(default_factory=dict)
    printed: dict[str, str] = field(default_factory=dict)
    timeouts: Counter = field(default_factory=Counter)
    deaths: Counter = field(default_factory=Counter)
    explained: Counter = field(default_factory=Counter)
    leaned: dict[str, str] = field(default_factory=dict)
    unaskable: set[str] = field(default_factory=set)
    seconds_explaining: Counter = field(default_factory=Counter)
    loaded: Loaded | None = None
    ask_until: float = math.inf
    twins: Twins = field(default_factory=Twins)
    launches: list[tuple[str, Sequence[Launch]]] = field(default_factory=list)

    @property
    def wanted(self) -> tuple[str, ...]:
        """The chosen exercises that the learner has begun."""
        return tuple(name for name in self.chosen if self.source.function(name).state == "written")

    @property
    def instruments_on(self) -> bool:
        """Whether the recorder watches the calls; known once the worker runs."""
        return self.device == "cpu" and bool(self.worker.status and self.worker.status.on)

    @property
    def sees_traffic(self) -> bool:
        """Whether the notes of a call count its bytes."""
        return self.instruments_on

    def load(self) -> Loaded:
        """The graded file in the worker; the first outcome counts for the whole run."""
        if self.loaded is None:
            self.loaded = self.worker.load()
        return self.loaded

    def load_failure(self, level: str) -> Failure | None:
        """Why the graded file cannot be called at all; None if it can."""
        loaded = self.load()
        if loaded.death:
            end = loaded.death
            return judge.death(end.kind, end.words, level, line=end.line, source=end.source)
        if loaded.raised:
            one = loaded.raised
            return judge.raised(one.type, one.message, level, line=one.line, source=one.source)
        return None

    def generator(self, *purpose: object) -> torch.Generator:
        """A generator that depends on the run's seed and on `purpose` (a GradedTest or words) alone."""
        words = [one.id if isinstance(one, GradedTest) else str(one) for one in purpose]
        digest = hashlib.sha256("\0".join([str(self.seed), self.lesson.stem, *words]).encode()).digest()
        return torch.Generator().manual_seed(int.from_bytes(digest[:7], "big"))

    def call(self, call: Call) -> Reply:
        """Call the graded code; always a Reply. Until it is there, what will be asked of it is worked out."""

        def meanwhile() -> None:
            self._submit()
            judge.right_results(self.lesson.exercise(call.exercise), call.args)

        return self.worker.call(call, meanwhile)

    def submit(self, exercise: str, launches: Sequence[Launch]) -> None:
        """Launches for the compile gate, which gets them during the next call."""
        if self.gate is not None and launches:
            self.launches.append((exercise, launches))

    def _submit(self) -> None:
        while self.launches:
            self.gate.submit(self.file, *self.launches.pop(0))

    def compile_failure(self, exercise: str) -> Failure | None:
        """Waits for the gate; the first launch of the exercise that does not compile."""
        if self.gate is None:
            return None
        self.worker.dismiss()  # compile tests come last: it ends while the gate goes on
        self._submit()
        self.reports[exercise] = self.gate.reports(exercise, GATE_SECONDS)
        if not self.reports[exercise] and not self.instruments_on:
            self.gate_off = self.gate_off or "launches are not seen here: the recorder is off"
            return None
        return compiled(self.reports[exercise])

    def count_death(self, exercise: str, death: Death) -> None:
        """Two time-outs, or a few ends of the process, and the rest of the exercise is given up."""
        self.timeouts[exercise] += death.kind == "timeout"
        self.deaths[exercise] += 1

    def given_up(self, exercise: str) -> str:
        """Why no more tests of this exercise are run; "" if they are."""
        if self.timeouts[exercise] >= MOST_TIMEOUTS:
            return f"not run: {MOST_TIMEOUTS} tests of this exercise got no answer in time"
        if self.deaths[exercise] >= MOST_DEATHS:
            return f"not run: the process that runs this exercise has ended {MOST_DEATHS} times"
        return ""

    def is_last(self, test: GradedTest) -> bool:
        """Whether it is the last of its exercise's tests that make calls, and all others have passed."""
        ids = [node for node, one in self.tests.items() if one.exercise == test.exercise and one.level != "compile"]
        passed = all(node in self.results and self.results[node].outcome == "passed" for node in ids[:-1])
        return passed and bool(ids) and self.tests[ids[-1]] == test

    def note_printed(self, test: GradedTest, text: str) -> None:
        """Keep the beginning of what graded code prints during a test."""
        self.printed[test.id] = (self.printed.get(test.id, "") + text)[:MOST_PRINTED]

    def note_traffic(self, exercise: str, multiple: float | None) -> None:
        """Keep the largest multiple of the floor that a traffic test measured."""
        if multiple is not None:
            self.traffic[exercise] = max(multiple, self.traffic.get(exercise, 0.0))

    @contextlib.contextmanager
    def explaining(self, exercise: str) -> Iterator[bool]:
        """Whether there is still time to explain a failure of this exercise; the time within counts."""
        self.explained[exercise] += 1
        begun = time.monotonic()
        spent = self.seconds_explaining[exercise]
        enough = self.explained[exercise] > MOST_EXPLAINED or spent > self.explaining_seconds
        self.ask_until = begun + self.explaining_seconds
        yield not enough and not self.given_up(exercise)
        self.ask_until = math.inf
        self.seconds_explaining[exercise] += time.monotonic() - begun
