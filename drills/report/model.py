"""The one result structure. Every output (screen, JSON, JUnit, CSV …) is rendered from it.

Knows nothing of torch, pytest or how a verdict came about.
"""

from __future__ import annotations

from dataclasses import dataclass, field

LEVELS = ("value", "edge", "memory", "traffic", "compile")
"""Graded levels, in the order in which a scorecard shows them."""


@dataclass(frozen=True)
class Failure:
    """One finding, in the parts that every message has.

    kind: for machines: wrong_value, wrong_form, not_finite, exception, timeout, crash, exit, flood, malformed,
        out_of_bounds, race, unwritten, input_changed, guard_touched, shares_memory, masked_lane, order_dependent,
        not_triton, read_too_little, told_values, traffic, compile_error …
    level: the level that this failure counts against (a value test can find a memory fault).
    called, got, expected: what was called, what came back and what was right; "" where there is nothing to say.
    likely: the likely cause and what to do. mistake: the id of the matched misconception.
    read: "content/l4_merge_states.md#anchor". line: line of the learner's file; source: that line's text.
    """

    kind: str
    level: str
    called: str = ""
    got: str = ""
    expected: str = ""
    likely: str = ""
    mistake: str = ""
    read: str = ""
    line: int | None = None
    source: str = ""


@dataclass
class TestResult:
    """One graded test. outcome: "passed", "failed" or "not run" (never a pass).

    printed: what graded code printed meanwhile, without control characters, the first few thousand characters.
    """

    __test__ = False

    id: str
    title: str
    exercise: str
    level: str
    outcome: str
    failure: Failure | None = None
    seconds: float = 0.0
    printed: str = ""


@dataclass
class LevelResult:
    """How one level of one exercise came out.

    state: "passed", "failed", "blocked" (its tests could not be decided because of another level's failure),
        "off" (not run here; `note` says why) or "none" (the exercise has no test at this level).
    note: short figure or reason for the scorecard: "1.00x", "compiles".
    """

    state: str
    note: str = ""


@dataclass
class ExerciseResult:
    """One exercise. state: "passed", "failed", "not started", "missing" (no such function in the file)."""

    name: str
    state: str
    levels: dict[str, LevelResult] = field(default_factory=dict)
    tests: list[TestResult] = field(default_factory=list)
    traffic: float | None = None
    advice: list[str] = field(default_factory=list)
    kernels: list[dict] = field(default_factory=list)
    line: int | None = None


@dataclass
class LessonResult:
    """One lesson. problem: why the file could not be graded at all (missing, syntax error …), else None."""

    stem: str
    title: str
    file: str
    sha256: str = ""
    exercises: list[ExerciseResult] = field(default_factory=list)
    problem: Failure | None = None


@dataclass
class Grade:
    """One run of the grader over one target."""

    target: str
    device: str
    versions: dict[str, str] = field(default_factory=dict)
    isolation: str = ""
    instruments: str = "on"
    seed: int | None = None
    seconds: float = 0.0
    level: str | None = None
    lessons: list[LessonResult] = field(default_factory=list)
    grader_error: str = ""
