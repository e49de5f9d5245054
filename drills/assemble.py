"""From what a run recorded to the one result structure. Decides what counts as passed: only a test seen passing."""

from __future__ import annotations

import time
from importlib import metadata
from typing import TYPE_CHECKING

from drills.catalog import Selection
from drills.report import problems
from drills.report.model import (
    LEVELS,
    ExerciseResult,
    Failure,
    Grade,
    LessonResult,
    LevelResult,
    TestResult,
)
from drills.request import Request
from drills.source import Source

if TYPE_CHECKING:
    from drills.lesson_run import LessonRun
    from drills.run import Run

STATES = {"untouched": "not started", "missing": "missing"}


def grade_of(run: Run) -> Grade:
    """The grade of a run that is over."""
    request = run.request
    grade = blank(request, run.sources)
    grade.isolation = run.nursery.isolation.name if run.nursery else grade.isolation
    grade.device, grade.seed, grade.grader_error = run.device, run.seed, run.error
    grade.seconds = time.monotonic() - run.begun
    for result in grade.lessons:
        lesson = run.lessons.get(result.stem)
        if lesson is not None:
            fill(result, lesson, request.level)
            grade.grader_error = grade.grader_error or ("" if request.level else untested(lesson))
    statuses = [lesson.worker.status for lesson in run.lessons.values() if lesson.worker.status]
    if statuses:
        grade.instruments = "on" if statuses[0].on else f"off: {statuses[0].note}"
        grade.versions.update(statuses[0].versions)
    return grade


def blank(request: Request, sources: dict[str, Source]) -> Grade:
    """The grade before anything is run: which files there are and how far the learner has come."""
    lessons = [_lesson(one, sources[one.lesson.stem], request) for one in request.selections]
    return Grade(
        target=request.shown,
        device="cpu" if request.device == "auto" else request.device,
        versions={name: _version(name) for name in ("triton", "torch")},
        isolation="none" if request.debug else request.isolation.name,
        level=request.level,
        lessons=lessons,
    )


def fill(result: LessonResult, lesson: LessonRun, asked: str | None) -> None:
    """The outcomes of one lesson's tests. asked: the one level that is graded, None for all."""
    if lesson.loaded is not None:
        result.problem = lesson.load_failure("value")
    for exercise in [one for one in result.exercises if one.name in lesson.wanted]:
        tests = _tests(lesson, exercise.name)
        exercise.traffic = lesson.traffic.get(exercise.name)
        reports = lesson.reports.get(exercise.name, [])
        exercise.kernels = [report.to_json() for report in reports]
        exercise.advice = _advice(reports, lesson.lesson.exercise(exercise.name).load_width)
        exercise.levels = {one: _level(lesson, exercise, tests, one, asked) for one in LEVELS}
        if asked is None:
            exercise.tests = tests
            passed = bool(tests) and all(test.outcome == "passed" for test in tests)
        else:
            exercise.tests = [one for one in tests if asked in (one.level, one.failure and one.failure.level)]
            passed = exercise.levels[asked].state == "passed"
        exercise.state = "passed" if passed else "failed"
        if asked and exercise.levels[asked].state in ("none", "off"):
            result.exercises.remove(exercise)


def untested(lesson: LessonRun) -> str:
    """What must not be: an exercise that was to be graded whole and has no test at all."""
    names = [name for name in lesson.wanted if not any(one.exercise == name for one in lesson.tests.values())]
    return f"{lesson.lesson.stem}: no test grades {', '.join(names)}" if names else ""


def _tests(lesson: LessonRun, exercise: str) -> list[TestResult]:
    """One result for every expected test, run or not."""
    expected = {node: test for node, test in lesson.tests.items() if test.exercise == exercise}
    missing = {node: TestResult(one.id, one.title, exercise, one.level, "not run") for node, one in expected.items()}
    return [lesson.results.get(node, missing[node]) for node in expected]


def _level(
    lesson: LessonRun, exercise: ExerciseResult, tests: list[TestResult], level: str, asked: str | None
) -> LevelResult:
    if asked not in (None, level):
        return LevelResult("off", "not asked for")
    if any(_tells_of(failure, level, tests) for failure in _failures(tests) if failure.level == level):
        return LevelResult("failed", _note(exercise, level))
    if off := _off(lesson, level):
        return LevelResult("off", off)
    # Every test that runs kernels under the recorder shows something of the memory level.
    telling = ("value", "edge", "memory") if level == "memory" and lesson.instruments_on else (level,)
    decided = [test for test in tests if test.level in telling]
    if not decided:
        return LevelResult("none")
    if all(test.outcome == "passed" for test in decided):
        return LevelResult("passed", _note(exercise, level))
    return LevelResult("blocked")


def _failures(tests: list[TestResult]) -> list[Failure]:
    return [test.failure for test in tests if test.outcome == "failed" and test.failure is not None]


def _tells_of(failure: Failure, level: str, tests: list[TestResult]) -> bool:
    """Is it this level that failed? Where ordinary values are wrong, those of a test of edges or of traffic are too."""
    from drills.judge.failures import level_of

    own = level_of(failure.kind, "value", failure.got) == level
    return own or not any(one.level == "value" for one in _failures(tests))


def _advice(reports: list, load_width: int) -> list[str]:
    """What could be faster though it is right."""
    if not reports:
        return []
    from drills.instruments.gate_report import width_advice

    said = width_advice(reports, load_width)
    return [said] if said else []


def _off(lesson: LessonRun, level: str) -> str:
    if level == "compile":
        return lesson.gate_off
    if level == "traffic" and not lesson.sees_traffic:
        return "needs the interpreter's recorder"
    return ""


def _note(exercise: ExerciseResult, level: str) -> str:
    if level == "traffic" and exercise.traffic is not None:
        return f"{exercise.traffic:.2f}x"
    return "compiles" if level == "compile" else ""


def _lesson(selection: Selection, source: Source, request: Request) -> LessonResult:
    entry = selection.lesson
    result = LessonResult(entry.stem, entry.title, f"{request.shown}{entry.stem}.py", source.sha256)
    if source.problem:
        result.problem = problems.from_source(source.problem, result.file)
    for name in selection.exercises:
        if source.problem:
            result.exercises.append(ExerciseResult(name, "missing" if source.problem.kind == "missing" else "failed"))
            continue
        function = source.function(name)
        result.exercises.append(ExerciseResult(name, STATES.get(function.state, "failed"), line=function.line))
    return result


def _version(package: str) -> str:
    try:
        return metadata.version(package).partition("+")[0]
    except metadata.PackageNotFoundError:
        return "not installed"
