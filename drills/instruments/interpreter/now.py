"""What the launch that runs goes by, where no graded code finds it: Triton's modules lead to the builder, not to this.

A thread of the graded file that could set what is here while a kernel runs would choose what the instruments see.
"""

from __future__ import annotations

from dataclasses import dataclass

from drills.instruments.watch import Watch


@dataclass(slots=True)
class Now:
    """watch: of the launch that runs, or None. masked_fill: see `CallOptions`.

    turn: 0 or 1, which masked-off lanes read NaN and which a large number. present: a tensor's truth now means that it
    was given.
    """

    watch: Watch | None = None
    masked_fill: str = "poison"
    turn: int = 0
    present: bool = False


NOW = Now()
