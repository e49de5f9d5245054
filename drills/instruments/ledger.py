"""What one launch did to memory, worked out from a log of its accesses: bytes moved, and races between programs.

Numpy only. An access is logged while the kernel runs and costs an append; everything else happens when it has ended.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from drills.instruments.marks import Index, Marks, distinct, numbered, shifted
from drills.instruments.notes import Traffic
from drills.instruments.views import View

TRIED = 64
"""Elements of one access that are looked at for programs that did not meet at an atomic operation."""


class Access(NamedTuple):
    """One load or store: which program (its number in the grid), on which line, which elements of its region.

    step: larger for every later access of the launch. One program runs after another here.
    """

    program: int
    line: int | None
    index: Index
    step: int


@dataclass
class Region:
    """One tensor argument of a launch. name: the kernel's parameter. shown: what messages call it. storage: equal for
    tensors that share memory.
    """

    name: str
    shown: str
    view: View
    storage: int
    loads: list[Access] = field(default_factory=list)
    stores: list[Access] = field(default_factory=list)
    atomics: list[Access] = field(default_factory=list)
    moved: Traffic = field(default_factory=Traffic)

    def clear(self) -> None:
        """Forget the accesses, which have been worked through."""
        self.loads, self.stores, self.atomics = [], [], []

    def traffic(self) -> Traffic:
        """Bytes moved; an atomic operation counts as a load and a store."""
        loads, stores = self.loads + self.atomics, self.stores + self.atomics
        return Traffic(*self._bytes(loads), *self._bytes(stores))

    def _bytes(self, accesses: list[Access]) -> tuple[int, int]:
        if not accesses:
            return 0, 0
        touched = Marks((self.view.high - self.view.low) // self.view.itemsize, np.uint8)
        moved = 0
        for access in accesses:
            moved += distinct(access.index)
            touched.put(access.index, 1)
        return moved * self.view.itemsize, touched.count() * self.view.itemsize


@dataclass(frozen=True)
class Race:
    """Two programs met at one element. kind: "race" (both stored) or "read_race" (one loaded what the other stored).

    element: offset from the region's first element. first, second: numbers of the programs; the storing one is first.
    """

    kind: str
    region: Region
    element: int
    first: int
    second: int
    line: int | None


@dataclass
class Meetings:
    """Where programs met at atomic operations: who stores before one may be relied on by who comes to it later.

    steps: program → address → the first and the last step at which it did an ordering operation there.
    """

    steps: dict[int, dict[int, tuple[int, int]]] = field(default_factory=dict)

    def saw(self, program: int, addresses: np.ndarray, step: int) -> None:
        """The program did an ordering (not relaxed) atomic operation on these addresses."""
        mine = self.steps.setdefault(program, {})
        for address in addresses.tolist():
            mine[address] = (mine.get(address, (step, step))[0], step)

    def ordered(self, one: Access, other: Access) -> bool:
        """Whether the earlier access comes before, and the later one after, an operation of its program on one address.

        An atomic operation in front of both orders nothing: the two may still happen at once.
        """
        earlier, later = sorted((one, other), key=lambda access: access.step)
        left, entered = self.steps.get(earlier.program, {}), self.steps.get(later.program, {})
        return any(
            last > earlier.step and address in entered and entered[address][0] < later.step
            for address, (_, last) in left.items()
        )


def races(regions: list[Region], meetings: Meetings) -> list[Race]:
    """At most one race of each kind for each storage, found whatever the order in which the programs ran."""
    found: list[Race] = []
    for storage in {region.storage: None for region in regions}:
        shared = [region for region in regions if region.storage == storage]
        if any(region.stores for region in shared):
            found += _races(shared, meetings)
    return found


def _races(regions: list[Region], meetings: Meetings) -> list[Race]:
    """Races on one storage: stores are entered first, so that a load is seen to meet a later store too."""
    owners = Owners(regions, meetings)
    found: dict[str, Race] = {}
    for region in regions:
        for access in region.stores:
            owners.meet("race", region, access, found)
            owners.enter(region, access)
    for region in regions:
        for access in region.loads:
            owners.meet("read_race", region, access, found)
    return list(found.values())


class Owners:
    """Which access stored each element of a storage last. Elements are as wide as the narrowest among its regions."""

    def __init__(self, regions: list[Region], meetings: Meetings) -> None:
        self.meetings = meetings
        self.low = min(region.view.low for region in regions)
        self.unit = min(region.view.itemsize for region in regions)
        self.marks = Marks((max(region.view.high for region in regions) - self.low) // self.unit + 1)
        self.stores: list[Access] = []
        self.programs = np.full(sum(len(region.stores) for region in regions) + 1, -1)

    def enter(self, region: Region, access: Access) -> None:
        """The access stores."""
        self.stores.append(access)
        self.programs[len(self.stores)] = access.program
        self.marks.put(_in_units(access.index, region.view, self.low, self.unit), len(self.stores))

    def meet(self, kind: str, region: Region, access: Access, found: dict[str, Race]) -> None:
        """Put into `found`, unless it has one of this kind, a meeting of the access with another program's store."""
        if kind in found:
            return
        index = _in_units(access.index, region.view, self.low, self.unit)
        owners = self.marks.get(index)
        strangers = np.flatnonzero((owners != 0) & (self.programs[owners] != access.program))
        for at in strangers[:TRIED]:
            other = self.stores[int(owners[at]) - 1]
            if not self.meetings.ordered(other, access):
                place = int(numbered(index)[at]) * self.unit + self.low
                element = (place - region.view.low) // region.view.itemsize
                found[kind] = Race(kind, region, element, other.program, access.program, access.line)
                return


def _in_units(index: Index, view: View, low: int, unit: int) -> Index:
    """Elements of `view` as numbers of `unit` bytes from `low`."""
    shift, wide = (view.low - low) // unit, view.itemsize // unit
    if wide == 1:
        return shifted(index, shift)
    if isinstance(index, tuple):
        return index[0] * wide + shift, index[1] * wide + shift
    return (index[:, None].astype(np.int64) * wide + np.arange(wide) + shift).ravel()
