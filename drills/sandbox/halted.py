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
    tree = source.parse(text)
    lines = [line for path, line in frames if path == name]
    if isinstance(tree, source.Problem) or not lines:
        return None, ""
    around = [loop for line in lines for loop in _loops(tree, line)]
    loops = sorted(around, key=lambda loop: not isinstance(loop, ast.While))
    line = loops[0].lineno if loops else lines[0]
    written = io.StringIO(importlib.util.decode_source(text)).readlines()
    return (line, written[line - 1].strip()) if line <= len(written) else (None, "")


def _loops(tree: ast.Module, line: int) -> list[ast.stmt]:
    """The loops around a line, innermost first."""
    around = [one for one in ast.walk(tree) if isinstance(one, LOOPS) and one.lineno <= line <= (one.end_lineno or 0)]
    return sorted(around, key=lambda loop: -loop.lineno)
