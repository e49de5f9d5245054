"""Checks and times the functions of one lesson, and its peers, on one device. Runs in the child process only.

What is timed has been compared with the float64 oracle on the same shape first; a wrong answer gets no time.
"""

from __future__ import annotations

import contextlib
import platform
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch

from drills.bench import cost
from drills.bench.peers import peers_of
from drills.bench.rows import Machine, Row
from drills.bench.timing import Clock, Times
from drills.judge.compare import compare
from drills.lessons.base import Args, BenchCase, Exercise, Lesson

ROTATED = 2
"""Input sets that a function is timed on in turn, where they take no more than MOST_BYTES together."""
MOST_BYTES = 2 << 30
COPY = "a copy"
"""Measured like a peer, where bytes are all there is: a copy that reads half of the least bytes and writes the rest."""


@dataclass(frozen=True)
class Wanted:
    """What to measure: dtypes by name, a part of the case's label, and parts of peers' names; "" is part of all."""

    dtypes: tuple[str, ...] = ("float16", "bfloat16")
    match: str = ""
    exercises: tuple[str, ...] = ()
    peers: tuple[str, ...] = ("",)


def describe(clock: Clock) -> Machine:
    """The card, the versions that matter, and its rates, measured now."""
    import triton

    versions = {"python": platform.python_version(), "torch": torch.__version__, "triton": triton.__version__}
    name = torch.cuda.get_device_name(clock.device)
    return Machine(name, versions, clock.copy_rate(), clock.matrix_rate(), clock.launch_floor())


def measure(
    lesson: Lesson, functions: dict[str, dict[str, Callable]], wanted: Wanted, clock: Clock, machine: Machine
) -> Iterator[Iterator[Row]]:
    """For each shape and dtype its rows, one at a time. functions: who → exercise → function."""
    for case in lesson.bench:
        if wanted.match not in case.label or (wanted.exercises and case.exercise not in wanted.exercises):
            continue
        for dtype in wanted.dtypes:
            yield _measure_case(lesson, case, dtype, functions, wanted, clock, machine)


def _measure_case(lesson, case: BenchCase, dtype: str, functions, wanted, clock, machine) -> Iterator[Row]:
    exercise = lesson.exercise(case.exercise)
    builders = [(who, _ours(one[case.exercise]), True) for who, one in functions.items() if case.exercise in one]
    peers = [peer for peer in peers_of(case.exercise) if any(text in peer.name for text in wanted.peers)]
    builders += [(peer.name, peer.build, False) for peer in peers]
    if not builders:
        return
    rng = torch.Generator(device=clock.device).manual_seed(0)
    sets = [case.make(clock.device, getattr(torch, dtype), rng)]
    size = sum(one.numel() * one.element_size() for one in cost.tensors(sets[0]))
    while len(sets) < ROTATED and size * (len(sets) + 1) <= MOST_BYTES:
        sets.append(case.make(clock.device, getattr(torch, dtype), rng))
    least, work = 0, cost.operations(exercise, sets[0])
    if not work and any(text in COPY for text in wanted.peers):
        builders.append((COPY, lambda *args: _copy(least, clock.device), False))
    for who, build, ours in builders:
        if who == COPY and not least:  # nothing of ours was right: what a call must move is not known
            continue
        row = Row(lesson.stem, case.exercise, case.label, dtype, who)
        try:
            if ours:
                results = check(exercise, case, sets[0], build)
                least = cost.least_bytes(exercise, sets[0], results)
            _time(row, [build(*args) for args in sets], clock)
        except Exception as error:
            row.error = f"{type(error).__name__}: {error}".splitlines()[0][:160]
            forget_error(clock)
        row.bytes, row.operations = least, work
        row.floor = 1e6 * max(least / machine.copy_rate, work / machine.matrix_rate)
        yield row
    del sets
    torch.cuda.empty_cache()


def forget_error(clock: Clock) -> None:
    """CUDA reports a failed launch once more, to whoever comes next: let that be nobody."""
    if clock.device.type != "cuda":
        return
    with contextlib.suppress(RuntimeError):
        torch.cuda.synchronize(clock.device)
        torch.zeros(1, device=clock.device).add_(1)


def _ours(function: Callable) -> Callable:
    return lambda *args: lambda: function(*args)


def _copy(size: int, device: torch.device) -> Callable:
    """A copy of half of `size` bytes, rounded up to whole lines: of ragged ends torch makes a slower copy."""
    source = torch.empty(-(-size // 1024) * 512, dtype=torch.int8, device=device).random_(-128, 127)
    target = torch.empty_like(source)
    return lambda: target.copy_(source)


def _time(row: Row, calls: list[Callable], clock: Clock) -> None:
    graph: Times = clock.graph(calls)
    row.graph, row.graph_low, row.graph_high = graph.median, graph.low, graph.high
    row.eager = clock.eager(calls).median


class WrongResult(Exception):
    """A function whose answer is not the oracle's: it is not timed."""


def check(exercise: Exercise, case: BenchCase, args: Args, build: Callable) -> tuple:
    """The results of one call; WrongResult if they are not the oracle's."""
    inplace = {out.inplace for out in exercise.outputs if out.inplace is not None}
    copies = tuple(one.clone() if at in inplace else one for at, one in enumerate(args))
    returned = build(*copies)()
    if returned is None:
        returned = ()
    elif isinstance(returned, torch.Tensor):
        returned = (returned,)
    given = iter(returned)
    results = tuple(next(given) if out.inplace is None else copies[out.inplace] for out in exercise.outputs)
    some_args, some_results = case.sample(args, results) if case.sample else (args, results)
    expected = tuple(one.to(args[exercise.reads].device) for one in exercise.oracle(*some_args))
    for one in compare(exercise, some_args, some_results, expected):
        if not one.right:
            at = one.worst()
            raise WrongResult(f"{one.output.name}{list(at)} is {one.got[at]:.6g}, not {one.expected[at]:.6g}")
    return tuple(result for result, out in zip(results, exercise.outputs, strict=True) if out.inplace is None)
