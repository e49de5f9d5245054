"""A grade as JSON, for scripts: the same verdicts as the screen, under a schema number.

Schema 1: {"schema": 1, "exit_code", "passed", "total", and the fields of `drills.report.model.Grade`}. A number that
JSON cannot hold becomes null.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

from drills.errors import WrongUse
from drills.files import write_atomically
from drills.report import verdict
from drills.report.model import Grade

SCHEMA = 1


def as_tree(grade: Grade) -> dict[str, Any]:
    """The grade as a tree of JSON's own types."""
    head = {"schema": SCHEMA, "exit_code": verdict.exit_code(grade)}
    head |= {"passed": verdict.passed(grade), "total": verdict.total(grade)}
    return _finite(head | asdict(grade))


def write(grade: Grade, path: Path) -> None:
    """Writes the grade to `path`; WrongUse if it cannot be written."""
    text = json.dumps(as_tree(grade), indent=2, allow_nan=False) + "\n"
    try:
        if path.exists() and not path.is_file():
            path.write_text(text, encoding="utf-8")  # a pipe or a terminal
        else:
            write_atomically(path, text)
    except OSError as error:
        raise WrongUse(f"{path} cannot be written: {error.strerror or error}") from None


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _finite(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, (str, int, float, bool)) or value is None else str(value)
