"""The processes that `grade.py bench` measures in, and who has the turn.

Solutions and other libraries run in one process; a learner's code in another, shut in as a worker is (it can do to its
figures what it likes, and to nothing else). Both hold the GPU; only one at a time has work for it, shape after shape.
Reads rows and believes nothing else. Must never import torch.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from drills import catalog
from drills.errors import GraderFailed, NothingGraded
from drills.sandbox import environment, isolation, private

Tree = dict[str, Any]
GRADED = "mine"
"""Whose code is shut in; all else is the repository's own, or installed."""


class Measuring:
    """One process. Use it as `with Measuring(request) as one`. Its code's output comes to this terminal."""

    def __init__(self, request: Tree, variables: Mapping[str, str] | None = None) -> None:
        reading, writing = os.pipe()
        command = [sys.executable, "-m", "drills.bench.child"]
        self.child = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            pass_fds=(writing,),
            cwd=catalog.ROOT,
            env=variables,
            text=True,
            start_new_session=True,
        )
        os.close(writing)
        self.lines = open(reading, encoding="utf-8")  # noqa: SIM115  closed on exit
        self.ended = False
        self._say(json.dumps({**request, "pipe": writing}))

    def __enter__(self) -> Measuring:
        return self

    def __exit__(self, *_: object) -> None:
        self.child.kill()
        self.child.wait()
        with contextlib.suppress(OSError):
            self.child.stdin.close()
        self.lines.close()

    def machine(self) -> Tree:
        """What it says first. NothingGraded where there is no GPU."""
        tree = self._hear()
        if "error" in tree:
            raise NothingGraded(f"bench: {tree['error']}")
        return tree["machine"]

    def turn(self) -> Iterator[Tree]:
        """Rows of the next shape; afterwards `ended` says whether it was past the last."""
        self._say("")
        while True:
            tree = self._hear()
            if "row" in tree:
                yield tree["row"]
                continue
            self.ended = "end" in tree
            return

    def _say(self, line: str) -> None:
        with contextlib.suppress(OSError):  # a process that is gone is noticed by what it does not say
            self.child.stdin.write(f"{line}\n")
            self.child.stdin.flush()

    def _hear(self) -> Tree:
        text = self.lines.readline()
        if not text:
            raise GraderFailed("the process that was measured ended early; its own output is above")
        return json.loads(text)


def answers(request: Tree) -> Iterator[tuple[str, Tree]]:
    """("machine", tree), then ("row", tree): for each shape those of the first process, then the learner's."""
    mine = {stem: _only(targets, GRADED) for stem, targets in request["lessons"].items()}
    rest = {stem: {who: one for who, one in all_.items() if who != GRADED} for stem, all_ in request["lessons"].items()}
    with contextlib.ExitStack() as opened:
        running = [opened.enter_context(Measuring({**request, "lessons": rest}))]
        machine = running[0].machine()
        yield "machine", machine
        if any(mine.values()):
            asked = {**request, "lessons": mine, "peers": [], "machine": machine}
            running.append(opened.enter_context(_shut_in(asked)))
        while running:
            for one in list(running):
                for row in one.turn():
                    yield "row", row
                if one.ended:
                    running.remove(one)


@contextlib.contextmanager
def _shut_in(request: Tree) -> Iterator[Measuring]:
    folder = private.make()
    try:
        level = isolation.best_for_learner().name
        with Measuring({**request, "isolation": level, "private": folder}, environment.kept(os.environ)) as one:
            one.machine()
            yield one
    finally:
        private.remove(folder)


def _only(targets: Tree, who: str) -> Tree:
    return {who: targets[who]} if who in targets else {}
