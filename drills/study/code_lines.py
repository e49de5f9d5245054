"""Breaks a line of code that is wider than the screen: at the border of a token, the rest set in further.

Knows text only; must never change what is in a line.
"""

from __future__ import annotations

import re

DEEPER = 4
"""Columns by which the rest of a line is set in further than its beginning."""

_TEXT = r"""(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')"""
_PIECE = re.compile(rf"#.*|(?:{_TEXT}|[*~-]*[\w.]+|[(\[{{]|[)\]}},:])[)\]}},:]*|\s+|.", re.DOTALL)
"""A token with its sign or star, and what closes behind it: no line begins with a comma or a closing bracket."""


def broken(line: str, width: int) -> list[str]:
    """`line` in pieces of at most `width` characters, which is 20 or more; a break takes the blanks at it away."""
    if len(line) <= width:
        return [line]
    indent = len(line) - len(line.lstrip())
    rest = " " * min(indent + DEEPER, width // 2)
    found, now = [], line[:indent][: width // 2]
    for piece in _pieces(line[indent:], width - len(rest)):
        if len(now) + len(piece.rstrip()) > width and now.strip():
            found.append(now.rstrip())
            now = rest
        if now.strip() or piece.strip():
            now += piece if now.strip() or not found else piece.lstrip()
    return [*found, now.rstrip()] if now.strip() else found


def _pieces(code: str, room: int) -> list[str]:
    """Tokens; a comment, or a text longer than `room`, word by word; what is longer still in parts."""
    found: list[str] = []
    for piece in _PIECE.findall(code):
        words = [piece] if len(piece) <= room and not piece.startswith("#") else re.findall(r"\s+|\S+", piece)
        found += [word[at : at + room] for word in words for at in range(0, len(word), room)]
    return found
