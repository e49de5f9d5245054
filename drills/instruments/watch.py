"""Watches the memory accesses of one launch: every address is checked before the access, and logged.

Numpy only; the interpreter calls it with addresses and masks. It must never let an access outside a tensor pass.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from drills.instruments.clashes import clash, clashed, raced
from drills.instruments.ledger import Access, Meetings, Region, races
from drills.instruments.marks import Index, increasing
from drills.instruments.notes import Finding
from drills.instruments.outside import Faulty, OutOfBounds, outside
from drills.instruments.views import View


@dataclass
class Watch:
    """One launch under watch.

    regions: by pointer parameter. hidden: tensors that were not passed but of which a passed one is a view; an access
    through that view may reach into them. grid: programs along each axis. numbers: what integer parameters hold, for
    the messages. line: a function that tells the learner's line that runs now, and its file. program: the number of
    the one that runs. file: where the kernel stands. fault: an access that was refused.
    """

    regions: dict[str, Region]
    hidden: list[Region]
    grid: tuple[int, int, int]
    numbers: dict[str, int]
    line: Callable[[], tuple[int | None, str]]
    program: int = 0
    meetings: Meetings = field(default_factory=Meetings)
    file: str = ""
    fault: Finding | None = None
    clashes: dict[str, tuple[Region, int, int, int | None]] = field(default_factory=dict)

    def load(self, addresses: np.ndarray, mask: np.ndarray | None, itemsize: int, origin: str | None) -> None:
        """Before a load. mask None: all lanes. origin: the parameter that the pointer came from, if known."""
        found = self._checked("tl.load of", addresses, mask, itemsize, origin)
        if found is not None:
            found[0].loads.append(Access(self.program, self._here(), found[1]))

    def store(
        self,
        addresses: np.ndarray,
        mask: np.ndarray | None,
        itemsize: int,
        origin: str | None,
        values: np.ndarray,
    ) -> None:
        """Before a store of `values`, of the addresses' shape."""
        found = self._checked("tl.store to", addresses, mask, itemsize, origin)
        if found is None:
            return
        region, index = found
        line = self._here()
        region.stores.append(Access(self.program, line, index))
        if not isinstance(index, tuple) and region.name not in self.clashes and not increasing(index):
            lanes = np.broadcast_to(values, addresses.shape)
            lanes = lanes.ravel() if mask is None else lanes[np.broadcast_to(mask, addresses.shape)]
            element = clash(index, lanes)
            if element is not None:
                self.clashes[region.name] = (region, element, self.program, line)

    def atomic(
        self,
        addresses: np.ndarray,
        mask: np.ndarray | None,
        itemsize: int,
        origin: str | None,
        ordered: bool,
    ) -> None:
        """Before an atomic operation. ordered: its memory semantics are not "relaxed"."""
        found = self._checked("an atomic operation on", addresses, mask, itemsize, origin)
        if found is None:
            return
        region, index = found
        region.atomics.append(Access(self.program, self._here(), index))
        if ordered:
            self.meetings.saw(self.program, addresses.ravel() if mask is None else addresses[mask])

    def findings(self) -> list[Finding]:
        """Races, worked out when the launch has ended and tensors have their final names."""
        met = races([*self.regions.values(), *self.hidden], self.meetings)
        found = [raced(race, self.place(race.first), self.place(race.second)) for race in met]
        found += [clashed(region, element, self.place(at), line) for region, element, at, line in self.clashes.values()]
        for finding in found:
            finding.source = self._text(finding.line)
        return [self.fault, *found] if self.fault else found

    def _text(self, line: int | None) -> str:
        return linecache.getline(self.file, line or 0).strip()

    def place(self, program: int) -> str:
        """The program as (x, y, z)."""
        _, height, depth = self.grid
        return f"({program // (height * depth)}, {program // depth % height}, {program % depth})"

    def _checked(
        self, verb: str, addresses: np.ndarray, mask: np.ndarray | None, itemsize: int, origin: str | None
    ) -> tuple[Region, Index] | None:
        """The region and the elements of it that are touched; None if every lane is masked off."""
        active = addresses.ravel() if mask is None else addresses[mask]
        count = active.size
        if not count:
            return None
        low, high = (int(active[0]),) * 2 if count == 1 else (int(active.min()), int(active.max()))
        region = self._region(origin, low)
        if region is None:
            raise self._lost(verb)
        view = region.view
        if low < view.low or high + itemsize > view.high or not view.dense:
            bad = ~view.covers(active, itemsize)
            if bad.any():
                region = self._sibling(region, active, itemsize)
                if region is None:
                    raise self._outside(verb, addresses, mask, itemsize, origin, active[bad], low)
                view = region.view
        return region, elements(active, low, high, view, itemsize)

    def _lost(self, verb: str) -> OutOfBounds:
        line = self._here()
        got = f"{verb} a pointer to no tensor, in program {self.place(self.program)}"
        self.fault = Finding("out_of_bounds", got, line=line, source=self._text(line))
        return OutOfBounds(self.fault)

    def _region(self, origin: str | None, address: int) -> Region | None:
        """The region that a pointer belongs to: by where it came from, else the one that holds or is nearest to it."""
        if origin in self.regions:
            return self.regions[origin]
        return min(self.regions.values(), key=lambda region: distance(region.view, address), default=None)

    def _sibling(self, region: Region, active: np.ndarray, itemsize: int) -> Region | None:
        """Another tensor of the same storage that holds all these addresses."""
        for other in (*self.regions.values(), *self.hidden):
            if other is not region and other.storage == region.storage and other.view.covers(active, itemsize).all():
                return other
        return None

    def _outside(self, verb, addresses, mask, itemsize, origin, bad, low) -> OutOfBounds:
        region = self._region(origin, low)
        others = [other for other in self.regions.values() if other is not region]
        line = self._here()
        self.fault = outside(
            Faulty(verb, region, addresses, mask, itemsize, int(bad[0]), int(bad.size)),
            others,
            self.numbers,
            self.place(self.program),
            line,
            self._text(line),
        )
        return OutOfBounds(self.fault)

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
    if itemsize <= unit:
        return numbers
    return (numbers[:, None] + np.arange(itemsize // unit)).ravel()


def distance(view: View, address: int) -> int:
    """Bytes from an address to the nearest byte of a view."""
    return max(view.low - address, address - view.high + 1, 0)
