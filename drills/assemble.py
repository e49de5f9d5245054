"""From what a run recorded to the one result structure. Decides what counts as passed: only a test seen passing."""

from __future__ import annotations

import time
from importlib import metadata
from typing import TYPE_CHECKING

from drills.catalog import Selection
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
from drills.source import Problem, Source

if TYPE_CHECKING:
    from drills.lesson_run import LessonRun
    from drills.run import Run

STATES = {"untouched": "not started", "missing": "missing"}
PROBLEMS = {"missing": "missing_file", "unreadable": "unreadable_file", "syntax": "syntax_error"}


def grade_of(run: Run) -> Grade:
    """The grade of a run that is over."""
    request = run.request
    grade = blank(request, run.sources)
    grade.device, grade.seed, grade.grader_error = run.device, run.seed, run.error
    grade.seconds = time.monotonic() - run.begun
    for result in grade.lessons:
        lesson = run.lessons.get(result.stem)
        if lesson is not None:
            fill(result, lesson, request.level)
            grade.grader_error = grade.grader_error or unexpected(lesson)
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
        isolation=request.isolation.name,
        level=request.level,
        lessons=lessons,
    )


def fill(result: LessonResult, lesson: LessonRun, level: str | None) -> None:
    """The outcomes of one lesson's tests."""
    if lesson.loaded is not None:
        result.problem = lesson.load_failure("value")
    for exercise in result.exercises:
        if exercise.name not in lesson.wanted:
            continue
        exercise.tests = _tests(lesson, exercise.name, level)
        passed = bool(exercise.tests) and all(test.outcome == "passed" for test in exercise.tests)
        exercise.state = "passed" if passed else "failed"
        exercise.traffic = lesson.traffic.get(exercise.name)
        exercise.levels = {one: _level(lesson, exercise, one, level) for one in LEVELS}
        for report in lesson.reports.get(exercise.name, []):
            exercise.kernels.append(report.to_json())


def unexpected(lesson: LessonRun) -> str:
    """What must not be: an exercise that was to be graded and has no test at all."""
    untested = [name for name in lesson.wanted if not any(one.exercise == name for one in lesson.tests.values())]
    return f"{lesson.lesson.stem}: no test grades {', '.join(untested)}" if untested else ""


def _tests(lesson: LessonRun, exercise: str, level: str | None) -> list[TestResult]:
    """One result for every expected test, run or not; those of another level only if they failed at this one."""
    found = []
    for node, test in lesson.tests.items():
        if test.exercise == exercise:
            missing = TestResult(test.id, test.title, test.exercise, test.level, "not run")
            found.append(lesson.results.get(node, missing))
    return [one for one in found if level is None or level in (one.level, one.failure and one.failure.level)]


def _level(lesson: LessonRun, exercise: ExerciseResult, level: str, asked: str | None) -> LevelResult:
    if asked not in (None, level):
        return LevelResult("off", "not asked for")
    tests = [test for test in exercise.tests if test.level == level]
    if any(test.failure and test.failure.level == level for test in exercise.tests):
        return LevelResult("failed", _note(lesson, exercise, level))
    off = _off(lesson, level)
    if off:
        return LevelResult("off", off)
    everywhere = level == "memory" and lesson.instruments_on
    if not tests and not everywhere:
        return LevelResult("none")
    if all(test.outcome == "passed" for test in (exercise.tests if everywhere else tests)):
        return LevelResult("passed", _note(lesson, exercise, level))
    return LevelResult("blocked")


def _off(lesson: LessonRun, level: str) -> str:
    if level == "compile":
        return lesson.gate_off
    if level == "traffic" and not lesson.sees_traffic:
        return "needs the interpreter's recorder"
    return ""


def _note(lesson: LessonRun, exercise: ExerciseResult, level: str) -> str:
    if level == "traffic" and exercise.traffic is not None:
        return f"{exercise.traffic:.2f}x"
    return "compiles" if level == "compile" else ""


def _lesson(selection: Selection, source: Source, request: Request) -> LessonResult:
    entry = selection.lesson
    result = LessonResult(entry.stem, entry.title, f"{request.shown}{entry.stem}.py", source.sha256)
    if source.problem:
        result.problem = _problem(source.problem, result.file)
    for name in selection.exercises:
        if source.problem:
            result.exercises.append(ExerciseResult(name, "missing" if source.problem.kind == "missing" else "failed"))
            continue
        function = source.function(name)
        result.exercises.append(ExerciseResult(name, STATES.get(function.state, "failed"), line=function.line))
    return result


def _problem(problem: Problem, file: str) -> Failure:
    return Failure(
        PROBLEMS.get(problem.kind, "unreadable_file"),
        "value",
        got=f"{file} {problem.says}" if problem.kind != "syntax" else f"SyntaxError: {problem.says}",
        likely="",
        line=problem.line,
        source=problem.caret(),
    )


def _version(package: str) -> str:
    try:
        return metadata.version(package).partition("+")[0]
    except metadata.PackageNotFoundError:
        return "not installed"
