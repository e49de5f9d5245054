"""Gradescope's `results.json`, by the published specification of its autograders.

A test there is one level of one exercise here, with the points of the table; `score` is the sum of the tests' scores.
What the student's code printed goes nowhere: `stdout_visibility` is hidden, and an output holds messages only.
"""

from __future__ import annotations

from typing import Any

from drills.report import standing, verdict, words
from drills.report.model import LEVELS, ExerciseResult, Failure, Grade, LessonResult, LevelResult, TestResult
from drills.report.points import Earned, Points, earned, total
from drills.report.submission import Submission

VISIBLE = "visible"
_PARTS = ("called", "got", "expected", "likely", "read")
_STATES = {"blocked": "Not decided: another level's failure comes first.", "passed": "Passed."}


def of_grade(grade: Grade, points: Points) -> dict[str, Any]:
    """The tree of one grade. A grader that failed scores 0 and says so; better write no file then."""
    if grade.grader_error:
        return _without_tests(f"The grader failed, not your code: {words.clean(grade.grader_error)}")
    tests = []
    for number, lesson in enumerate(grade.lessons, 1):
        for index, exercise in enumerate(lesson.exercises, 1):
            tests += _exercise(lesson, exercise, points, f"{number}.{index}")
    got, most = total(points, grade)
    said = f"{verdict.passed(grade)} of {words.plural(verdict.total(grade), 'exercise')} passed."
    problems = [f"{one.stem}.py: {standing.says(one.problem)}" for one in grade.lessons if one.problem]
    tree = _tree(got, "\n".join([said, *problems]), tests)
    return tree | {"execution_time": round(grade.seconds), "extra_data": {"points_possible": most / 100}}


def of_submission(submission: Submission, points: Points) -> dict[str, Any]:
    """The tree of one submission of a batch."""
    if submission.problem or submission.grade is None or submission.grade.grader_error:
        return _without_tests("\n".join(standing.problems(submission)))
    tree = of_grade(submission.grade, points)
    refused = [f"Not taken: {words.clean(one)}" for one in submission.refused]
    tree["output"] = "\n".join([tree["output"], *refused])
    return tree


def _without_tests(output: str) -> dict[str, Any]:
    return _tree(0, output, [])


def _tree(hundredths: int, output: str, tests: list[dict]) -> dict[str, Any]:
    return {
        "score": hundredths / 100,
        "output": output,
        "output_format": "text",
        "test_output_format": "text",
        "test_name_format": "text",
        "visibility": VISIBLE,
        "stdout_visibility": "hidden",
        "tests": tests,
    }


def _exercise(lesson: LessonResult, exercise: ExerciseResult, points: Points, number: str) -> list[dict]:
    found = earned(points, lesson.stem, exercise)
    name = f"{lesson.stem.split('_', 1)[0]} {exercise.name}"
    if not found.levels:
        output = _undecided(lesson, exercise)
        return [_test(number, name, found.earned, found.most, False, output, [exercise.state])]
    return [
        _level(f"{number}.{index}", name, level, exercise, found)
        for index, level in enumerate([one for one in LEVELS if one in found.levels], 1)
    ]


def _level(number: str, name: str, level: str, exercise: ExerciseResult, found: Earned) -> dict:
    got, most = found.levels[level]
    result = exercise.levels[level]
    passed = result.state == "passed" and not found.why_void
    return _test(number, f"{name}: {level}", got, most, passed, _output(level, result, exercise, found), [level])


def _test(number: str, name: str, got: int, most: int, passed: bool, output: str, tags: list[str]) -> dict:
    return {
        "name": name,
        "number": number,
        "score": got / 100,
        "max_score": most / 100,
        "status": "passed" if passed else "failed",
        "output": output,
        "output_format": "text",
        "tags": tags,
        "visibility": VISIBLE,
    }


def _output(level: str, result: LevelResult, exercise: ExerciseResult, found: Earned) -> str:
    if result.state == "failed":
        failed = [one for one in exercise.tests if one.failure and one.failure.level == level]
        return _says(failed[0], len(failed) - 1) if failed else "Failed."
    said = _STATES.get(result.state, result.state)
    figure = f" {words.clean(result.note)}" if result.note and result.state == "passed" else ""
    void = f" It does not count: {found.why_void}." if result.state == "passed" and found.why_void else ""
    return f"{said}{figure}{void}"


def _says(test: TestResult, more: int) -> str:
    failure = test.failure
    lines = [f"{'test':<10}{words.clean(test.title)}"]
    lines += [f"{part:<10}{words.clean(getattr(failure, part))}" for part in _PARTS if getattr(failure, part)]
    lines += [f"{'line':<10}{failure.line}: {words.clean(failure.source)}"] if failure.line else []
    lines += [f"{'also':<10}{words.plural(more, 'more test')} failed at this level"] if more else []
    return "\n".join(lines)


def _undecided(lesson: LessonResult, exercise: ExerciseResult) -> str:
    if lesson.problem:
        return _problem(lesson.problem)
    return {"missing": f"There is no function {exercise.name} in {lesson.stem}.py."}.get(
        exercise.state, f"{exercise.state[:1].upper()}{exercise.state[1:]}."
    )


def _problem(problem: Failure) -> str:
    source = words.clean_lines(problem.source).strip("\n")
    return "\n".join([standing.says(problem), *([source] if source else [])])
