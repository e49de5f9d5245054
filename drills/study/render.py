"""Shows a page's Markdown on a console.

Must never read a file and never decide what is shown: `read`, `hint` and `quiz` do.
"""

from __future__ import annotations

from rich.console import Console
from rich.segment import Segment, Segments

from drills.study.layout import lines, runs
from drills.study.markdown import parser

TIMES = str.maketrans("·", "⋅")
"""On a page a dot between words is always a product; as a sign of its own it is "*" in ASCII, not a separator."""

WIDEST = 100
"""Columns: longer lines are hard to read."""


def show(console: Console, source: str, *, indent: int = 0) -> None:
    """Prints Markdown to the console, `indent` columns in from the left, without blanks at the ends of lines."""
    width = min(console.width, WIDEST) - indent
    segments = []
    for line in lines(parser().parse(source.translate(TIMES)), width):
        if line:
            segments.append(Segment(" " * indent))
            segments += [Segment(words, style) for words, style in line]
        segments.append(Segment.line())
    console.print(Segments(segments), end="", soft_wrap=True)


def one_line(source: str, limit: int = 72) -> str:
    """The first paragraph's words on one line of at most `limit` characters."""
    inline = next((token for token in parser().parse(source) if token.type == "inline"), None)
    words = " ".join("".join(text for text, _ in runs(inline.children)).split()) if inline is not None else ""
    return words if len(words) <= limit else words[:limit].rpartition(" ")[0].rstrip() + "…"
