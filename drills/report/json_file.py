"""A grade as JSON, for scripts: the same verdicts as the screen, under a schema number.

`schema/grade.schema.json` says what every field means.

Schema 1: {"schema": 1, "exit_code", "passed", "total", and the fields of `drills.report.model.Grade`}. A number that
JSON cannot hold becomes null.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

from drills.report import text_file, verdict
from drills.report.model import ExerciseResult, Failure, Grade, LessonResult, LevelResult, TestResult

SCHEMA = 1
COUNTS = ("schema", "exit_code", "passed", "total")
"""What `as_tree` adds to the grade's own fields; all of it follows from them."""


def as_tree(grade: Grade) -> dict[str, Any]:
    """The grade as a tree of JSON's own types."""
    head = {"schema": SCHEMA, "exit_code": verdict.exit_code(grade)}
    head |= {"passed": verdict.passed(grade), "total": verdict.total(grade)}
    return _finite(head | asdict(grade))


def from_tree(tree: dict[str, Any]) -> Grade:
    """The grade that `as_tree` wrote; ValueError if the tree is none, or of another schema."""
    if not isinstance(tree, dict) or tree.get("schema") != SCHEMA:
        raise ValueError(f"no grade of schema {SCHEMA}")
    try:
        fields = {name: value for name, value in tree.items() if name not in COUNTS}
        return Grade(**{**fields, "lessons": [_lesson(one) for one in fields["lessons"]]})
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"a grade with a part missing: {error}") from None


def write(grade: Grade, path: Path) -> None:
    """Writes the grade to `path`; WrongUse if it cannot be written."""
    text_file.put(path, json.dumps(as_tree(grade), indent=2, allow_nan=False) + "\n")


def _lesson(tree: dict[str, Any]) -> LessonResult:
    exercises = [_exercise(one) for one in tree["exercises"]]
    return LessonResult(**{**tree, "exercises": exercises, "problem": _failure(tree["problem"])})


def _exercise(tree: dict[str, Any]) -> ExerciseResult:
    levels = {name: LevelResult(**one) for name, one in tree["levels"].items()}
    tests = [TestResult(**{**one, "failure": _failure(one["failure"])}) for one in tree["tests"]]
    return ExerciseResult(**{**tree, "levels": levels, "tests": tests})


def _failure(tree: dict[str, Any] | None) -> Failure | None:
    return None if tree is None else Failure(**tree)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _finite(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, (str, int, float, bool)) or value is None else str(value)
