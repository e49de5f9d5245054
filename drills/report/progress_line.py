"""One line that says what runs now and is gone when the run is over. Only on a terminal; must never scroll."""

from __future__ import annotations

import time

from rich.console import Console

from drills.report import words

_SHORTEST = 0.05
_CLEAR = "\r\x1b[2K"


class ProgressLine:
    """Use it as `with ProgressLine(console) as line: line.show("…")`. Silent where the console is no terminal."""

    def __init__(self, console: Console, quiet: bool = False) -> None:
        self.console = console
        self.on = console.is_terminal and not console.is_dumb_terminal and not quiet
        self.shown_at = 0.0

    def __enter__(self) -> ProgressLine:
        return self

    def __exit__(self, *raised: object) -> None:
        if self.on and self.shown_at:
            self._write(_CLEAR)

    def show(self, text: str) -> None:
        """Replaces the line; at most twenty times a second, so that fast tests don't flicker."""
        now = time.monotonic()
        if self.on and now - self.shown_at >= _SHORTEST:
            self.shown_at = now
            line = words.cap(words.clean(text), self.console.width - 2)
            self._write(f"{_CLEAR} {words.ascii_only(line) if self.console.encoding != 'utf-8' else line}")

    def _write(self, text: str) -> None:
        self.console.file.write(text)
        self.console.file.flush()
