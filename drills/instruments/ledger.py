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


class Access(NamedTuple):
    """One load or store: which program (its number in the grid), on which line, which elements of its region."""

    program: int
    line: int | None
    index: Index


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
    """Which programs met at an atomic operation, and may therefore rely on each other's earlier stores."""

    addresses: dict[int, set[int]] = field(default_factory=dict)

    def saw(self, program: int, addresses: np.ndarray) -> None:
        """The program did an ordering (not relaxed) atomic operation on these addresses."""
        self.addresses.setdefault(program, set()).update(addresses.tolist())

    def met(self, first: int, second: int) -> bool:
        """Whether both did one on the same address."""
        return not self.addresses.get(first, set()).isdisjoint(self.addresses.get(second, set()))


def races(regions: list[Region], meetings: Meetings) -> list[Race]:
    """At most one race of each kind for each storage, found whatever the order in which the programs ran."""
    found: list[Race] = []
    for storage in {region.storage: None for region in regions}:
        shared = [region for region in regions if region.storage == storage]
        if any(region.stores for region in shared):
            found += _races(shared, meetings)
    return found


def _races(regions: list[Region], meetings: Meetings) -> list[Race]:
    """Races on one storage. Units are the narrowest element among the regions."""
    low = min(region.view.low for region in regions)
    unit = min(region.view.itemsize for region in regions)
    owner = Marks((max(region.view.high for region in regions) - low) // unit + 1)
    found: list[Race] = []

    def meet(kind: str, accesses: str) -> None:
        for region in regions:
            for access in getattr(region, accesses):
                index = _in_units(access.index, region.view, low, unit)
                owners = owner.get(index)
                strangers = (owners != 0) & (owners != access.program + 1)
                if strangers.any() and not any(race.kind == kind for race in found):
                    race = _first(kind, region, access, owners, strangers, numbered(index), meetings)
                    found.extend([race] if race else [])
                if kind == "race":
                    owner.put(index, access.program + 1)

    def _first(kind, region, access, owners, strangers, numbers, meetings) -> Race | None:
        for at in np.flatnonzero(strangers)[:64]:
            other = int(owners[at]) - 1
            if not meetings.met(other, access.program):
                element = (int(numbers[at]) * unit + low - region.view.low) // region.view.itemsize
                return Race(kind, region, element, other, access.program, access.line)
        return None

    meet("race", "stores")
    meet("read_race", "loads")
    return found


def _in_units(index: Index, view: View, low: int, unit: int) -> Index:
    """Elements of `view` as numbers of `unit` bytes from `low`."""
    shift, wide = (view.low - low) // unit, view.itemsize // unit
    if wide == 1:
        return shifted(index, shift)
    if isinstance(index, tuple):
        return index[0] * wide + shift, index[1] * wide + shift
    return (index[:, None].astype(np.int64) * wide + np.arange(wide) + shift).ravel()
