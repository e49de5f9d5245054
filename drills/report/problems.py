"""Says why a lesson's file could not be graded at all: a `Failure` in the form that every message has."""

from __future__ import annotations

from drills.report.model import Failure
from drills.source import Problem

KINDS = {"missing": "missing_file", "unreadable": "unreadable_file", "syntax": "syntax_error"}


def from_source(problem: Problem, file: str) -> Failure:
    """The failure for what `drills.source` found in `file` ("mine/l4_merge_states.py")."""
    if problem.kind == "missing":
        return Failure(KINDS["missing"], "value", got=f"there is no {file}")
    if problem.kind == "unreadable":
        return Failure(KINDS["unreadable"], "value", got=f"{file} {problem.says}")
    where = f"line {problem.line}: " if problem.line else ""
    got = f"syntax error, {where}{problem.says}" if problem.line else f"{file} {problem.says}"
    return Failure(KINDS["syntax"], "value", got=got, line=problem.line, source=problem.caret())
