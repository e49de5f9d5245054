"""What a grading is asked to do. Plain data: must never import torch."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from drills.catalog import ROOT, Selection
from drills.sandbox.isolation import Isolation, best_for_learner

GATE_CACHE = ROOT / ".drills" / "gate"
"""Where the answers to a learner's own files are kept."""


@dataclass(frozen=True)
class Progress:
    """What runs now: `done` of `total` tests are over."""

    lesson: str
    exercise: str
    title: str
    done: int
    total: int


@dataclass(frozen=True)
class Request:
    """What to grade and how.

    selections: lessons and exercises, from catalog.select. target: the folder that holds the graded files.
    level: grade this level only. device: "auto", "cpu" or "cuda". timeout: seconds for one call.
    seed: repeats a run's inputs; drawn if None; a function is called once the zygote has been forked.
    every_twin: make every call again with other values, not some by lot (see twins): repeats what any run met.
    debug: run graded code in this process. name: the target as shown, made from `target` if "".
    progress: told before each test. gate: False leaves the compile level out.
    stop_early: the first failing test is the last that is run.
    explaining: seconds for finding the causes of one exercise's failures; below 0, none is looked for.
    gate_cache: where the compile gate keeps its answers: for strangers' files, one folder each.
    gate_lanes: processes that it may compile in at a time; one alone waits until an exercise's launches are all known.
    gate_figures: whether it measures kernels also in lessons that give no advice on them.
    gate_refusals: whether it keeps, too, why something does not compile: graded code has a hand in that text.
    """

    selections: tuple[Selection, ...]
    target: Path
    level: str | None = None
    device: str = "auto"
    timeout: float = 10.0
    seed: int | Callable[[], int] | None = None
    every_twin: bool = False
    debug: bool = False
    name: str = ""
    isolation: Isolation = field(default_factory=best_for_learner)
    progress: Callable[[Progress], None] | None = None
    gate: bool = True
    explaining: float = 4.0
    stop_early: bool = False
    gate_cache: Path = GATE_CACHE
    gate_lanes: int = 3
    gate_figures: bool = True
    gate_refusals: bool = True

    @property
    def shown(self) -> str:
        """The target as shown: "mine/", or a path with a slash at its end."""
        path = self.target
        with contextlib.suppress(ValueError):
            path = path.resolve().relative_to(ROOT)
        return self.name or f"{path}/"
