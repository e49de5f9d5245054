"""One measured row, as plain data: what the child measures, the parent prints, JSON keeps and the plot draws.

Imports nothing heavy: the parent must not import torch for it.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass
class Row:
    """One function on one shape.

    who: "solution", "mine", "fast", or a peer's name. error: why there is no time ("" if there is one).
    graph, graph_low, graph_high: microseconds of device time by graph replay: median, 10th and 90th percentile.
    eager: microseconds as a program calls it, launches from the host included.
    bytes: the least that must be moved; operations: multiply-adds counted twice, 0 where bytes are all there is.
    floor: microseconds that these take at the measured copy bandwidth or matrix rate, whichever is more.
    """

    lesson: str
    exercise: str
    case: str
    dtype: str
    who: str
    graph: float = 0.0
    graph_low: float = 0.0
    graph_high: float = 0.0
    eager: float = 0.0
    bytes: int = 0
    operations: int = 0
    floor: float = 0.0
    error: str = ""

    @property
    def rate(self) -> float:
        """Terabytes a second: the least bytes over the device time."""
        return self.bytes / self.graph / 1e6 if self.graph else 0.0

    @property
    def share(self) -> float:
        """The floor over the device time: 1 is a kernel that runs as fast as a copy of the same bytes."""
        return self.floor / self.graph if self.graph else 0.0

    def to_json(self) -> dict:
        """A JSON-able tree, with the derived figures."""
        return {**asdict(self), "rate": round(self.rate, 4), "share": round(self.share, 4)}


@dataclass
class Machine:
    """Where the rows were measured: the card, versions, and the rates that every floor is made of."""

    device: str
    versions: dict[str, str]
    copy_rate: float
    matrix_rate: float
    launch: float

    def to_json(self) -> dict:
        """A JSON-able tree."""
        return asdict(self)
