"""The loop of `watch`: what a save, a key, a verdict and a signal lead to.

Waits for all of them at once and never for one alone. Must never grade here: the engine's process does.
"""

from __future__ import annotations

import errno
import select
import sys
from collections.abc import Callable
from typing import Any

from drills.errors import DrillError
from drills.report import json_file
from drills.report.model import Grade
from drills.study import passed
from drills.study.watch_engine import Engine, Job
from drills.study.watch_files import LOOK_EVERY, Files
from drills.study.watch_state import State
from drills.study.watch_terminal import Terminal
from drills.study.watch_view import Log, Screen

DOCTOR = "python grade.py doctor  says whether this machine is fit"


class Loop:
    """state: what is known. hint, listing: show the learner's next hint, and the list."""

    def __init__(
        self,
        state: State,
        view: Screen | Log,
        files: Files,
        engine: Engine,
        terminal: Terminal,
        hint: Callable[[str, str], None],
        listing: Callable[[], None],
    ) -> None:
        self.state, self.view, self.files, self.engine, self.terminal = state, view, files, engine, terminal
        self.hint, self.listing = hint, listing
        self.over = False

    def run(self) -> None:
        """Until q or a signal."""
        self.look_at()
        while not (self.over or self.terminal.ending):
            wait = min(LOOK_EVERY, self.engine.look_after() or LOOK_EVERY)
            ready = select.select([self.files, self.engine, *self.terminal.sources()], [], [], wait)[0]
            if self.terminal.nudged() and not self.view.covered:
                self.view.draw(self.state)
            for stem in self.files.changed():
                self.saved(stem)
            if self.engine in ready:
                for message in self.engine.take():
                    self.heard(message)
            if sys.stdin in ready:
                for key in self.terminal.keys().casefold():
                    self.key(key)

    def look_at(self) -> None:
        """Grade what the learner is at, or say why there is nothing to grade."""
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

    def saved(self, stem: str) -> None:
        """A file has another text."""
        self.view.stopped()
        self.state.saved(stem, self.files.now[stem])
        self.look_at()

    def heard(self, message: dict[str, Any]) -> None:
        """Progress or a verdict."""
        if "title" in message:
            if not self.view.covered:
                count = f"{message['done']} of {message['total']}"
                self.view.running(self.state, f"grading {message['title']}  {count}")
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
        """One key."""
        if key in ("q", "\x04"):
            self.over = True
        elif key == "h":
            self.help(lambda: self.hint(self.state.selection.lesson.short, self.state.exercise), "h the next hint")
        elif key == "l":
            self.help(self.listing, "any key: back")
        elif key == "r":
            self.view.stopped()
            self.look_at()
        elif key == "n":
            self.go_on()
        elif self.view.covered:
            self.view.draw(self.state)

    def help(self, show: Callable[[], None], below: str) -> None:
        """Another page, until a key or a verdict."""

        def safely() -> None:
            try:
                show()
            except DrillError as error:
                self.view.console.print(f" {error}", soft_wrap=True)

        self.view.page(safely, below if below.startswith("any") else f"{below} · any other key: back")

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
