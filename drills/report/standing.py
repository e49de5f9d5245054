"""How a submission stands, in one word. One place, so that gradebook, statistics and screen say the same."""

from __future__ import annotations

from drills.report import verdict, words
from drills.report.model import ExerciseResult, Failure, Grade, LessonResult
from drills.report.points import why_void
from drills.report.submission import Submission

PASSED, PARTLY, NOTHING = "passed", "partly", "nothing"
NOT_STARTED, NOT_GRADED = "not started", "could not be graded"
ALL = (PASSED, PARTLY, NOTHING, NOT_STARTED, NOT_GRADED)


def standing(submission: Submission) -> str:
    """passed: every exercise. partly: at least one exercise whose values are right. nothing: begun, but none is.

    not started: only stubs. could not be graded: `problem` or the lessons say why.
    """
    grade = submission.grade
    if submission.problem or not _graded(grade):
        return NOT_GRADED
    states = {exercise.state for lesson in grade.lessons if is_graded(lesson) for exercise in lesson.exercises}
    if states <= {"not started"}:
        return NOT_STARTED
    if states == {"passed"} and all(map(is_graded, grade.lessons)):
        return PASSED
    return PARTLY if any(_is_right(exercise) for _, exercise in verdict.exercises(grade)) else NOTHING


def problems(submission: Submission) -> list[str]:
    """Why it, or a lesson of it, could not be graded, a line each; of a single reason the whole."""
    if submission.problem:
        return [words.clean(submission.problem)]
    if submission.grade is None:
        return ["there is no grade and no reason: grade it again with --again"]
    if submission.grade.grader_error:
        return [f"the grader failed: {words.clean(submission.grade.grader_error)}"]
    return [f"{lesson.stem}: {says(lesson.problem)}" for lesson in submission.grade.lessons if lesson.problem]


def says(problem: Failure) -> str:
    """A lesson's problem in one line."""
    return words.clean(problem.got or problem.kind.replace("_", " "))


def is_graded(lesson: LessonResult) -> bool:
    """Whether tests of the lesson were run, or could have been."""
    return not lesson.problem


def _is_right(exercise: ExerciseResult) -> bool:
    value = exercise.levels.get("value")
    return exercise.state == "passed" or bool(value and value.state == "passed" and not why_void(exercise))


def _graded(grade: Grade | None) -> bool:
    return grade is not None and not grade.grader_error and any(map(is_graded, grade.lessons))
