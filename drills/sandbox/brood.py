"""What the zygote forked: how much each child and its family hold, where it is, and how they are ended.

Signals only processes below the zygote. Must never block.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import signal
import time
from dataclasses import dataclass

from drills.sandbox import limits, private

SWEEP_SECONDS = 5.0
ASKING_SECONDS = 0.5
"""From one look at what processes hold open to the next: it takes milliseconds, and nothing fills a disk meanwhile."""

QUESTION = signal.SIGUSR1


@dataclass
class Child:
    """A forked process. id: the parent's name for it. reason: why the zygote killed it, "" if it did not.

    folder: the only one that it may write to, "" if there is none. bounded: that holds only so much anyway.
    asked: when it was last asked what it holds of files that are in no folder.
    """

    id: int
    caps: limits.Caps
    folder: str = ""
    reason: str = ""
    bounded: bool = False
    asked: float = 0.0

    def clear(self) -> None:
        """Remove its folder."""
        if self.folder:
            private.remove(self.folder)


def overdrawn(pid: int, child: Child, own: int, orphans: list[int]) -> str:
    """Which of its caps a child and its family exceed, "" for none. own: resident bytes that all share.

    orphans: processes that have left the family, by the end of those between. Nobody knows whose they are: they count.
    """
    caps = child.caps
    if caps == limits.UNCAPPED:
        return ""
    family = [*limits.family(pid), *orphans]
    if len(family) > caps.processes or sum(map(limits.threads, family)) > caps.threads:
        return "processes"
    if sum(max(0, limits.resident(one) - own) for one in family) > caps.memory:
        return "memory"
    if child.folder and private.size(child.folder, caps.written) >= caps.written:
        return "disk"
    if child.folder and not child.bounded and time.monotonic() - child.asked > ASKING_SECONDS:
        child.asked = time.monotonic()
        if private.unlisted(child.folder, family, caps.written) >= caps.written:
            return "disk"
    return ""


def orphans(running: dict[int, Child]) -> list[int]:
    """Children of this process that are not among `running`, and their families: what these have started and left."""
    strays = [pid for pid in limits.children(os.getpid()) if pid not in running]
    return [one for stray in strays for one in limits.family(stray)]


def kill_family(pid: int) -> None:
    """The process, its group, and all its descendants."""
    for one in limits.family(pid):
        kill(one)


def kill(pid: int) -> None:
    """The process and, if it leads one, its group."""
    for way in (os.killpg, os.kill):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            way(pid, signal.SIGKILL)


def ask(pid: int) -> None:
    """Have the process say where it is."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, QUESTION)


def listen() -> None:
    """In a forked process: answer QUESTION on stderr with the lines that are running, innermost first, and go on."""
    faulthandler.register(QUESTION, file=2, all_threads=False)


def sweep(running: dict[int, Child]) -> None:
    """Kill every child of this process that is not among `running`, and its family: what an ended worker left."""
    deadline = time.monotonic() + SWEEP_SECONDS
    while time.monotonic() < deadline:
        strays = [pid for pid in limits.children(os.getpid()) if pid not in running]
        if not strays:
            return
        for stray in strays:
            kill_family(stray)
        for stray in strays:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(stray, os.WNOHANG)
        time.sleep(0.001)
