"""How far graded code is shut in. This is the seam: a level says how a zygote is started and how a worker is confined.

Must never run graded code, and must never say that a level holds which it has not set up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Isolation:
    """One level. name: as printed and stored with every result."""

    name: str = "process"

    @classmethod
    def named(cls, name: str) -> Isolation:
        """The level called `name`; ValueError if there is none."""
        if name != "process":
            raise ValueError(f"no isolation level is called {name}")
        return cls(name)

    def command(self, arguments: list[str]) -> list[str] | None:
        """The command that starts a zygote by exec with these arguments, or None where a fork of the parent will do."""
        return None

    def confine(self, kind: str, config: dict[str, Any]) -> None:
        """Called in a forked process of this kind before it loads graded code; own group and rlimits are set."""


PROCESS = Isolation()
