"""The one way to a console: colour by flag, then NO_COLOR, then the terminal; ASCII where there is nothing else.

Must never parse markup, guess highlights or turn ":name:" into a picture: what is printed is what was given.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import IO

from rich.console import Console
from rich.segment import Segment

from drills.report import words

NARROWEST = 40


class PlainConsole(Console):
    """A console that writes ASCII only, whatever it is given."""

    def _render_buffer(self, buffer: Iterable[Segment]) -> str:
        return words.ascii_only(super()._render_buffer(buffer))


def open_console(*, color: bool = True, plain: bool = False, file: IO[str] | None = None) -> Console:
    """A console on `file` (standard output if None). color: False is `--no-color`; plain: no colour and ASCII only."""
    stream = file or sys.stdout
    encoding = (getattr(stream, "encoding", None) or "utf-8").lower().replace("-", "")
    kind = PlainConsole if plain or not encoding.startswith("utf") else Console
    console = kind(
        file=file,
        markup=False,
        highlight=False,
        emoji=False,
        # rich would keep bold and dim without colour; a screen asked to be without it gets no escape at all.
        color_system="auto" if color and not plain and not os.environ.get("NO_COLOR") else None,
    )
    if console.width < NARROWEST:
        console.width = NARROWEST
    return console
