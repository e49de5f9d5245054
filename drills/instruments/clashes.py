"""Says in words what two programs, or two lanes, did to one element.

Numpy only; programs come as text, lines of source are added by the caller.
"""

from __future__ import annotations

import numpy as np

from drills.instruments.ledger import Race, Region
from drills.instruments.notes import Finding


def raced(race: Race, first: str, second: str) -> Finding:
    """Two programs, first the one that stores, met at one element."""
    where = element(race.region, race.element)
    if race.kind == "race":
        return Finding(
            "race",
            f"programs {first} and {second} both store {where}",
            likely="One program must own each element: split the work by it, or let one program store for all.",
            expected="every element stored by one program",
            line=race.line,
        )
    return Finding(
        "read_race",
        f"program {second} loads {where}, which program {first} stores in the same launch",
        likely="Programs run in any order and at once: store what others load in an earlier launch.",
        expected="no program loads what another one stores",
        line=race.line,
    )


def clashed(region: Region, at: int, program: str, line: int | None) -> Finding:
    """Two lanes of one store gave one element different values."""
    return Finding(
        "race",
        f"two lanes of one store in program {program} give different values to {element(region, at)}",
        likely="Which lane wins is undefined: each lane needs an address of its own.",
        expected="every element stored by one lane",
        line=line,
    )


def element(region: Region, at: int) -> str:
    """The element `at` elements from a region's first."""
    index = ", ".join(map(str, region.view.index(at)))
    return f"element [{index}] of {region.view.words(region.shown)}"


def clash(index: np.ndarray, values: np.ndarray) -> int | None:
    """An element that two lanes of one store give different values; None if there is none."""
    if index.size != values.size:
        return None
    order = np.argsort(index, kind="stable")
    index, values = index[order], values[order]
    raw = np.ascontiguousarray(values).view(f"u{values.itemsize}")
    bad = (index[1:] == index[:-1]) & (raw[1:] != raw[:-1])
    return int(index[1:][bad][0]) if bad.any() else None
