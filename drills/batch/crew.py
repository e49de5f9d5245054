"""The workers of a batch: starts them, hands out submissions, and goes on whatever becomes of one of them.

A worker that ends, or falls silent, is replaced; its submission is tried once more. A submission that takes longer
than it may is given up. Runs in the batch's own process, which imports neither torch nor graded files, and leaves no
process behind.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from drills.batch import tally
from drills.batch.member import CLOSE_SECONDS, Member
from drills.batch.place import Place
from drills.batch.public import GRADER
from drills.batch.settings import Settings
from drills.errors import GraderFailed
from drills.report.submission import Submission
from drills.sandbox import limits

WORKER = (sys.executable, "-m", "drills.batch.worker")
ATTEMPTS = 2
TURN_SECONDS = 0.2
START_SECONDS = 180.0
SILENCE_SECONDS = 120.0
"""Without a beat, beside what calls may take: then a worker is stuck. A beat comes with each test."""

BURIAL_SECONDS = 15.0
MOST_FALSE_STARTS = 3
LONGEST_LINE = 1 << 20
RENEWED_AFTER = 250
"""Submissions after which a worker is replaced by a fresh one: whatever piles up in a process goes with it."""


@dataclass
class Crew:
    """Use it as `with Crew(…) as crew: crew.begin(seed, …); for done in crew.grade(identities): …`.

    command: starts a worker; a descriptor and the number of this process are added to it.
    """

    settings: Settings
    place: Place
    jobs: int
    command: tuple[str, ...] = WORKER
    members: list[Member] = field(default_factory=list)
    waiting: deque[tuple[str, int]] = field(default_factory=deque)
    seed: int | None = None
    made_with: dict[str, str] = field(default_factory=dict)
    false_starts: int = 0
    memory: int = 0
    before: frozenset[int] = frozenset()
    silence: float = SILENCE_SECONDS
    burial: float = BURIAL_SECONDS

    def __enter__(self) -> Crew:
        limits.adopt_orphans()
        self.before = frozenset(limits.children(os.getpid()))
        try:
            self._hire(self.jobs if self.command == WORKER else 1)
            while len(self.members) < self.jobs:
                self._hire()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """End all workers and wait until everything that descends from them is gone."""
        for one in self.members:
            one.hang_up()
        for one in self.members:
            one.wait()
        self.members.clear()
        self._bury()
        self.place.clear_desks()

    def begin(self, seed: int, made_with: dict[str, str]) -> None:
        """Tell the seed, now that the submissions are frozen."""
        self.seed, self.made_with = seed, made_with
        for one in self.members:
            if one.state == "idle":
                one.say(seed=str(seed), made_with=made_with)

    def grade(self, identities: Iterator[str], told: Callable[[], None]) -> Iterator[dict[str, Any]]:
        """Grades these submissions and yields a summary (see `tally.summary`) of each as it is done.

        told: called a few times a second. GraderFailed if results cannot be kept, or if no worker starts.
        """
        coming = iter(identities)
        while True:
            self._hand_out(coming)
            if not self._busy() and not self.waiting:
                return
            yield from self._turn()
            told()

    def _busy(self) -> bool:
        return any(one.state == "busy" for one in self.members)

    def _hand_out(self, coming: Iterator[str]) -> None:
        for one in self.members:
            if one.state != "idle":
                continue
            if not self.waiting and (identity := next(coming, None)) is not None:
                self.waiting.append((identity, 1))
            if self.waiting:
                one.task = self.waiting.popleft()
                one.state, one.since, one.heard = "busy", time.monotonic(), time.monotonic()
                one.say(grade=one.task[0])
        if not self.waiting and not self._busy() and (identity := next(coming, None)) is not None:
            self.waiting.append((identity, 1))  # nobody is ready yet, and this is not the end

    def _turn(self) -> Iterator[dict[str, Any]]:
        ready, _, _ = select.select([one.sock for one in self.members], [], [], TURN_SECONDS)
        for one in [one for one in self.members if one.sock in ready]:
            yield from self._hear(one)
        now = time.monotonic()
        for one in list(self.members):
            if one.state == "starting" and now - one.since > START_SECONDS:
                self._lose(one, "it did not start")
            elif one.state == "busy" and now - one.since > self.settings.seconds:
                yield self._give_up(one, f"not graded: it took longer than {self.settings.seconds:g} s in all")
            elif one.state == "busy" and now - one.heard > self.silence + 6 * self.settings.timeout:
                yield from self._again(one, "it fell silent")

    def _hear(self, one: Member) -> Iterator[dict[str, Any]]:
        try:
            piece = one.sock.recv(1 << 16)
        except OSError:
            piece = b""
        *lines, one.rest = (one.rest + piece).split(b"\n")
        for line in lines:
            try:
                what = json.loads(line)
            except ValueError:
                piece = b""
                break
            yield from self._take(one, what)
        if one in self.members and (not piece or len(one.rest) > LONGEST_LINE):
            yield from self._again(one, "it ended")

    def _take(self, one: Member, what: dict[str, Any]) -> Iterator[dict[str, Any]]:
        one.heard = time.monotonic()
        if "pid" in what:
            one.process.pid = what["pid"]
        elif "ready" in what:
            one.state, self.false_starts = "idle", 0
            if self.seed is not None:
                one.say(seed=str(self.seed), made_with=self.made_with)
        elif "unwritable" in what:
            raise GraderFailed(
                f"results cannot be written to {self.place.root}: {what['unwritable']}. "
                "Make room and give the same command again: it goes on where it stopped"
            )
        elif "done" in what:
            identity, attempt = one.task
            self.memory = max(self.memory, what["memory"])
            one.state, one.task, one.done = "idle", None, one.done + 1
            if what["done"]["error"] and attempt < ATTEMPTS:
                self.waiting.append((identity, attempt + 1))
            else:
                yield what["done"]
            if (what["done"]["error"] or one.done >= RENEWED_AFTER) and one in self.members:
                self._replace(one)

    def _again(self, one: Member, why: str) -> Iterator[dict[str, Any]]:
        """A worker that is of no more use: its submission is tried once more."""
        if one.task is None:
            self._lose(one, why)
        elif one.task[1] < ATTEMPTS:
            self.waiting.append((one.task[0], one.task[1] + 1))
            self._replace(one)
        else:
            yield self._give_up(one, GRADER)

    def _give_up(self, one: Member, problem: str) -> dict[str, Any]:
        """Keeps a result that says why there is none, and replaces the worker."""
        identity = one.task[0]
        self._replace(one)
        about = self.place.taken(identity) or {"name": identity, "files": {}, "refused": []}
        refused = tuple(about["refused"])
        result = Submission(identity, about["name"], about["files"], refused, problem, made_with=self.made_with)
        self.place.write(result)
        return tally.summary(result)

    def _lose(self, one: Member, why: str) -> None:
        self.false_starts += one.state == "starting"
        if self.false_starts >= MOST_FALSE_STARTS:
            raise GraderFailed(f"no worker starts ({why}): {self._last_words()}")
        self._replace(one)

    def _replace(self, one: Member) -> None:
        self.members.remove(one)
        one.hang_up()
        one.wait()
        self._hire()

    def _hire(self, count: int = 1) -> None:
        """One more, or so many that start together."""
        for one in Member.start_together(self.command, self.place.logs / "workers.txt", count):
            self.members.append(one)
            one.say(settings=self.settings.to_json(), out=str(self.place.root.resolve()))

    def _last_words(self) -> str:
        with contextlib.suppress(OSError):
            lines = Path(self.place.logs / "workers.txt").read_text(errors="replace").strip().splitlines()
            return lines[-1] if lines else "it said nothing"
        return "it said nothing"

    def _bury(self) -> None:
        """Wait for what the workers left to this process: zygotes that end their own; then end what does not."""
        deadline = time.monotonic() + self.burial
        while left := [pid for pid in limits.children(os.getpid()) if pid not in self.before]:
            for pid in left:
                if time.monotonic() > deadline:
                    for one in limits.family(pid):
                        with contextlib.suppress(ProcessLookupError, PermissionError):
                            os.kill(one, 9)
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, os.WNOHANG)
            if time.monotonic() > deadline + CLOSE_SECONDS:
                return
            time.sleep(0.01)
