"""Fills an assignment's column of the instructor's own Canvas export, to be imported again.

A submission belongs to a student if its id or its name is the student's ID, SIS user id, login (with or without what
follows "@") or name, or has the form in which Canvas names downloads ("millera_2345_67890_…"). If that fits several
students, or two submissions fit one, none of them gets a score. Whatever gets none is listed; no other cell changes.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from drills.report import words
from drills.report.formats.canvas_file import Export, Line
from drills.report.points import Points, shown, total
from drills.report.standing import NOT_GRADED, standing
from drills.report.submission import Submission

_DOWNLOAD = re.compile(r"[^\W\d_][^_]*?(?:_late)?_(\d+)_(\d+)(?:_|$)", re.IGNORECASE)
_KEPT = ("EX", "N/A")
"""What a cell says of a student who is excused, or to whom the assignment was not given."""


@dataclass
class Filled:
    """What came of it. Lists of lines for the instructor: who got no score and why, each by name."""

    scores: int = 0
    without_student: list[str] = field(default_factory=list)
    without_submission: list[str] = field(default_factory=list)
    left_alone: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def lines(self, column: str) -> list[str]:
        """The list as text."""
        parts = [f"{words.plural(self.scores, 'score')} written to the column {words.clean(column)}"]
        for title, found in (
            ("Look at this first", self.warnings),
            ("Submissions that belong to no student of the export, or not to one alone", self.without_student),
            ("Students who got no score, because no submission is theirs", self.without_submission),
            ("Students whose cell was left as it is", self.left_alone),
        ):
            if found:
                parts += ["", f"{title} ({len(found)}):", *(f"  {one}" for one in found)]
        return parts


def fill(
    export: Export, assignment: str, submissions: Iterable[Submission], points: Points, possible: int
) -> tuple[str, Filled, str]:
    """The filled export, what came of it, and the column's title. possible: hundredths that all exercises are worth."""
    column = export.column(assignment)
    filled = Filled(warnings=_warnings(export, column, possible))
    people = set(map(id, export.students))
    students = [index for index, line in enumerate(export.lines) if id(line) in people]
    keys = _keys(export, students)
    claims: dict[int, list[tuple[str, str | None]]] = defaultdict(list)
    for submission in submissions:
        found = set().union(*(keys.get(key, set()) for key in _claims(submission)))
        if len(found) == 1:
            score = None if standing(submission) == NOT_GRADED else shown(total(points, submission.grade)[0])
            claims[next(iter(found))].append((_called(submission), score))
        else:
            several = f" fits {', '.join(_student(export.lines[one]) for one in sorted(found))}" if found else ""
            filled.without_student.append(f"{_called(submission)}{several}")
    changed: dict[int, Line] = {}
    for index in students:
        line = export.lines[index]
        scored = _decide(line, column, claims.get(index, []), filled)
        if scored:
            changed[index] = scored
    filled.scores = len(changed)
    return export.text(changed), filled, export.header.cell(column)


def _decide(line: Line, column: int, claimed: list[tuple[str, str | None]], filled: Filled) -> Line | None:
    who = _student(line)
    if not claimed:
        filled.without_submission.append(who)
        return None
    if len(claimed) > 1:
        filled.without_student += [f"{name}: also {len(claimed) - 1} more for {who}" for name, _ in claimed]
        filled.left_alone.append(f"{who}: {len(claimed)} submissions fit")
        return None
    name, score = claimed[0]
    if score is None:
        filled.left_alone.append(f"{who}: {name} could not be graded")
    elif line.cell(column).upper() in _KEPT:
        filled.left_alone.append(f"{who}: Canvas says {line.cell(column)}, {name} scored {score}")
    else:
        cells = line.cells + [""] * (column + 1 - len(line.cells))
        cells[column] = score
        return replace(line, cells=cells)
    return None


def _warnings(export: Export, column: int, possible: int) -> list[str]:
    said = export.possible.cell(column).replace(",", ".") if export.possible else ""
    try:
        there = round(float(said) * 100)
    except ValueError:
        return []
    if there == possible:
        return []
    worth = f"the assignment is worth {said} points in Canvas, the exercises {shown(possible)}"
    return [f"{worth}: scores are written as they are (--points can change what an exercise is worth)"]


def _keys(export: Export, students: list[int]) -> dict[tuple[str, str], set[int]]:
    """Whatever a submission may be called by → the lines of the students whom that fits."""
    keys: dict[tuple[str, str], set[int]] = defaultdict(set)
    columns = [export.people(name) for name in ("ID", "SIS User ID", "SIS Login ID", "Integration ID")]
    names = [export.people(name) for name in ("Student", "FirstName", "LastName")]
    for index in students:
        line = export.lines[index]
        login = line.cell(columns[2])
        ids = [line.cell(one) for one in columns] + ([login.split("@")[0]] if "@" in login else [])
        for one in filter(None, ids):
            keys["id", _fold(one)].add(index)
        name = _name(" ".join(line.cell(one) for one in names))
        if name:
            keys["name", name].add(index)
        if line.cell(columns[0]):
            keys["download", line.cell(columns[0])].add(index)
    return keys


def _claims(submission: Submission) -> list[tuple[str, str]]:
    claims = []
    for said in (submission.id, submission.name):
        claims += [("id", _fold(said)), ("name", _name(said))]
        match = _DOWNLOAD.match(said)
        if match:
            claims.append(("download", match[1]))
    return claims


def _fold(text: str) -> str:
    return unicodedata.normalize("NFKC", text).strip().casefold()


def _name(text: str) -> str:
    """A name without order, accents and punctuation: "Müller, Ana" and "ana_muller" are one."""
    plain = "".join(one for one in unicodedata.normalize("NFKD", text) if not unicodedata.combining(one))
    return " ".join(sorted(re.findall(r"[^\W_]+", plain.casefold())))


def _student(line: Line) -> str:
    return words.clean(line.cell(0)) or words.clean(line.cell(1)) or "a line without a name"


def _called(submission: Submission) -> str:
    name = words.clean(submission.name)
    return submission.id if name in ("", submission.id) else f"{submission.id} ({name})"
