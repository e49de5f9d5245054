"""Twins: two calls that differ in the values of floats only. Whatever a kernel does not load must be the same in both.

A result that was computed in Python can reach memory through a launched kernel: as numbers that it is passed, as an
offset, as the grid. So calls are held against each other by what their kernels were told (see `instruments.told`): the
tests make some twins by themselves, and calls of each exercise, drawn by lot, are made again with other values: one of
those that launch and copy the same, up to numbers, and so on for a few of what else is launched. Who computes only the
hardest cases elsewhere launches something else there. Or every call is, to repeat what a run met.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice, zip_longest
from typing import Any

import torch

from drills.instruments.notes import Launch, Notes
from drills.instruments.views import View
from drills.judge import called
from drills.lessons.base import Args, Exercise
from drills.report.model import Failure
from drills.sandbox.client import Call

SOONEST = 1e-3
"""Seconds: what takes less is not preferred to what takes this long."""

MOST = 4
"""Calls of an exercise that are made again, where not every one is."""

NUMBERS = re.compile(r"\b[0-9a-f]{32}\b|-?\d+(\.\d+)?(e[-+]?\d+)?")
"""And digests."""

LARGEST = 1 << 20
"""Bytes of the largest storage in a call that is made again."""

ORDINARY = 2.0**10
"""Sizes below it are drawn between such sizes, others between others: keys of 2^127 do not meet the cache's values."""

LOAD = (
    "Let the kernel load what depends on the inputs' values. Shapes, strides, dtypes, index tensors and given numbers "
    "may decide what a function launches."
)


@dataclass(frozen=True)
class Again:
    """A call that may be made again, the seconds that it took, and its number among the exercise's."""

    call: Call
    seconds: float
    number: int

    def twin(self, draw: Callable[..., torch.Generator]) -> Call | None:
        """The call with other values; None if none can have any."""
        args = other_values(self.call.args, draw(self.number))
        return None if args is None else replace(self.call, args=args)


@dataclass
class Twins:
    """Of one lesson's run. seen: what the first of several calls that may only differ in values was told.

    calls: of each exercise, those that may be made again, by what they launch.
    """

    seen: dict[tuple[str, bytes], Notes] = field(default_factory=dict)
    calls: dict[str, dict[frozenset[str], list[Again]]] = field(default_factory=dict)

    def told(self, exercise: Exercise, args: Args, notes: Notes, level: str) -> Failure | None:
        """A failure if an earlier call of the same form was told something else."""
        first = self.seen.setdefault((exercise.name, form(args)), notes)
        what = "" if first is notes else difference(first, notes)
        if not what:
            return None
        got = f"where only values of the inputs change, {what}"
        return Failure("told_values", level, called(exercise, args), got, "the same launches for all values", LOAD)

    def good(self, call: Call, seconds: float, told: Iterable[str]) -> None:
        """A call was answered well, in so many seconds; it may be made again."""
        if all(one.untyped_storage().nbytes() <= LARGEST for one in _parts(call.args) if isinstance(one, torch.Tensor)):
            kinds = self.calls.setdefault(call.exercise, {})
            number = sum(map(len, kinds.values()))
            kind = frozenset(NUMBERS.sub("#", one) for one in told)
            kinds.setdefault(kind, []).append(Again(call, seconds, number))

    def others(self, exercise: str, draw: Callable[..., torch.Generator], every: bool = False) -> list[Call]:
        """Calls of the exercise with other values: some, one a kind, of the most frequent and of the rarest; or every.

        draw: makes a generator for a purpose. Which calls are drawn depends on how long they took; their other values
        do not: who makes every call again meets what any run with the same inputs met.
        """
        kinds = sorted(self.calls.pop(exercise, {}).values(), key=len)
        lot = draw("lot")
        found: list[Call] = []
        for calls in kinds[-1:] + kinds[:-1]:
            twins = (one.twin(draw) for one in (calls if every else _drawn_by_lot(calls, lot)))
            possible = (one for one in twins if one is not None)
            found += possible if every else islice(possible, 1)
        return found if every else found[:MOST]


def _drawn_by_lot(calls: list[Again], rng: torch.Generator) -> Iterator[Again]:
    """All of them, a slow one rather late."""
    odds = torch.tensor([max(one.seconds, SOONEST) ** -2 for one in calls])
    return (calls[at] for at in torch.multinomial(odds, len(calls), generator=rng).tolist())


def form(args: Args) -> bytes:
    """A digest of all but the values of floats: equal for calls in which the same may be launched."""
    storages: dict[int, int] = {}
    made = hashlib.blake2b(digest_size=16)
    for one in _parts(args):
        if not isinstance(one, torch.Tensor):
            made.update(repr(one).encode())
            continue
        place = storages.setdefault(one.untyped_storage().data_ptr(), len(storages))
        made.update(repr((one.dtype, tuple(one.shape), one.stride(), one.storage_offset(), place)).encode())
        if not one.is_floating_point():
            made.update(repr(one.tolist()).encode())
    return made.digest()


