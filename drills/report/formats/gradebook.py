"""The gradebook: a CSV file, one line a submission, for any spreadsheet.

UTF-8 with a byte-order mark: without one, Excel reads the file in the machine's old code page and spoils every name
that is not ASCII; LibreOffice, Google Sheets, pandas and R read it either way (Python: `encoding="utf-8-sig"`). Lines
end in CRLF, as RFC 4180 has it. Lines stand in the order of the submissions, columns in the order of the lessons.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from typing import TextIO

from drills.report import verdict
from drills.report.formats.spreadsheet import cell
from drills.report.model import ExerciseResult, LessonResult
from drills.report.points import Points, earned, shown, total
from drills.report.standing import NOT_GRADED, problems, standing
from drills.report.submission import Submission

ENCODING = "utf-8-sig"
FIXED = ("submission", "name", "standing", "points", "points possible", "exercises passed", "exercises")
LAST = ("seconds", "isolation", "problem")

Column = tuple[str, str]
"""A lesson's stem and an exercise's name."""


def write(file: TextIO, submissions: Iterable[Submission], columns: Sequence[Column], points: Points) -> None:
    """Writes the gradebook. file: opened with newline="" and ENCODING. columns: the exercises of the whole class."""
    writer = csv.writer(file)
    titles = [f"{stem.split('_', 1)[0]}.{name}" for stem, name in columns]
    heads = [part for title in titles for part in (f"{title} points", f"{title} result")]
    writer.writerow([cell(head) for head in (*FIXED, *heads, *LAST)])
    possible = sum(points.most(*column) for column in columns)
    for submission in submissions:
        writer.writerow(_line(submission, columns, points, possible))


def _line(submission: Submission, columns: Sequence[Column], points: Points, possible: int) -> list[str]:
    stands = standing(submission)
    grade = None if stands == NOT_GRADED else submission.grade
    got = total(points, grade)[0] if grade else 0
    passed = verdict.passed(grade) if grade else 0
    line = [cell(submission.id), cell(submission.name), stands, shown(got), shown(possible)]
    line += [str(passed), str(len(columns))]
    found = {(lesson.stem, one.name): (lesson, one) for lesson, one in verdict.exercises(grade)} if grade else {}
    for column in columns:
        line += _exercise(found.get(column), column, points)
    seconds = submission.grade.seconds if submission.grade else 0.0
    isolation = cell(submission.grade.isolation if submission.grade else submission.made_with.get("isolation", ""))
    return [*line, f"{seconds:.3g}" if seconds else "", isolation, cell("; ".join(problems(submission)))]


def _exercise(found: tuple[LessonResult, ExerciseResult] | None, column: Column, points: Points) -> list[str]:
    if found is None:
        return ["0", "not graded"]
    lesson, exercise = found
    return [shown(earned(points, column[0], exercise).earned), result(lesson, exercise)]


def result(lesson: LessonResult, exercise: ExerciseResult) -> str:
    """ "passed", "failed at edge", "not started", "no such function", "no file", "not graded"."""
    if lesson.problem:
        return "no file" if lesson.problem.kind == "missing_file" else "not graded"
    if exercise.state == "missing":
        return "no such function"
    test = verdict.first_failed_test(exercise)
    if exercise.state == "failed":
        return f"failed at {test.failure.level}" if test and test.failure else "failed"
    return exercise.state
