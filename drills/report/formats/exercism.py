"""Results in the form of version 3 of Exercism's test-runner interface.

A task there is an exercise here. `test_code` is the graded test's own text: the tests are public.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from drills.report import standing, verdict, words
from drills.report.model import ExerciseResult, Failure, Grade, LessonResult, TestResult

VERSION = 3
LONGEST_OUTPUT = 500
LONGEST_MESSAGE = 65_535
CUT = "\nOutput was truncated. Please limit to 500 chars"
_PARTS = ("called", "got", "expected", "likely", "read")
_OUTCOMES = {"passed": "pass", "failed": "fail"}

Code = Callable[[LessonResult, TestResult], str]
"""The text of a test; "" if it is not to be had."""


def of_grade(grade: Grade, code: Code = lambda lesson, test: "") -> dict[str, Any]:
    """The tree of one grade. Tests stand in the order of the exercises, and within one in that of the test file."""
    tests, task = [], 0
    for lesson in grade.lessons:
        for exercise in lesson.exercises:
            task += 1
            if not lesson.problem:
                tests += _exercise(lesson, exercise, task, code)
    problems = [f"{one.stem}.py: {standing.says(one.problem)}" for one in grade.lessons if one.problem]
    if grade.grader_error:
        return _error(f"the grader failed: {words.clean(grade.grader_error)}")
    if not any(one["status"] in ("pass", "fail") for one in tests):
        return _error("\n".join(problems) or "no test was run")
    tests += [
        {"name": f"{lesson.stem}.py can be graded", "status": "error", "message": standing.says(lesson.problem)}
        for lesson in grade.lessons
        if lesson.problem
    ]
    good = verdict.exit_code(grade) == 0 and all(one["status"] == "pass" for one in tests)
    return {"version": VERSION, "status": "pass" if good else "fail", "message": None, "tests": tests}


def _error(message: str) -> dict[str, Any]:
    return {"version": VERSION, "status": "error", "message": message[:LONGEST_MESSAGE], "tests": []}


def _exercise(lesson: LessonResult, exercise: ExerciseResult, task: int, code: Code) -> list[dict]:
    if exercise.state in ("not started", "missing"):
        says = "not started" if exercise.state == "not started" else f"there is no function {exercise.name}"
        return [{"name": f"{exercise.name} is written", "status": "fail", "message": says, "task_id": task}]
    return [_test(exercise, test, task, code(lesson, test)) for test in exercise.tests]


def _test(exercise: ExerciseResult, test: TestResult, task: int, code: str) -> dict:
    tree = {"name": words.clean(f"{exercise.name}: {test.title}"), "status": _OUTCOMES.get(test.outcome, "error")}
    if test.outcome != "passed":
        tree["message"] = _message(test.failure) if test.failure else "not run"
    if test.printed:
        tree["output"] = _output(test.printed)
    if code:
        tree["test_code"] = code
    return tree | {"task_id": task}


def _message(failure: Failure) -> str:
    lines = [f"{part}: {words.clean(getattr(failure, part))}" for part in _PARTS if getattr(failure, part)]
    lines += [f"line {failure.line}: {words.clean(failure.source)}"] if failure.line else []
    return "\n".join(lines) or failure.kind.replace("_", " ")


def _output(printed: str) -> str:
    cleaned = words.clean_lines(printed, 4 * LONGEST_OUTPUT)
    return cleaned if len(cleaned) <= LONGEST_OUTPUT else cleaned[: LONGEST_OUTPUT - len(CUT)] + CUT
