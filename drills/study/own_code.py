"""The code that belongs to one exercise: its function, and the file's functions that it uses, kernels included.

Reads text only; must never run it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from pathlib import Path

from drills import source
from drills.study import surgery


def codes(path: Path, exercises: Iterable[str]) -> dict[str, str]:
    """Exercise → the lines of its own code, without blanks at their ends; {} for a file that is no Python."""
    try:
        return of_bytes(path.read_bytes(), exercises)
    except OSError:
        return {}


def of_bytes(data: bytes, exercises: Iterable[str]) -> dict[str, str]:
    """Like `codes`, of a file's bytes."""
    tree = source.parse(data)
    if not isinstance(tree, ast.Module):
        return {}
    text = data.decode("utf-8-sig", errors="replace").replace("\r\n", "\n").replace("\r", "\n")
    lines = [line.rstrip() for line in text.split("\n")]
    return {name: "\n".join(lines[at - 1] for at in sorted(surgery.needed_lines(tree, (name,)))) for name in exercises}
