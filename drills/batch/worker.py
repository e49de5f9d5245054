"""One worker of a batch: a process that grades one submission after another, with one nursery for all of them.

Started as `python -m drills.batch.worker FD[,FD…] PARENT`. Talks JSON, one object a line, over the socket FD: first it
is told the settings and starts its nursery, then it is told the seed, so that no graded code descends from a process
that knew it. Answers every task with what came out, or ends; beats while it works. Must never import a graded file.

Of several, the first imports what all of them need while its nursery gets ready, and forks one for each further FD
before it is told anything but the settings. They are as if they had been started by PARENT: its children, with nothing
of the first's that is open.
"""

from __future__ import annotations

import contextlib
import errno
import gc
import importlib
import json
import os
import shutil
import signal
import socket
import sys
import tempfile
import time
import traceback
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from drills import session
from drills.batch import public, tally
from drills.batch.place import Place
from drills.batch.settings import PUBLIC_SEED, Settings
from drills.report import json_file
from drills.report.model import Grade
from drills.report.submission import Submission
from drills.request import Progress, Request
from drills.sandbox import limits
from drills.sandbox.isolation import Isolation
from drills.sandbox.nursery import Nursery

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)
"""What a full disk says."""

ADOPTION_SECONDS = 10.0

FEW_COLLECTIONS = (10_000, 20, 20)
"""Garbage is looked for seldom: with torch and pytest loaded that takes as long as a test's own work."""

NOT_EXPLAINED = -1.0
"""Seconds for finding causes in the hidden run: its messages are not shown."""


@dataclass(frozen=True)
class Batch:
    """What all tasks have in common. seed: the secret one. made_with: goes into every result."""

    settings: Settings
    place: Place
    seed: int
    made_with: dict[str, str]


class Grader:
    """Grades submissions in one process. desk: the private folder in which the graded file lies while it is graded."""

    def __init__(self, settings: Settings, desk: Path, beat: Any) -> None:
        session.prepare()
        self.settings = settings
        self.beat = beat
        self.isolation = Isolation.named(settings.isolation)
        self.nursery = Nursery(self.isolation)
        if settings.device != "cuda":
            self.nursery.branch("cpu")
        self.nursery.branch("compile")
        self.desk = Path(tempfile.mkdtemp(dir=desk))

    def open(self) -> list[Any]:
        """What of the nursery a forked process must close."""
        return [one.control for one in (self.nursery, *self.nursery.branches.values())]

    def close(self) -> None:
        """Ends the nursery and all its processes."""
        self.nursery.close()
        shutil.rmtree(self.desk, ignore_errors=True)

    def grade(self, batch: Batch, identity: str) -> Submission:
        """The result of one frozen submission; what was seen on hidden inputs is kept in OUT/secret."""
        about = batch.place.taken(identity)
        if about is None:
            raise OSError(f"the copy of {identity} is gone")
        one = Submission(
            identity,
            about["name"],
            about["files"],
            tuple(about["refused"]),
            about["problem"],
            made_with=batch.made_with,
        )
        if one.problem:
            return one
        folder = self.desk / "graded"
        try:
            shutil.copytree(batch.place.frozen / identity, folder, ignore=shutil.ignore_patterns("taken.json"))
            hidden = self._run(folder, self.settings.selections, batch.seed, explaining=NOT_EXPLAINED)
            explained = self._explain(folder, hidden)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            shutil.rmtree(self.desk / "gate", ignore_errors=True)
        hidden.seed = None
        batch.place.write_hidden(identity, json_file.as_tree(hidden))
        grade = public.view(hidden, explained, about["name"])
        problem = grade.grader_error or _altered(about, hidden)
        return replace(one, problem=problem) if problem else replace(one, grade=grade)

    def _explain(self, folder: Path, hidden: Grade) -> Grade | None:
        """The same again on public inputs, of what failed; None where nothing did."""
        selections = []
        for selection, lesson in zip(self.settings.selections, hidden.lessons, strict=True):
            names = public.unexplained(lesson)
            if names:
                selections.append(replace(selection, exercises=names))
        return self._run(folder, tuple(selections), PUBLIC_SEED) if selections else None

    def _run(self, folder: Path, selections: tuple, seed: int, **how: Any) -> Grade:
        request = Request(
            selections=selections,
            target=folder,
            level=self.settings.level,
            device=self.settings.device,
            timeout=self.settings.timeout,
            seed=seed,
            name="submission/",
            isolation=self.isolation,
            progress=self.beat,
            gate_cache=self.desk / "gate",
            gate_lanes=1,  # the other workers have the other cores
            gate_figures=False,
            gate_refusals=False,  # what the hidden run was told is not for the public one
            **how,
        )
        return session.grade(request, self.nursery)


