"""Counts of a grade, and the exit code they come to. One place, so that every output says the same."""

from __future__ import annotations

from collections.abc import Iterator

from drills import errors
from drills.report.model import LEVELS, ExerciseResult, Failure, Grade, LessonResult, TestResult


def exercises(grade: Grade) -> Iterator[tuple[LessonResult, ExerciseResult]]:
    """Every exercise of a grade with its lesson, in order."""
    for lesson in grade.lessons:
        for exercise in lesson.exercises:
            yield lesson, exercise


def passed(grade: Grade) -> int:
    """How many exercises passed."""
    return sum(exercise.state == "passed" for _, exercise in exercises(grade))


def total(grade: Grade) -> int:
    """How many exercises there are to pass."""
    return sum(1 for _ in exercises(grade))


def exit_code(grade: Grade) -> int:
    """0 all passed, 1 something failed or is still to do, 3 the grader failed, 5 nothing was graded."""
    if grade.grader_error:
        return errors.GRADER_FAILED
    graded = any(
        lesson.problem.kind != "missing_file"
        if lesson.problem
        else any(exercise.state != "not started" for exercise in lesson.exercises)
        for lesson in grade.lessons
    )
    if not graded:
        return errors.NOTHING_GRADED
    good = all(exercise.state == "passed" for _, exercise in exercises(grade))
    return errors.PASSED if good and not any(lesson.problem for lesson in grade.lessons) else errors.FAILED


def first_failed_test(exercise: ExerciseResult) -> TestResult | None:
    """The failed test to show: the lowest level first, then the order of the file."""
    failed = [test for test in exercise.tests if test.outcome == "failed"]
    return min(failed, key=lambda test: _rank(test.failure.level if test.failure else test.level), default=None)


def first_failure(grade: Grade) -> tuple[LessonResult, ExerciseResult | None, TestResult | None, Failure] | None:
    """The first thing to put right, in the order of the lessons; None if nothing failed."""
    for lesson in grade.lessons:
        if lesson.problem:
            return lesson, None, None, lesson.problem
        for exercise in lesson.exercises:
            if exercise.state == "missing":
                return lesson, exercise, None, _missing(lesson, exercise)
            if exercise.state == "failed":
                test = first_failed_test(exercise)
                if test and test.failure:
                    return lesson, exercise, test, test.failure
                return lesson, exercise, test, _undecided(exercise)
    return None


def _rank(level: str) -> int:
    return LEVELS.index(level) if level in LEVELS else len(LEVELS)


def _missing(lesson: LessonResult, exercise: ExerciseResult) -> Failure:
    return Failure(
        "missing_function",
        "value",
        got=f"no function {exercise.name} in {lesson.file}",
        expected=f"a function called {exercise.name} with the stub's parameters",
    )


def _undecided(exercise: ExerciseResult) -> Failure:
    left = sum(test.outcome == "not run" for test in exercise.tests)
    return Failure("not_run", "value", got=f"{left or 'some'} tests were not run, which is never a pass")
