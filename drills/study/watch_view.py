"""How `watch` shows itself: a screen that is drawn anew on a terminal, one line a run everywhere else.

Must never decide what is shown: `watch_screen` has the words.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable

from rich.console import Console

from drills.report import words
from drills.study import watch_screen
from drills.study.watch_state import State

CLEAR, REWRITE = "\x1b[H\x1b[2J", "\r\x1b[2K"


def open_view(console: Console, plain: bool, keyed: bool) -> Screen | Log:
    """A screen if the console is a terminal that can be drawn on."""
    drawable = console.is_terminal and not console.is_dumb_terminal and not plain
    return Screen(console, keyed) if drawable else Log(console, keyed)


class Screen:
    """One screen; its last line alone moves while something runs."""

    def __init__(self, console: Console, keyed: bool) -> None:
        self.console = console
        self.keyed = keyed
        self.last = ""
        self.covered = False
        self.shows = ("", "")

    def draw(self, state: State) -> None:
        """The whole screen."""
        self.covered, self.shows = False, (state.stem, state.exercise)
        self._write(CLEAR)
        for line in watch_screen.lines(state, self.console):
            self.console.print(line, soft_wrap=True)
        if self.keyed:
            self.console.print(watch_screen.keys_line(self.console.width), soft_wrap=True)
        self.say(self.last)

    def turned(self, state: State) -> None:
        """The learner turned to another exercise."""
        self.draw(state)

    def page(self, show: Callable[[], str]) -> None:
        """Something else in place of the screen, until a key or a verdict; `show` returns the last line."""
        self.covered, self.shows = True, ("", "")
        self._write(CLEAR)
        self._last_line(show())

    def say(self, text: str) -> None:
        """Rewrite the last line."""
        self.last = text
        self._last_line(text)

    def _last_line(self, text: str) -> None:
        line = words.cap(words.clean(text), self.console.width - 2)
        self._write(f"{REWRITE} {words.ascii_only(line) if self.console.encoding != 'utf-8' else line}")

    def running(self, state: State, text: str) -> None:
        """Something runs: the screen stays as it was."""
        self.say(text)

    def first(self, state: State) -> None:
        """The first verdict of a run."""
        self.last = f"{clock()} · grading the rest"
        self.draw(state)

    def whole(self, state: State) -> None:
        """The last verdict of a run, or why there is none."""
        self.last = f"{clock()} · {watch_screen.summary(state)} · waiting for you to save"
        if not state.begun:
            self.last = "waiting for you to save"
        self.draw(state)

    def stopped(self) -> None:
        """A run was given up for a newer text."""

    def end(self, state: State) -> None:
        """Leave a last line behind."""
        self._write(REWRITE)
        self.console.print(f" watch ended · {state.selection.lesson.short} {watch_screen.summary(state)}")

    def _write(self, text: str) -> None:
        self.console.file.write(text)
        self.console.file.flush()


class Log:
    """One line a run: its first half as soon as the exercise is decided, its second when the lesson is."""

    def __init__(self, console: Console, keyed: bool = False) -> None:
        self.console = console
        self.open = False
        if keyed:
            console.print(watch_screen.keys_line(console.width), soft_wrap=True)
        self.covered = False
        self.shows = ("", "")

    def draw(self, state: State) -> None:
        """There is no screen to draw."""

    def turned(self, state: State) -> None:
        """The learner turned to another exercise."""
        self._print(f"{clock()} {_verdict(state)}")

    def page(self, show: Callable[[], str]) -> None:
        """Something else, below what is there."""
        show()

    def say(self, text: str) -> None:
        """A line that belongs to no run."""
        self._print(f"{clock()} {text}")

    def running(self, state: State, text: str) -> None:
        """Nothing is said before there is a verdict."""

    def first(self, state: State) -> None:
        """The first half of the line."""
        self._print(f"{clock()} {_verdict(state)}", end="")
        self.open = True

    def whole(self, state: State) -> None:
        """The line, or its second half."""
        count = f"{state.selection.lesson.short}: {watch_screen.summary(state)}"
        if state.file.source.problem:
            self._print(f"{clock()} {_verdict(state)}")
            return
        if not state.begun and not state.file.source.problem:
            count = f"{watch_screen.file_of(state)} is not begun yet"
        begin = "" if self.open else f"{clock()} {_verdict(state)}"
        self._print(f"{begin} · {count}" if begin or self.open else f"{clock()} {count}")

    def stopped(self) -> None:
        """End a line that will get no second half."""
        if self.open:
            self._print(" · saved again")

    def end(self, state: State) -> None:
        """End a line that was begun."""
        if self.open:
            self._print("")

    def _print(self, text: str, end: str = "\n") -> None:
        self.console.print(text, end=end, soft_wrap=True)
        self.console.file.flush()
        self.open = self.open and end != "\n"


def clock() -> str:
    """The time of day, as a learner reads it."""
    return datetime.datetime.now().strftime("%H:%M:%S")


def _verdict(state: State) -> str:
    """ "l4.merge_state FAIL edge · got s = nan in 2 of 4 heads · mine/l4_merge_states.py:31"."""
    name, file = f"{state.selection.lesson.short}.{state.exercise}", watch_screen.file_of(state)
    if state.trouble:
        return words.clean(state.trouble)
    found = watch_screen.failure_of(state)
    if found:
        failure = found[1]
        result = state.results.get((state.stem, state.exercise))
        line = failure.line or (result.line if result and not state.file.source.problem else None)
        place = f"{file}:{line}" if line else file
        whole_file = state.problems.get(state.stem) or state.file.source.problem
        name = file if whole_file else f"{name} FAIL {failure.level}"
        got = words.clean(failure.got, 200)
        return f"{name} · {got}" + ("" if whole_file and not line else f" · {place}")
    known = state.state_of(state.exercise)
    if known == "passed":
        return f"{name} PASS" + (" so far" if state.undecided == state.exercise else "")
    return f"{name} {known}" if known else ""
