"""The loop of `watch`: what a save, a key, a verdict and a signal lead to.

Waits for all of them at once and never for one alone. Must never grade here: the engine's process does.
"""

from __future__ import annotations

import errno
import select
import sys
import time
from collections.abc import Callable
from typing import Any

from drills.errors import DrillError
from drills.report import json_file, words
from drills.report.model import Grade
from drills.study import passed
from drills.study.prose import say
from drills.study.watch_engine import Engine, Job
from drills.study.watch_files import LOOK_EVERY, Files
from drills.study.watch_state import State
from drills.study.watch_terminal import Terminal
from drills.study.watch_view import Log, Screen

SLOW = 3.0
"""Seconds without progress after which the last line says how long one call may take."""

DOCTOR = "python grade.py doctor  says whether this machine is fit"


class Loop:
    """state: what is known. hint: shows an exercise's next hint, and says whether there is one more. listing: the list.

    progress: what is graded and how far, as long as nothing has been said about it being slow; since: when it came.
    """

    def __init__(
        self,
        state: State,
        view: Screen | Log,
        files: Files,
        engine: Engine,
        terminal: Terminal,
        hint: Callable[[str, str], bool],
        listing: Callable[[], None],
    ) -> None:
        self.state, self.view, self.files, self.engine, self.terminal = state, view, files, engine, terminal
        self.hint, self.listing = hint, listing
        self.over = False
        self.page = ""
        self.progress: tuple[str, str] | None = None
        self.since = 0.0

    def run(self) -> None:
        """Until q or a signal."""
        self.look_at()
        while not (self.over or self.terminal.ending):
            wait = min(LOOK_EVERY, self.engine.look_after() or LOOK_EVERY)
            ready = select.select([self.files, self.engine, *self.terminal.sources()], [], [], wait)[0]
            if self.terminal.nudged() and not self.view.covered:
                self.view.draw(self.state)
            self.say_if_slow()
            for stem in self.files.changed():
                self.saved(stem)
            if self.engine in ready:
                for message in self.engine.take():
                    self.heard(message)
            if sys.stdin in ready:
                for key in self.terminal.keys().casefold():
                    self.key(key)
        self.state.drop_outdated()

    def look_at(self) -> None:
        """Grade what the learner is at, or say why there is nothing to grade."""
        self.progress = None
        if not self.state.begun:
            self.engine.cancel()
            self.view.whole(self.state)
            return
        first = self.state.exercise if self.state.exercise in self.state.file.begun else ""
        self.engine.ask(Job(self.state.stem, self.state.selection.exercises, first))
        if self.view.shows != (self.state.stem, self.state.exercise):
            self.view.draw(self.state)
        at = self.state.exercise if first else self.state.selection.lesson.short
        self.view.running(self.state, f"grading {at}" if self.engine.ready else "starting: loading torch and triton")

    def say_if_slow(self) -> None:
        """What runs has said nothing for a while: say how long a call may take, and show no verdict of another text."""
        if self.progress and not self.view.covered and time.monotonic() - self.since >= SLOW:
            title, count = self.progress
            note = f"{count} · a call may take {self.engine.facts['timeout']:g} s"
            room = self.view.console.width - 2 - len(note)
            self.state.drop_outdated()
            self.view.draw(self.state)
            self.view.running(self.state, words.cap(words.clean(title), room) + note)
            self.progress = None

    def saved(self, stem: str) -> None:
        """A file has another text."""
        self.view.stopped()
        self.state.saved(stem, self.files.now[stem])
        self.look_at()

    def heard(self, message: dict[str, Any]) -> None:
        """Progress or a verdict."""
        self.progress = None
        if "title" in message:
            self.progress = f"grading {message['title']}", f"  {message['done']} of {message['total']}"
            self.since = time.monotonic()
            if not self.view.covered:
                self.view.running(self.state, "".join(self.progress))
        elif "broken" in message:
            self.state.trouble = f"{message['broken']}  ({DOCTOR})"
            self.view.whole(self.state)
        else:
            whole = "whole" in message
            self.verdict(json_file.from_tree(message["whole" if whole else "first"]), whole)

    def verdict(self, grade: Grade, whole: bool) -> None:
        """Show a verdict, and keep what has passed. A faulty grader's is none."""
        if grade.grader_error:
            self.state.trouble = f"The grader failed: {grade.grader_error}  ({DOCTOR})"
            if whole:
                self.view.whole(self.state)
            return
        self.state.graded(grade, whole)
        if not whole:
            self.view.first(self.state)
            return
        trouble = passed.keep(grade)
        self.view.whole(self.state)
        if trouble:
            self.view.say(trouble)

    def key(self, key: str) -> None:
        """One key. On another page only h, on a hint, and q are more than the way back."""
        if key in ("q", "\x04"):
            self.over = True
        elif self.view.covered and not (key == "h" and self.page == "h"):
            self.view.draw(self.state)
        elif key in ("h", "l"):
            self.page = key
            self.view.page(self.next_hint if key == "h" else self.whole_list)
        elif key == "r":
            self.view.stopped()
            self.look_at()
        elif key == "n":
            self.go_on()

    def next_hint(self) -> str:
        """Prints the hint for what the learner is stuck at; what the keys do then."""
        stem, exercise = self.state.stuck_at
        more = False
        try:
            more = self.hint(stem.split("_", 1)[0], exercise)
        except DrillError as error:
            say(self.view.console, str(error))
        return f"h {'the next hint' if more else 'the same again'} · q quit · any other key: back"

    def whole_list(self) -> str:
        """Prints the list; what the keys do then."""
        try:
            self.listing()
        except DrillError as error:
            say(self.view.console, str(error))
        return "q quit · any other key: back"

    def go_on(self) -> None:
        """The next exercise that has not passed: shown if it has been graded or is not begun, graded otherwise."""
        if not self.state.go_on():
            self.view.draw(self.state)
            return
        if self.state.state_of(self.state.exercise) == "" or not self.state.begun:
            self.look_at()
        else:
            self.view.turned(self.state)


def exit_code(terminal: Terminal) -> int:
    """0 after q, else as shells have it after a signal."""
    return 128 + terminal.ending if terminal.ending else 0


def hung_up(error: OSError) -> bool:
    """Whether the terminal has gone away."""
    return error.errno in (errno.EIO, errno.EPIPE)
