"""The live lines of a batch: how many are done, how fast it goes, how they came out.

On a terminal three lines that are redrawn; elsewhere one line every half minute. Must never slow the batch down.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from rich.console import Console
from rich.live import Live
from rich.text import Text

from drills.batch.tally import Tally
from drills.report import standing, words
from drills.report.rows import QUIET, TITLE
from drills.study import prose

EVERY = 30.0
MOST_CAUSES = 2


class Progress:
    """Use it as `with Progress(…) as progress: progress.show()`. head: what is graded and how, one line."""

    def __init__(self, tally: Tally, head: str, console: Console, plain: bool = False) -> None:
        self.tally = tally
        self.head = head
        self.console = console
        live = console.is_terminal and not console.is_dumb_terminal and not plain
        self.live = Live(console=console, auto_refresh=False, transient=True) if live else None
        self.clock: Callable[[], float] = time.monotonic
        self.shown = self.clock()

    def __enter__(self) -> Progress:
        if self.live:
            self.live.start()
        else:
            prose.say(self.console, self.head)
        self.show()
        return self

    def __exit__(self, *_: object) -> None:
        if self.live:
            self.live.stop()

    def show(self) -> None:
        """Brings what is shown up to date."""
        if self.live:
            self.live.update(Text("\n").join(self.lines()), refresh=True)
        elif self.clock() - self.shown >= EVERY:
            self.shown = self.clock()
            prose.say(self.console, f"{self.tally.done} of {self.tally.total} · {self.pace()}")

    def lines(self) -> list[Text]:
        """The lines for a terminal, each at most as wide as it is."""
        width = self.console.width
        pace = self.pace()
        head = Text(f" {words.cap(self.head, max(20, width - len(pace) - 4))}", TITLE)
        head.append(pace.rjust(width - head.cell_len - 1), QUIET)
        count = f"  {self.tally.done} of {self.tally.total}"
        room = max(10, min(40, width - len(count) - 2))
        filled = room * self.tally.done // max(1, self.tally.total)
        bar = Text.assemble(" ", ("█" * filled, "green"), ("░" * (room - filled), QUIET), count)
        counts = self.tally.standings
        always = (standing.PASSED, standing.PARTLY, standing.NOTHING)
        third = " · ".join(f"{name} {counts[name]}" for name in standing.ALL if counts[name] or name in always)
        lines = [head, bar, Text(f" {third}")]
        common = [f"{says} ({count})" for says, count in self.tally.causes.most_common(MOST_CAUSES)]
        if common:
            lines.append(Text(f" Most common: {' · '.join(words.cap(one, 60) for one in common)}"))
        for line in lines:
            line.truncate(width - 1, overflow="ellipsis")
        return lines

    def pace(self) -> str:
        """ "31/min, 2 min left"."""
        left = self.tally.seconds_left
        if left is None:
            return "starting" if self.tally.done < self.tally.total else ""
        rest = f"{left / 60:.0f} min left" if left >= 90 else f"{left:.0f} s left"
        return f"{self.tally.per_minute:.0f}/min, {rest}"
