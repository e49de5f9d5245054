"""Counts of a batch while it runs: how many are done, how they came out, which mistakes are common, how fast it goes.

Numbers only, a few of them however many submissions there are.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from drills.batch.public import GRADER
from drills.report import standing
from drills.report.causes import causes
from drills.report.submission import Submission


@dataclass
class Tally:
    """total: submissions in all. graded: in this run. errors: where the grader itself failed."""

    total: int
    clock: Callable[[], float] = time.monotonic
    graded: int = 0
    errors: int = 0
    standings: Counter = field(default_factory=Counter)
    causes: Counter = field(default_factory=Counter)
    begun: float = 0.0

    def __post_init__(self) -> None:
        self.begun = self.clock()

    @property
    def done(self) -> int:
        """How many have a result."""
        return sum(self.standings.values())

    def count(self, one: dict[str, Any], old: bool = False) -> None:
        """Takes in the summary of a submission. old: its result was there already."""
        self.graded += not old
        self.errors += one["error"]
        self.standings[one["standing"]] += 1
        self.causes.update(one["causes"])

    @property
    def per_minute(self) -> float:
        """Submissions graded a minute, so far; 0 before the first."""
        return 60.0 * self.graded / max(1e-9, self.clock() - self.begun)

    @property
    def seconds_left(self) -> float | None:
        """At this pace; None before there is one."""
        return 60.0 * (self.total - self.done) / self.per_minute if self.graded else None


def summary(one: Submission) -> dict[str, Any]:
    """The few words of a result that a tally takes in, as JSON has them."""
    found = causes(one.grade) if one.grade else ()
    return {
        "id": one.id,
        "standing": standing.standing(one),
        "error": one.problem == GRADER,
        "causes": sorted({cause.says for cause in found if cause.explained}),
    }
