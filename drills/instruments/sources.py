"""The text of functions as it stands in their files, whatever Python has been made to remember of it.

Knows graded files, whose bytes it is given, and Triton's own.
"""

from __future__ import annotations

import functools
import importlib.util
import inspect
import io
import os
from types import FunctionType

_triton = importlib.util.find_spec("triton")
TRITON = os.path.join(os.path.dirname(_triton.origin), "") if _triton and _triton.origin else "\0"
"""What the names of Triton's files begin with."""

_open = open
_graded: dict[str, bytes] = {}


def know(file: str, data: bytes) -> None:
    """A graded file with these bytes."""
    _graded[file] = data


def block(function: FunctionType) -> str | None:
    """A function with its decorators; None where its code says that it is of no file that is known."""
    code = function.__code__
    if code.co_filename in _graded:
        lines = _lines(_graded[code.co_filename])
    elif code.co_filename.startswith(TRITON):
        lines = _lines_of_triton(code.co_filename)
    else:
        return None
    return "".join(inspect.getblock(lines[code.co_firstlineno - 1 :]))


@functools.lru_cache(maxsize=4)
def _lines(data: bytes) -> list[str]:
    """A line ends where Python's do: not at a form feed."""
    return io.StringIO(importlib.util.decode_source(data)).readlines()


@functools.cache
def _lines_of_triton(file: str) -> list[str]:
    with _open(file, encoding="utf-8") as text:
        return text.readlines()
