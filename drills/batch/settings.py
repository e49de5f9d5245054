"""What a batch grades and how, as plain data that travels to its workers, and the fingerprint of everything that a
verdict depends on besides the submission: two results with one fingerprint can stand in one gradebook.

Must never import torch or triton.
"""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from drills.catalog import ROOT, Entry, Selection

PUBLIC_SEED = 1
"""Messages come from inputs drawn from this seed: `python grade.py l4 --seed 1` shows a student the same."""

NO_VERDICT = ("author", "batch", "bench", "report", "study")
"""Folders of drills/ on which no verdict depends."""


@dataclass(frozen=True)
class Settings:
    """lessons: stem → the exercises graded. level: the one that is graded, None for all. timeout: seconds for one call.

    wall: seconds for one submission in all. root: the repository.
    """

    lessons: dict[str, tuple[str, ...]]
    isolation: str
    level: str | None = None
    timeout: float = 10.0
    wall: float = 0.0
    device: str = "cpu"
    root: str = str(ROOT)

    @property
    def selections(self) -> tuple[Selection, ...]:
        """As the engine takes them."""
        return tuple(Selection(Entry(stem, Path(self.root)), names) for stem, names in self.lessons.items())

    @property
    def files(self) -> tuple[str, ...]:
        """The names of the files that are graded."""
        return tuple(f"{stem}.py" for stem in self.lessons)

    @property
    def seconds(self) -> float:
        """What one submission may take in all; if `wall` is 0, what two time-outs an exercise come to, twice."""
        return self.wall or 60.0 + 4 * self.timeout * sum(map(len, self.lessons.values()))

    def to_json(self) -> dict[str, Any]:
        """A JSON-able dict; `from_json` gives the same again."""
        return asdict(self)

    @classmethod
    def from_json(cls, tree: dict[str, Any]) -> Settings:
        """What `to_json` wrote."""
        return cls(**{**tree, "lessons": {stem: tuple(names) for stem, names in tree["lessons"].items()}})


def versions() -> dict[str, str]:
    """The versions that a verdict depends on."""
    found = {"python": ".".join(platform.python_version_tuple()[:2])}
    for package in ("torch", "triton", "numpy"):
        try:
            found[package] = metadata.version(package).partition("+")[0]
        except metadata.PackageNotFoundError:
            found[package] = "not installed"
    return found


def code(settings: Settings) -> str:
    """SHA-256 of the tests, the lessons, the stubs and the machinery that decide."""
    digest = hashlib.sha256()
    for name, data in _deciding(settings):
        digest.update(f"{name}\0{len(data)}\0".encode())
        digest.update(data)
    return digest.hexdigest()


def fingerprint(settings: Settings, seed_sha256: str) -> str:
    """SHA-256 of all that two results must have in common."""
    what = {"settings": {**settings.to_json(), "root": ""}, "versions": versions(), "code": code(settings)}
    return hashlib.sha256(json.dumps([what, seed_sha256], sort_keys=True).encode()).hexdigest()


def _deciding(settings: Settings) -> Iterator[tuple[str, bytes]]:
    drills = Path(__file__).resolve().parents[1]
    for path in sorted(drills.rglob("*.py")):
        inside = path.relative_to(drills)
        if inside.parts[0] not in NO_VERDICT:
            yield str(inside), path.read_bytes()
    for selection in settings.selections:
        entry = selection.lesson
        yield entry.tests.name, entry.tests.read_bytes()
        yield entry.facts.name, entry.facts.read_bytes()
        yield f"stub of {entry.stem}", entry.stub.encode()
