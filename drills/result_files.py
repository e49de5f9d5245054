"""The result files of one grading: which were asked for, whether they can be written, and writing them.

Must never change a verdict. A file that cannot be written is told before anything is graded.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path

from drills.errors import WrongUse
from drills.report import text_file
from drills.report.model import Grade
from drills.report.points import Points, shown, total

FORMATS = {
    "json": "write the result as JSON too",
    "junit": "as JUnit XML, for CI",
    "gradescope": "as Gradescope's results.json",
    "exercism": "as Exercism's results.json, version 3",
}
"""Option → its help."""


def add_arguments(parser: argparse._ActionsContainer) -> None:
    """Adds an option for each format, and --points."""
    for name, says in FORMATS.items():
        parser.add_argument(f"--{name}", type=Path, metavar="FILE", help=says)
    parser.add_argument("--points", type=Path, metavar="FILE", help="points per exercise and level (TOML)")


def check(options: argparse.Namespace) -> None:
    """WrongUse, in one line, if a file cannot be written or the table of points cannot be read. Keeps the table."""
    for name in FORMATS:
        if getattr(options, name, None):
            check_writable(getattr(options, name))
    path = getattr(options, "points", None)
    if path:
        from drills.report import points_file

        options.points_table = points_file.load(path)


def check_writable(path: Path) -> None:
    """WrongUse if a result file cannot be written where it is asked for."""
    if path.is_dir():
        raise WrongUse(f"{path} is a folder: name a file")
    if not path.absolute().parent.is_dir():
        raise WrongUse(f"{path}: the folder {path.absolute().parent} is not there")


def write(grade: Grade, options: argparse.Namespace) -> None:
    """Writes every file that was asked for."""
    makers: dict[str, Callable[[Grade, Points], str]] = {
        "json": _json, "junit": _junit, "gradescope": _gradescope, "exercism": _exercism
    }  # fmt: skip
    for name, make in makers.items():
        if getattr(options, name, None):
            text_file.put(getattr(options, name), make(grade, table(options)))


def table(options: argparse.Namespace) -> Points:
    """The instructor's table of points, as `check` read it, or the default one."""
    return getattr(options, "points_table", None) or Points()


def points_line(grade: Grade, options: argparse.Namespace) -> str:
    """ "7.5 of 40 points", if points were asked for; else ""."""
    if not getattr(options, "points_table", None) or grade.grader_error:
        return ""
    got, most = total(options.points_table, grade)
    return f"{shown(got)} of {shown(most)} points"


def _json(grade: Grade, points: Points) -> str:
    from drills.report import json_file

    return _dump(json_file.as_tree(grade))


def _junit(grade: Grade, points: Points) -> str:
    from drills.report.formats import junit

    return junit.of_grade(grade)


def _gradescope(grade: Grade, points: Points) -> str:
    from drills.report.formats import gradescope

    return _dump(gradescope.of_grade(grade, points))


def _exercism(grade: Grade, points: Points) -> str:
    from drills.report.code_of_test import code_of
    from drills.report.formats import exercism

    return _dump(exercism.of_grade(grade, code_of))


def _dump(tree: dict) -> str:
    return json.dumps(tree, indent=2, allow_nan=False) + "\n"
