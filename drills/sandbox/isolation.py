"""How far graded code is shut in: the levels, which of them hold on this machine, and which one is best.

A level says how a zygote is started and how a worker is confined. Must never run graded code, must never say that a
level holds which does not, and imports neither torch nor anything else that is heavy.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

LEVELS = ("bwrap", "landlock", "process")
"""From the strictest to the weakest."""

STRONG = ("bwrap", "landlock")
"""Levels that hide files and the network: what submissions by strangers need."""


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

    def command(self, arguments: list[str]) -> list[str] | None:
        """The command that starts a zygote by exec with these arguments, or None where a fork of the parent will do."""
        return None

    def confine(self, kind: str, config: dict[str, Any]) -> None:
        """Called in a forked process of this kind before it loads graded code; own group and rlimits are set."""


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
    return Probed(name, False, "not built yet", "")


def probe() -> tuple[Probed, ...]:
    """Every level, the strictest first."""
    return tuple(probe_one(name) for name in LEVELS)


def best() -> Isolation:
    """The strictest level that holds here: for submissions by strangers."""
    return _first(LEVELS)


def best_for_learner() -> Isolation:
    """The strictest level that holds here and costs a learner no waiting: Landlock, or plain process limits."""
    return _first(LEVELS[1:])


def _first(names: tuple[str, ...]) -> Isolation:
    return Isolation(next(name for name in names if probe_one(name).holds))


PROCESS = Isolation("process")
