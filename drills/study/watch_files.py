"""The learner's files as `watch` sees them: which has another text now, and what is written in it.

What counts is the text, not the events: an editor that writes by rename, saves twice or leaves swap files changes one
text once. watchfiles says when to look; a look now and then makes up for folders that send no events. Must never write.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from drills import source
from drills.catalog import ROOT, Entry, Selection
from drills.study import place
from drills.study.own_code import codes

QUIET_MS = 30
"""Milliseconds without an event after which a save is over; editors write a file in several steps."""

LOOK_EVERY = 1.0
"""Seconds between two looks without an event."""


@dataclass(frozen=True)
class Snapshot:
    """A lesson's file at one moment. codes: exercise → its own code, from `own_code`; empty with a problem.

    saved: when it was last written, in nanoseconds.
    """

    source: source.Source
    codes: dict[str, str] = field(default_factory=dict)
    saved: int = 0

    @property
    def begun(self) -> tuple[str, ...]:
        """The exercises that the learner has begun."""
        return tuple(function.name for function in self.source.functions if function.state == "written")


class Files:
    """The watched lessons' files. `fileno` becomes readable when it is time to look."""

    def __init__(self, selections: Sequence[Selection]) -> None:
        self.lessons = {one.lesson.stem: one.lesson for one in selections}
        self.stamps = {stem: _stamp(lesson.mine) for stem, lesson in self.lessons.items()}
        self.now = {stem: snapshot(lesson) for stem, lesson in self.lessons.items()}
        self.woken, self.wake = socket.socketpair()
        self.woken.setblocking(False)
        self.over = threading.Event()
        folders = sorted({lesson.mine.parent for lesson in self.lessons.values()})
        self.thread = threading.Thread(target=self._listen, args=(folders,), daemon=True)
        self.thread.start()

    def fileno(self) -> int:
        """For select."""
        return self.woken.fileno()

    def changed(self) -> list[str]:
        """The stems of the files whose text, or whose absence, is news; `now` holds what they are now."""
        with contextlib.suppress(BlockingIOError):
            while self.woken.recv(4096):
                pass
        found = []
        for stem, lesson in self.lessons.items():
            stamp = _stamp(lesson.mine)
            if stamp == self.stamps[stem]:
                continue
            new = snapshot(lesson)
            self.stamps[stem] = stamp
            if _content(new) != _content(self.now[stem]):
                self.now[stem] = new
                found.append(stem)
        return found

    def close(self) -> None:
        """Stop listening."""
        self.over.set()
        self.thread.join(timeout=1.0)
        self.woken.close()
        self.wake.close()

    def _listen(self, folders: list[Path]) -> None:
        """In a thread: wake the loop on every event. A folder that is taken away and put back is listened to anew."""
        import watchfiles

        while not self.over.is_set():
            there = [folder for folder in folders if folder.is_dir()]
            # The folder went away, or there are no more watches to be had: the loop looks by itself meanwhile.
            with contextlib.suppress(OSError, RuntimeError):
                for _ in watchfiles.watch(
                    *(there or [ROOT]),
                    watch_filter=None,
                    debounce=10 * QUIET_MS,
                    step=QUIET_MS,
                    rust_timeout=500,
                    yield_on_timeout=True,
                    stop_event=self.over,
                    raise_interrupt=False,
                    recursive=False,
                ):
                    with contextlib.suppress(OSError):
                        self.wake.send(b"!")
                    if not all(folder.is_dir() for folder in there):
                        break
            self.over.wait(LOOK_EVERY)


def snapshot(lesson: Entry) -> Snapshot:
    """The lesson's file as it is now. Never raises for what is in it."""
    found = source.inspect(lesson.mine, lesson.exercises, lesson.stub)
    return Snapshot(found, {} if found.problem else codes(lesson.mine, lesson.exercises), place.saved(lesson))


def _content(one: Snapshot) -> tuple[object, ...]:
    problem = one.source.problem
    return one.source.sha256, problem and (problem.kind, problem.says)


def _stamp(path: Path) -> tuple[int, ...] | str:
    """What changes whenever a file is written, replaced, or can no longer be read."""
    try:
        status = os.stat(path)
    except OSError as error:
        return type(error).__name__
    return status.st_mtime_ns, status.st_size, status.st_ino, status.st_mode, os.access(path, os.R_OK)