def _altered(about: dict[str, Any], grade: Grade) -> str:
    """A file that is no longer what was frozen is not graded: something reached into this worker's folder."""
    for lesson in grade.lessons:
        if lesson.sha256 and lesson.sha256 != about["files"].get(f"{lesson.stem}.py"):
            return "the file was changed while it was graded"
    return ""


class Line:
    """The worker's end of the socket."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.file = sock.makefile("r", encoding="utf-8")
        self.beaten = 0.0

    def close(self) -> None:
        """In a process that was forked: another one's."""
        self.file.close()
        self.sock.close()

    def hear(self) -> dict[str, Any] | None:
        """The next object; None when the batch has hung up."""
        text = self.file.readline()
        return json.loads(text) if text else None

    def say(self, **what: Any) -> None:
        """Send one object."""
        self.sock.sendall(json.dumps(what).encode() + b"\n")

    def beat(self, _: Progress | None = None) -> None:
        """Say that the work goes on; at most once a second."""
        now = time.monotonic()
        if now - self.beaten > 1.0:
            self.beaten = now
            self.say(beat=True)


def work(line: Line, others: list[int] | None = None, parent: int = 0) -> None:
    """Serve until the batch hangs up. others: descriptors of workers to be forked from this one; parent: theirs."""
    told = line.hear()
    if told is None:
        return
    settings, place = Settings.from_json(told["settings"]), Place(Path(told["out"]))
    grader = Grader(settings, place.desks, line.beat)
    try:
        if others:
            load()
            gc.freeze()
            while others:
                number = others.pop()
                fork(number, parent, [line, *grader.open()], others)
        line.say(ready=True)
        told = line.hear()
        if told is None:
            return
        batch = Batch(settings, place, int(told["seed"]), told["made_with"])
        gc.set_threshold(*FEW_COLLECTIONS)
        while (task := line.hear()) is not None:
            line.say(**answer(grader, batch, task["grade"]))
            if not gc.get_freeze_count():
                gc.freeze()  # what the first one loaded stays
    finally:
        grader.close()


def load() -> None:
    """Import what every worker needs."""
    for name in ("torch", "pytest", "drills.run", "drills.assemble", "drills.graded_tests"):
        importlib.import_module(name)


def fork(number: int, parent: int, closing: list[Any], others: list[int]) -> None:
    """Start a worker that serves on this descriptor, as a child of `parent`, without what else is open here.

    The one between them ends at once, so that `parent`, which adopts orphans, becomes its parent.
    """
    between = os.fork()
    if between:
        os.waitpid(between, 0)
        os.close(number)
        return
    if os.fork():
        os._exit(0)
    status = 1
    try:
        for one in closing:
            one.close()
        for one in others:
            os.close(one)
        os.setsid()
        deadline = time.monotonic() + ADOPTION_SECONDS
        while os.getppid() != parent and time.monotonic() < deadline:
            time.sleep(0.001)
        serve(number, parent)
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def serve(number: int, parent: int, others: list[int] | None = None) -> None:
    """Be the worker on this descriptor."""
    limits.die_with_parent(parent)
    with socket.socket(fileno=number) as sock, contextlib.suppress(BrokenPipeError, ConnectionResetError):
        line = Line(sock)
        if others is None:
            line.say(pid=os.getpid())
        work(line, others, parent)


def answer(grader: Grader, batch: Batch, identity: str) -> dict[str, Any]:
    """Grades one submission and keeps the result. "unwritable" in place of a summary if it cannot be kept."""
    try:
        one = grader.grade(batch, identity)
    except OSError as error:
        if error.errno in FULL:
            return {"unwritable": error.strerror}
        one = failed(batch, identity)
    except Exception:
        one = failed(batch, identity)
    try:
        batch.place.write(one)
    except OSError as error:
        return {"unwritable": error.strerror or str(error)}
    return {"done": tally.summary(one), "memory": limits.resident(os.getpid())}


def failed(batch: Batch, identity: str) -> Submission:
    """The result of a submission on which the grader broke; why goes to the log."""
    print(f"{identity}:", file=sys.stderr)
    traceback.print_exc()
    about = batch.place.taken(identity) or {"name": identity, "files": {}, "refused": []}
    refused = tuple(about["refused"])
    return Submission(identity, about["name"], about["files"], refused, public.GRADER, made_with=batch.made_with)


def main() -> None:
    """Runs a worker. The batch's end ends it too; its nursery sees that and buries what there is."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    number, *others = map(int, sys.argv[1].split(","))
    serve(number, int(sys.argv[2]), others)


if __name__ == "__main__":
    main()
