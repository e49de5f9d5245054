"""How many programs a call ran, from the launches that were noted. Never looks at values."""

from __future__ import annotations

import math
from collections.abc import Sequence

from drills.instruments.notes import Launch
from drills.judge import words
from drills.lessons.base import Args, Exercise
from drills.report.model import Failure


def too_few_programs(
    exercise: Exercise, args: Args, launches: Sequence[Launch], least: int, level: str
) -> Failure | None:
    """None if one launch of the call ran at least so many programs at once, or nobody noted launches."""
    most = max((math.prod(launch.grid) for launch in launches if launch.grid), default=least)
    if most >= least:
        return None
    return Failure(
        kind="too_few_programs",
        level=level,
        called=words.called(exercise, args),
        got=f"{most} program{'s' * (most != 1)} at once",
        expected=f"at least {least}",
        likely="What a program does in a loop waits for what it did before. A larger grid lets the GPU do it at once.",
    )