def _parts(value: Any) -> Iterator[Any]:
    if isinstance(value, (list, tuple)):
        yield len(value)
        for one in value:
            yield from _parts(one)
    else:
        yield value


def difference(one: Notes, other: Notes) -> str:
    """What was told otherwise, in words; "" if nothing was."""
    for a, b in zip_longest(one.told, other.told, fillvalue=""):
        if a != b:
            return _first(a, b)
    if len(one.launches) != len(other.launches):
        return "the number of launches changes"
    pairs = zip(one.launches, other.launches, strict=True)
    return next((f"{a.kernel} changes" for a, b in pairs if _made_of(a) != _made_of(b)), "")


def _made_of(launch: Launch) -> tuple:
    """What kernel it is."""
    kernel = launch.signature, launch.constants, launch.shapes
    return *kernel, launch.num_warps, launch.num_stages, launch.options, launch.closure, launch.names


def _first(one: str, other: str) -> str:
    (what, *ours), (instead, *theirs) = one.split("; "), other.split("; ")
    if what != instead:
        return f"{_step(instead)} comes in place of {_step(what)}"
    parts = ((b or a).partition(" = ")[0] for a, b in zip_longest(ours, theirs, fillvalue="") if a != b)
    return f"{next(parts, 'something')} changes in {_step(what)}"


def _step(what: str) -> str:
    """ "return", the name of a copy, or "kernel, line 12"."""
    return what[:80] or "nothing"


def other_values(args: Args, rng: torch.Generator) -> Args | None:
    """The same call with other values, or None if it has none to change, or too much memory.

    Each value keeps its sign, and its size is drawn between those of two others of its tensor, or of its column where
    there are rows of rows, that are as large (see ORDINARY); zeros, infinities and NaN stay where they are. So what is
    empty stays empty, signs and sizes stay in their range, and a right answer stays right. (A column of q and k that
    carries the score is no other column's, with which it would cancel; and where it is ±400 it stays so: in between,
    scores are rounded once more.)
    """
    storages: dict[int, torch.Tensor] = {}
    made: dict[int, torch.Tensor] = {}
    changed = False
    for tensor in (one for one in _parts(args) if isinstance(one, torch.Tensor)):
        storage = tensor.untyped_storage()
        overlapping = View(0, 1, tuple(tensor.shape), tensor.stride()).overlapping
        if storage.nbytes() > LARGEST or overlapping or id(tensor) in made:
            if id(tensor) in made:
                continue
            return None
        place = storage.data_ptr()
        if place not in storages:
            storages[place] = torch.empty(0, dtype=torch.uint8).set_(storage).clone()
        fresh = torch.empty(0, dtype=tensor.dtype)
        fresh.set_(storages[place].untyped_storage(), tensor.storage_offset(), tensor.size(), tensor.stride())
        made[id(tensor)] = fresh
        if tensor.is_floating_point():
            changed |= _redrawn(fresh, rng)
    return _replaced(args, made) if changed else None


def _redrawn(tensor: torch.Tensor, rng: torch.Generator) -> bool:
    """Draws the values of a tensor anew; whether any is another by now."""
    once = tensor[tuple(slice(0, 1) if step == 0 else slice(None) for step in tensor.stride())]
    columns = once.shape[-1] if once.dim() > 2 and once.numel() > once.shape[-1] else 1
    old = new = once.to(torch.float64, copy=True).reshape(-1, columns)
    free = old.isfinite() & (old != 0)
    for some in (free & (old.abs() < ORDINARY), free & (old.abs() >= ORDINARY)):
        new = _drawn(new, some, rng)
    once.copy_(new.to(tensor.dtype).reshape(once.shape))
    return not torch.equal(once.double().nan_to_num(), old.reshape(once.shape).nan_to_num())


def _drawn(old: torch.Tensor, free: torch.Tensor, rng: torch.Generator) -> torch.Tensor:
    """The values with those that are free of another size, between those of two free ones of their column."""
    one, two = (old.abs().gather(0, _shuffled(free, rng)) for _ in range(2))
    share = torch.rand(old.shape, generator=rng, dtype=torch.float64)
    places = (~free).to(torch.int8).argsort(stable=True, dim=0)  # of each column, those that are free come first
    kept = old.gather(0, places)
    drawn = torch.where(free.gather(0, places), (one * share + two * (1 - share)) * kept.sign(), kept)
    return old.scatter(0, places, drawn)


def _shuffled(free: torch.Tensor, rng: torch.Generator) -> torch.Tensor:
    """Rows in an order of its own for each column, the free ones first."""
    return torch.rand(free.shape, generator=rng).masked_fill(~free, 2.0).argsort(0)


def _replaced(value: Any, made: dict[int, torch.Tensor]) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)(_replaced(one, made) for one in value)
    return made.get(id(value), value)
