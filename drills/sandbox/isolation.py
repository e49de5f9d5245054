"""How far graded code is shut in: the levels, which of them hold on this machine, and which one is best.

A level says how a zygote is started and how a worker is confined. Must never run graded code, must never say that a
level holds which does not, and imports neither torch nor anything else that is heavy.
"""

from __future__ import annotations

import functools
import os
import platform
import sys
from dataclasses import dataclass
from typing import Any

from drills.errors import NoIsolation
from drills.sandbox import bubblewrap, confinement, seccomp

LEVELS = ("bwrap", "landlock", "process")
"""From the strictest to the weakest."""

STRONG = ("bwrap", "landlock")
"""Levels that hide files and the network: what submissions by strangers need."""


RUN_GRADED_CODE = ("worker", "gate")
"""Kinds of processes (zygote.KINDS) that are shut in."""


@dataclass(frozen=True)
class Isolation:
    """One level. name: as printed and stored with every result."""

    name: str = "process"

    @classmethod
    def named(cls, name: str) -> Isolation:
        """The level called `name`; ValueError if there is none."""
        if name not in LEVELS:
            raise ValueError(f"no isolation level is called {name}: there are {', '.join(LEVELS)}")
        return cls(name)

    @property
    def strong(self) -> bool:
        """Whether files and the network are hidden from graded code."""
        return self.name in STRONG

    @property
    def bounds_files(self) -> bool:
        """Whether all that can be written lies in memory set aside for it; then no process is asked what it holds."""
        return self.name == "bwrap"

    def command(self, arguments: list[str]) -> list[str] | None:
        """The command that starts a zygote by exec with these arguments, or None where a fork of the parent will do."""
        return bubblewrap.command(arguments) if self.name == "bwrap" else None

    def gives_folder(self, kind: str, config: dict[str, Any]) -> bool:
        """Whether a process of this kind gets a folder of its own to write to, as config["private"]."""
        return self.strong and confinement.compiles(kind, config)

    def prepare(self) -> None:
        """Called in a zygote, which runs no graded code, before it forks anything."""
        if self.name == "bwrap":
            confinement.untraceable()
            probe_one("landlock")

    def confine(self, kind: str, config: dict[str, Any]) -> None:
        """Called in a forked process of this kind before it loads graded code; own group and rlimits are set."""
        if kind not in RUN_GRADED_CODE:
            return
        confinement.die_first()
        if self.strong:
            if self.name == "landlock" or probe_one("landlock").holds:
                confinement.hide_files(kind, config)
            if kind == "worker":
                self.seal(kind, config)

    def seal(self, kind: str, config: dict[str, Any]) -> None:
        """The last step: no dangerous system call any more. A gate takes it in the inner one of its two processes.

        It runs graded code too: the machinery is put out of that code's reach as it is in a worker.
        """
        if kind == "gate":
            from drills.sandbox import alone, unreachable

            unreachable.close()
            alone.hide_machinery()
            alone.refuse_looks()
        if self.strong:
            confinement.refuse_calls(confinement.compiles(kind, config), listening=confinement.on_gpu(config))


@dataclass(frozen=True)
class Probed:
    """What this machine has of one level. reason: why it does not hold, "" if it does. advice: what to do about it."""

    name: str
    holds: bool
    reason: str = ""
    advice: str = ""


@functools.cache
def probe_one(name: str) -> Probed:
    """Whether this level holds here. Tried out, not guessed; once in the life of this process."""
    if name == "process":
        return Probed(name, True)
    reason, advice = landlock_missing() if name == "landlock" else bubblewrap.missing()
    return Probed(name, not reason, reason, advice)


def landlock_missing() -> tuple[str, str]:
    """Why a process cannot be shut in by Landlock and seccomp, and what to do; two empty strings if it can.

    A process of its own tries it.
    """
    if sys.platform != "linux":
        return "Landlock is a part of Linux", "use a Linux machine, a virtual machine or WSL"
    if not seccomp.known():
        return f"the grader does not know the system calls of {platform.machine()}", "use x86-64 or 64-bit ARM"
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.write(writing, confinement.tried().encode()[:1000])
        os._exit(0)
    os.close(writing)
    with open(reading, errors="replace") as said:
        reason = said.read()
    os.waitpid(pid, 0)
    return (reason, "it needs Linux 5.13 or newer, with landlock among the kernel's lsm=") if reason else ("", "")


def probe() -> tuple[Probed, ...]:
    """Every level, the strictest first."""
    return tuple(probe_one(name) for name in LEVELS)


def best() -> Isolation:
    """The strictest level that holds here: for submissions by strangers."""
    return _first(LEVELS)


def best_for_learner() -> Isolation:
    """The strictest level that holds here and costs a learner no waiting: Landlock, or plain process limits."""
    return _first(LEVELS[1:])


def chosen(name: str) -> Isolation:
    """The level called `name`, or a learner's best for "auto". NoIsolation, with what to do, if it does not hold."""
    if name == "auto":
        return best_for_learner()
    found = probe_one(name)
    if not found.holds:
        raise NoIsolation(f"isolation {name} is not to be had here: {found.reason}. What helps: {found.advice}")
    return Isolation.named(name)


def _first(names: tuple[str, ...]) -> Isolation:
    return Isolation(next(name for name in names if probe_one(name).holds))


PROCESS = Isolation("process")
