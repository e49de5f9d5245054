"""Times functions on a CUDA device: events around each run, L2 flushed before it, graph replay for device time.

Runs in the process that holds the graded code. Must never be imported where CUDA must not be initialized.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

WARM_SECONDS = 0.03
"""How long a function runs before it is timed: a GPU that has been idle starts with low clocks."""

FLUSH_BYTES = 256 << 20
"""Several times any L2 there is: what a run finds in cache then is not its own input."""


@dataclass(frozen=True)
class Times:
    """Microseconds of one function: median, 10th and 90th percentile over `runs` runs."""

    median: float
    low: float
    high: float
    runs: int


class Clock:
    """Times on one device. Holds the buffer that flushes L2; make one and use it for everything that is compared."""

    def __init__(self, device: torch.device, runs: int = 40) -> None:
        self.device = device
        self.runs = runs
        self._other = torch.zeros(FLUSH_BYTES // 4, dtype=torch.float32, device=device)
        self._sum = torch.zeros((), dtype=torch.float32, device=device)
        self._pool = torch.cuda.graph_pool_handle()

    def flush(self) -> None:
        """Replaces what L2 holds, by reading: written lines would have to be written back while the run is timed."""
        torch.sum(self._other, dim=0, out=self._sum)

    def settle(self) -> None:
        """Waits for everything that was launched: an error in it is raised here."""
        torch.cuda.synchronize(self.device)

    def eager(self, calls: Sequence[Callable[[], object]]) -> Times:
        """Times of a call as a program makes it, host included. `calls`: one an input set, rotated."""
        for call in calls:
            call()
        return self._measure(calls)

    def graph(self, calls: Sequence[Callable[[], object]]) -> Times:
        """Device times: each call is captured in a CUDA graph once, and its replays are timed."""
        return self._measure([capture(call, self._pool).replay for call in calls])

    def by_turns(self, functions: Sequence[Sequence[Callable[[], object]]], rounds: int) -> list[Times]:
        """Device times of several functions, each once a round: what drifts during the run drifts for all alike.

        In another order every round: what runs last, or after a certain other one, is up to 0.8 µs faster.
        """
        return self._rounds([[capture(call, self._pool).replay for call in calls] for calls in functions], rounds)

    def _measure(self, calls: Sequence[Callable[[], object]]) -> Times:
        return self._rounds([calls], self.runs)[0]

    def _rounds(self, functions: Sequence[Sequence[Callable[[], object]]], rounds: int) -> list[Times]:
        self.settle()
        began = time.perf_counter()
        while time.perf_counter() - began < WARM_SECONDS:
            for calls in functions:
                self.flush()
                calls[0]()
            self.settle()
        pairs: list[list[tuple[torch.cuda.Event, torch.cuda.Event]]] = [[] for _ in functions]
        order = list(zip(functions, pairs, strict=True))
        shuffle = random.Random(0).shuffle
        for run in range(rounds):
            shuffle(order)
            for calls, taken in order:
                self.flush()
                start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                start.record()
                calls[run % len(calls)]()
                end.record()
                taken.append((start, end))
        self.settle()
        return [_summary([1000 * start.elapsed_time(end) for start, end in taken]) for taken in pairs]

    def copy_rate(self, size: int = 2 << 30) -> float:
        """Bytes per second that a device-to-device copy of `size` bytes moves, read and written both counted."""
        source = torch.empty(size, dtype=torch.int8, device=self.device).random_(-128, 127)
        target = torch.empty_like(source)
        return 2 * size / (1e-6 * self.eager([lambda: target.copy_(source)]).median)

    def matrix_rate(self, size: int = 8192) -> float:
        """Operations per second of a bfloat16 matrix product of `size` through torch, on random values."""
        a, b = (torch.randn(size, size, device=self.device, dtype=torch.bfloat16) for _ in range(2))
        return 2 * size**3 / (1e-6 * self.eager([lambda: a @ b]).median)

    def launch_floor(self) -> float:
        """Microseconds of replaying a graph of one kernel with nothing to do: the least that is ever measured."""
        one = torch.zeros(1, device=self.device)
        return self.graph([lambda: one.add_(1)]).median


def capture(call: Callable[[], object], pool: object) -> torch.cuda.CUDAGraph:
    """A graph of one call, warmed up on a stream of its own first: an error shows there, where it harms no capture.

    pool: the memory that all graphs share, so that no function owes its time to where its results happen to lie.
    """
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(2):
            call()
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, pool=pool):
        call()
    return graph


def _summary(times: list[float]) -> Times:
    times = sorted(times)
    last = len(times) - 1
    return Times(times[len(times) // 2], times[round(0.1 * last)], times[round(0.9 * last)], len(times))
