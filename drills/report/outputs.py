"""Everything that a batch leaves behind for people and platforms, from its submissions, read one at a time.

    gradebook.csv            one line a submission
    reports/ID.md            for the student
    gradescope/ID.json       as results.json there
    junit.xml                a suite a submission, a case an exercise
    statistics.md, .json     the class
    problems.txt             what could not be graded, and files that were not taken
    canvas.csv, canvas.txt   with --canvas: the import, and who is in it and who is not

Must never hold the class in memory, and never decide a verdict. What it leaves can always be made again from the
submissions; each file is replaced as a whole.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from drills.errors import WrongUse
from drills.report import points_file, standing, words
from drills.report.formats import canvas, canvas_file, class_report, gradebook, gradescope, junit, student
from drills.report.points import Points
from drills.report.statistics import Column, Statistics
from drills.report.submission import Submission

Submissions = Callable[[], Iterator[Submission]]
"""Gives the submissions anew, in the same order, whenever it is called."""

_FILE_NAME = re.compile(r"[^\w.+~-]")


@dataclass(frozen=True)
class Options:
    """points: the table. export: the instructor's Canvas export. assignment: its column's name, "" for its only one.

    columns: the gradebook's exercises where no submission says what was graded.
    """

    points: Points = field(default_factory=Points)
    export: canvas_file.Export | None = None
    assignment: str = ""
    columns: tuple[Column, ...] = ()


def add_arguments(parser: argparse._ActionsContainer) -> None:
    """Adds the arguments from which `options_of` makes Options."""
    parser.add_argument("--points", type=Path, metavar="FILE", help="points per exercise and level (TOML)")
    parser.add_argument("--canvas", type=Path, metavar="EXPORT", help="fill this Canvas gradebook export (CSV)")
    parser.add_argument("--assignment", default="", metavar="NAME", help="its column to fill, if there are several")


def options_of(namespace: argparse.Namespace, lessons: Mapping[str, Iterable[str]]) -> Options:
    """What the arguments ask for, checked before anything is graded; WrongUse, in one line, if that cannot be done.

    lessons: stem → the exercises that are graded.
    """
    points = points_file.load(namespace.points) if namespace.points else Points()
    export = canvas_file.read(namespace.canvas) if namespace.canvas else None
    if namespace.assignment and export is None:
        raise WrongUse("--assignment names a column of a Canvas export: give --canvas EXPORT.csv too")
    if export:
        export.column(namespace.assignment)
    columns = tuple((stem, name) for stem, names in lessons.items() for name in names)
    return Options(points, export, namespace.assignment, columns)


def write_all(
    out: Path, submissions: Submissions, options: Options | None = None, not_taken: Iterable[str] = ()
) -> Statistics:
    """Writes every output into the folder `out`; returns the statistics. WrongUse if something cannot be written.

    not_taken: what lay beside the submissions and is none, a line each.
    """
    found = Statistics()
    try:
        _write(out, submissions, options or Options(), found, not_taken)
    except OSError as error:
        raise WrongUse(f"{error.filename or out} cannot be written: {error.strerror or error}") from None
    return found


def _write(out: Path, submissions: Submissions, options: Options, found: Statistics, not_taken: Iterable[str]) -> None:
    points = options.points
    for folder in (out, out / "reports", out / "gradescope"):
        folder.mkdir(parents=True, exist_ok=True)
    with _replacing(out / "junit.xml") as cases, _replacing(out / "problems.txt") as listed:
        listed.writelines(f"not taken: {words.clean(line)}\n" for line in not_taken)

        def each() -> Iterator[Submission]:
            for one in submissions():
                found.add(one, points)
                listed.writelines(problem_lines(one))
                _write_own(out, one, points)
                yield one

        cases.writelines(junit.of_class(each()))
    columns = found.columns or options.columns  # known now, so a second look at every submission
    with _replacing(out / "gradebook.csv", gradebook.ENCODING) as file:
        gradebook.write(file, submissions(), columns, points)
    _replace(out / "statistics.json", _json(found.tree(points)))
    _replace(out / "statistics.md", class_report.report(found, points))
    if options.export:
        possible = sum(points.most(*column) for column in columns)
        text, filled, title = canvas.fill(options.export, options.assignment, submissions(), points, possible)
        _replace(out / "canvas.csv", text)
        _replace(out / "canvas.txt", "\n".join(filled.lines(title)) + "\n")


def left_over(out: Path, options: Options) -> str:
    """What an earlier run wrote into the folder `out` and this one did not, in a sentence; "" if there is nothing."""
    if options.export or not (out / "canvas.csv").exists():
        return ""
    return "canvas.csv is of an earlier run: give --canvas again, with a new export, to have it filled anew."


def problem_lines(one: Submission) -> Iterator[str]:
    """A line for each thing of it that could not be graded or was not taken, once: "ID: why"."""
    name = words.clean(one.id)
    yield from (f"{name}: {says}\n" for says in standing.problems(one))
    yield from (f"{name}: not taken: {words.clean(says)}\n" for says in one.refused if says not in one.problem)


def own_files(out: Path, identity: str) -> tuple[Path, Path]:
    """The files that are one submission's own: its report, and its results for Gradescope."""
    name = _FILE_NAME.sub("_", identity).lstrip(".") or "_"
    return out / "reports" / f"{name}.md", out / "gradescope" / f"{name}.json"


def _write_own(out: Path, one: Submission, points: Points) -> None:
    report, results = own_files(out, one.id)
    _replace(report, student.report(one, points))
    _replace(results, _json(gradescope.of_submission(one, points)))


def _json(tree: dict[str, Any]) -> str:
    return json.dumps(tree, indent=2, allow_nan=False) + "\n"


def _replace(path: Path, text: str) -> None:
    with _replacing(path) as file:
        file.write(text)


@contextlib.contextmanager
def _replacing(path: Path, encoding: str = "utf-8") -> Iterator[TextIO]:
    """A text file that takes the place of `path` when it is whole. Not flushed to the disk one by one: a class is many
    files, and all of them can be made again."""
    partial = path.with_name(f".{path.name}.tmp")
    try:
        with open(partial, "w", encoding=encoding, newline="", errors="replace") as file:
            yield file
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)
