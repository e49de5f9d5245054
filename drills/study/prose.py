"""Sentences on a screen: wrapped between words, never within a path or a command.

A command stands as it is to be typed: one that does not fit the rest of a line begins the next one. Must never import
rich when it is imported: the command line wraps its last words with it.
"""

from __future__ import annotations

import re
import textwrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

WIDEST = 100
"""Columns: longer lines are hard to read."""

_COMMAND = re.compile(r"python grade\.py(?: \S+)*")
"""Two blanks, or the end of the text, follow a command wherever one is named."""

_JOINED = "\N{NO-BREAK SPACE}"


def wrapped(text: str, width: int, indent: str = "") -> str:
    """`text` in lines of at most `width` columns, each after `indent`; a longer word or command has its own."""
    kept = _COMMAND.sub(lambda command: command[0].replace(" ", _JOINED), text)
    lines = textwrap.wrap(
        kept,
        max(width, 20),
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "\n".join(lines).replace(_JOINED, " ")


def say(console: Console, text: str, style: str | None = None) -> None:
    """Prints one paragraph, a column in from the left like everything else."""
    console.print(wrapped(text, min(console.width, WIDEST), " "), style=style, soft_wrap=True)
