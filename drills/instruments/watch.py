"""Watches the memory accesses of one launch: every address is checked before the access, and logged.

Numpy only; the interpreter calls it with addresses and masks. It must never let an access outside a tensor pass.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np

from drills.instruments.clashes import clash, clashed, raced
from drills.instruments.ledger import Access, Meetings, Race, Region, races
from drills.instruments.marks import Index, increasing
from drills.instruments.notes import Finding
from drills.instruments.outside import Faulty, OutOfBounds, outside
from drills.instruments.views import View

_smallest, _largest = np.minimum.reduce, np.maximum.reduce

SMALL = 1 << 31
"""Element numbers below this are kept in 32 bits."""


@dataclass
class Watch:
    """One launch under watch.

    regions: by pointer parameter. hidden: tensors that were not passed but of which a passed one is a view; an access
    through that view may reach into them. grid: programs along each axis. numbers: what integer parameters hold, for
    the messages. line: a function that tells the learner's line that runs now, and its file. program: the number of
    the one that runs. steps: accesses so far. file: where the kernel stands. known: every other tensor of the call, for
    pointers that came from no parameter. fault: an access that was refused. numbered: an address that was made a
    number. blind: the launch ran where no access is seen. met: races, once settled. reached: those of `known` that it
    came to. private: by how much an address in a storage is shifted, to the copy that is used.
    """

    regions: dict[str, Region]
    hidden: list[Region]
    grid: tuple[int, int, int]
    numbers: dict[str, int]
    line: Callable[[], tuple[int | None, str]]
    known: Iterable[Region] = ()
    private: Callable[[int], np.uint64] = lambda place: np.uint64(0)
    program: int = 0
    steps: int = 0
    meetings: Meetings = field(default_factory=Meetings)
    file: str = ""
    fault: Finding | None = None
    numbered: Finding | None = None
    blind: bool = False
    met: list[Race] = field(default_factory=list)
    reached: list[Region] = field(default_factory=list)
    clashes: dict[str, tuple[Region, int, int, int | None]] = field(default_factory=dict)

    def load(self, addresses: np.ndarray, mask: np.ndarray | None, itemsize: int, origin: str | None) -> np.ndarray:
        """Before a load: where it is from. mask None: all lanes. origin: the parameter that the pointer came from."""
        touched = self._checked("tl.load of", addresses, mask, itemsize, origin)
        for region, index in touched:
            region.loads.append(Access(self.program, self._here(), index, self._step()))
        return self._privately(touched, addresses)

    def store(
        self,
        addresses: np.ndarray,
        mask: np.ndarray | None,
        itemsize: int,
        origin: str | None,
        values: np.ndarray,
    ) -> np.ndarray:
        """Before a store of `values`, of the addresses' shape: where it goes."""
        touched = self._checked("tl.store to", addresses, mask, itemsize, origin)
        for region, index in touched:
            line = self._here()
            region.stores.append(Access(self.program, line, index, self._step()))
            if not isinstance(index, tuple) and region.name not in self.clashes and not increasing(index):
                lanes = np.broadcast_to(values, addresses.shape)
                lanes = lanes.ravel() if mask is None else lanes[np.broadcast_to(mask, addresses.shape)]
                element = clash(index, lanes)
                if element is not None:
                    self.clashes[region.name] = (region, element, self.program, line)
        return self._privately(touched, addresses)

    def atomic(
        self,
        addresses: np.ndarray,
        mask: np.ndarray | None,
        itemsize: int,
        origin: str | None,
        ordered: bool,
    ) -> np.ndarray:
        """Before an atomic operation: where it works. ordered: its memory semantics are not "relaxed"."""
        touched = self._checked("an atomic operation on", addresses, mask, itemsize, origin)
        for region, index in touched:
            region.atomics.append(Access(self.program, self._here(), index, self._step()))
            if ordered:
                self.meetings.saw(self.program, addresses.ravel() if mask is None else addresses[mask], self.steps)
        return self._privately(touched, addresses)

    def addressed(self) -> None:
        """A kernel makes a number of an address."""
        line = self._here()
        got = "a kernel makes a number of a pointer"
        likely = "Addresses are others in every run: let no number depend on one."
        self.numbered = Finding("told_values", got, likely, line=line, source=self._text(line))

    def settle(self) -> None:
        """The launch has ended: work out bytes and races, and let go of the log."""
        every = [*self.regions.values(), *self.hidden]
        self.met = races(every, self.meetings)
        for region in every:
            region.moved = region.traffic()
            region.clear()

    def findings(self) -> list[Finding]:
        """What went wrong, with the names that the tensors have by now."""
        found = [raced(race, self.place(race.first), self.place(race.second)) for race in self.met]
        found += [clashed(region, element, self.place(at), line) for region, element, at, line in self.clashes.values()]
        for finding in found:
            finding.source = self._text(finding.line)
        return [one for one in (self.fault, self.numbered) if one] + found

    def _text(self, line: int | None) -> str:
        return linecache.getline(self.file, line or 0).strip()

    def place(self, program: int) -> str:
        """The program as (x, y, z)."""
        _, height, depth = self.grid
        return f"({program // (height * depth)}, {program // depth % height}, {program % depth})"

    def _checked(
        self, verb: str, addresses: np.ndarray, mask: np.ndarray | None, itemsize: int, origin: str | None
    ) -> list[tuple[Region, Index]]:
        """The region that is touched and which elements of it; several regions only for pointers of no parameter."""
        active = addresses.ravel() if mask is None else addresses[mask]
        count = active.size
        if not count:
            return []
        region = self.regions.get(origin)
        if region is None:
            return self._scattered(verb, active, itemsize)
        low, high = (int(active[0]),) * 2 if count == 1 else (int(_smallest(active)), int(_largest(active)))
        view = region.view
        if low < view.low or high + itemsize > view.high or not view.dense:
            bad = ~view.covers(active, itemsize)
            if bad.any():
                found = self._sibling(region, active, itemsize)
                if found is None:
                    lost = active[bad]
                    raise self._outside(Faulty(verb, region, addresses, mask, itemsize, int(lost[0]), lost.size))
                region = found
        return [(region, elements(active, low, high, region.view, itemsize))]

    def _privately(self, touched: list[tuple[Region, Index]], addresses: np.ndarray) -> np.ndarray:
        """The addresses in the copies of the storages that these regions lie in."""
        if len(touched) == 1:
            return addresses + self.private(touched[0][0].storage)
        shifted = addresses.copy()
        for region, _ in touched:
            inside = region.view.covers(addresses.ravel(), 1).reshape(addresses.shape)
            shifted[inside] = addresses[inside] + self.private(region.storage)
        return shifted

    def _scattered(self, verb: str, active: np.ndarray, itemsize: int) -> list[tuple[Region, Index]]:
        """For pointers that came from a table or from arithmetic: whichever known tensors hold the lanes."""
        found = []
        while active.size:
            holds = None
            for region in (*self.regions.values(), *self.hidden, *self.known):
                holds = region.view.covers(active, itemsize)
                if holds[0]:
                    break
            if holds is None or not holds[0]:
                raise self._lost(verb)
            if not any(region is one for one in (*self.regions.values(), *self.hidden)):
                self.hidden.append(region)
                self.reached.append(region)
            mine, active = active[holds], active[~holds]
            found.append((region, elements(mine, int(mine.min()), int(mine.max()), region.view, itemsize)))
        return found

    def _sibling(self, region: Region, active: np.ndarray, itemsize: int) -> Region | None:
        """Another tensor of the same storage that holds all these addresses."""
        for other in (*self.regions.values(), *self.hidden):
            if other is not region and other.storage == region.storage and other.view.covers(active, itemsize).all():
                return other
        return None

    def _lost(self, verb: str) -> OutOfBounds:
        line = self._here()
        got = f"{verb} an address in no tensor, in program {self.place(self.program)}"
        self.fault = Finding("out_of_bounds", got, line=line, source=self._text(line))
        return OutOfBounds(self.fault)

    def _outside(self, fault: Faulty) -> OutOfBounds:
        others = [other for other in self.regions.values() if other is not fault.region]
        line = self._here()
        place = self.place(self.program)
        self.fault = outside(fault, others, self.numbers, place, line, self._text(line))
        return OutOfBounds(self.fault)

    def _step(self) -> int:
        self.steps += 1
        return self.steps

    def _here(self) -> int | None:
        line, self.file = self.line()
        return line


def elements(active: np.ndarray, low: int, high: int, view: View, itemsize: int) -> Index:
    """Addresses as element numbers from the view's first byte, one for each lane; a range where they follow on."""
    unit = view.itemsize
    first, last = (low - view.low) // unit, (high - view.low + itemsize - 1) // unit
    if active.size == 1:
        return first, last + 1
    if itemsize == unit and last - first == active.size - 1 and (active[1:] - active[:-1] == unit).all():
        return first, last + 1
    numbers = (active - np.uint64(view.low)).astype(np.int64) // unit
    if itemsize > unit:
        numbers = (numbers[:, None] + np.arange(itemsize // unit)).ravel()
    return numbers.astype(np.int32) if last < SMALL else numbers
