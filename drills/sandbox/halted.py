"""Where a process that gives no answer is in its graded file: it was asked by a signal, and Python itself answered.

What it printed then is as little to be believed as anything else that graded code could have printed: it chooses a line
to show, no more.
"""

from __future__ import annotations

import ast
import importlib.util
import io
import re

from drills import source

OPENING = "Stack (most recent call first):"
FRAME = re.compile(r'^  File "(.*)", line (\d{1,9}) in .*$')
MOST_FRAMES = 200
LOOPS = (ast.While, ast.For)
LARGEST = 128 << 10
"""Bytes of the largest file in which the loop is looked for: a stranger's may take long to parse, and is late often."""


def parted(printed: str) -> tuple[str, list[tuple[str, int]]]:
    """What was printed before the answer, and the answer: file and line of each frame, innermost first."""
    before, opening, answer = printed.rpartition(OPENING)
    if not opening:
        return printed, []
    found = [FRAME.match(line) for line in answer.split("\n")[1 : MOST_FRAMES + 1]]
    return before, [(one[1], int(one[2])) for one in found if one]


def place(frames: list[tuple[str, int]], file: str, text: bytes) -> tuple[int | None, str]:
    """Line and source of the loop that these frames are in, or of the line if they are in none; None, "" if nowhere.

    An endless `while` is likelier than an endless `for`: the innermost of those, if there is one.
    """
    name = file.encode("ascii", "backslashreplace").decode()
    lines = list(dict.fromkeys(line for path, line in frames if path == name))
    if not lines:
        return None, ""
    loops = _loops(text)
    around = [loop for line in lines for loop in loops if loop.lineno <= line <= (loop.end_lineno or 0)]
    chosen = sorted(around, key=lambda loop: not isinstance(loop, ast.While))
    line = chosen[0].lineno if chosen else lines[0]
    try:
        written = io.StringIO(importlib.util.decode_source(text)).readlines()
    except (SyntaxError, ValueError, LookupError):  # no text at all, which is said elsewhere
        return None, ""
    return (line, written[line - 1].strip()) if 0 < line <= len(written) else (None, "")


def _loops(text: bytes) -> list[ast.stmt]:
    """The file's loops, the inner ones first; none of a file that is too large, or no Python."""
    tree = source.parse(text) if len(text) <= LARGEST else None
    found = [one for one in ast.walk(tree) if isinstance(one, LOOPS)] if isinstance(tree, ast.Module) else []
    return sorted(found, key=lambda loop: -loop.lineno)
