"""Reads an instructor's table of points, a small TOML file:

    [default]                      # every exercise that nothing else is said of
    value = 5
    edge = 2

    [l4]                           # every exercise of a lesson
    traffic = 2

    [l4.merge_states]              # one exercise: these levels, the rest as above
    value = 8

    [l5]
    cascade = 20                   # one exercise as a whole, split as its levels are otherwise

A level that is not named keeps its points from the wider table, in the end from `drills.report.points.DEFAULT`.
Everything that is wrong with the file is one line that names the place and what to do.
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from drills.errors import WrongUse
from drills.report.model import LEVELS
from drills.report.points import DEFAULT, Points

if sys.version_info >= (3, 11):
    import tomllib
else:  # the same reader under its old name; pytest needs it there too
    import tomli as tomllib

MOST = 100_000
"""Points of one level at most: more is a slip of the pen."""


def load(path: Path) -> Points:
    """The table in `path`, which may name any lesson of this repository. WrongUse, in one line, if it is not right."""
    from drills import catalog

    lessons = {entry.stem: entry.exercises for entry in catalog.lessons() if not entry.missing}
    try:
        tree = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise WrongUse(f"{path} cannot be read: {error.strerror or error}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise WrongUse(f"{path} is no TOML: {error}") from None
    try:
        return read(tree, lessons)
    except ValueError as error:
        raise WrongUse(f"{path}: {error}") from None


def read(tree: dict[str, Any], lessons: Mapping[str, tuple[str, ...]]) -> Points:
    """The table that the TOML tree holds. lessons: stem → its exercises. ValueError for what does not fit."""
    shorts = {stem.split("_", 1)[0]: stem for stem in lessons}
    default = _levels(tree.get("default", {}), "default", DEFAULT)
    own: dict[tuple[str, str], dict[str, int]] = {}
    for name, table in tree.items():
        if name == "default":
            continue
        stem = shorts.get(name) or (name if name in lessons else None)
        if stem is None:
            raise ValueError(f"there is no lesson {name}{_near(name, ['default', *shorts, *lessons])}")
        own |= _lesson(table, name, stem, lessons[stem], default)
    return Points(default, own)


def _lesson(
    table: Any, name: str, stem: str, exercises: tuple[str, ...], default: dict[str, int]
) -> dict[tuple[str, str], dict[str, int]]:
    if not isinstance(table, dict):
        raise ValueError(f"{name} must be a table: [{name}], and below it a line a level or an exercise")
    for key in table:
        if key not in LEVELS and key not in exercises:
            raise ValueError(f"{name} has no exercise or level {key}{_near(key, [*exercises, *LEVELS])}")
    wide = _levels({level: table[level] for level in LEVELS if level in table}, name, default)
    found = {(stem, exercise): wide for exercise in exercises}
    for exercise in exercises:
        if exercise in table:
            found[stem, exercise] = _exercise(table[exercise], f"{name}.{exercise}", wide)
    return found


def _exercise(value: Any, place: str, wide: dict[str, int]) -> dict[str, int]:
    if isinstance(value, dict):
        return _levels(value, place, wide)
    most, weight = _hundredths(value, place), sum(wide.values())
    if not weight:
        raise ValueError(f"{place}: no level has points to split {value} by; name the levels in [{place}]")
    split, before, reached = {}, 0, 0
    for level, share in wide.items():
        reached += share
        after = (2 * most * reached + weight) // (2 * weight)
        split[level], before = after - before, after
    return split


def _levels(table: Any, place: str, wide: Mapping[str, int]) -> dict[str, int]:
    if not isinstance(table, dict):
        raise ValueError(f"{place} must be a table: [{place}], and below it a line a level")
    for key in table:
        if key not in LEVELS:
            raise ValueError(f"{place} has no level {key}{_near(key, LEVELS)}")
    return {**wide, **{level: _hundredths(value, f"{place}.{level}") for level, value in table.items()}}


def _hundredths(value: Any, place: str) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError(f"{place} must be a number of points, not {value!r}")
    if not 0 <= value <= MOST:  # NaN fails this too
        raise ValueError(f"{place} = {value}: points lie between 0 and {MOST}")
    hundredths = round(value * 100)
    if abs(hundredths - value * 100) > 1e-6:
        raise ValueError(f"{place} = {value}: points have two decimals at most")
    return hundredths


def _near(name: str, known: Iterable[str]) -> str:
    known = list(dict.fromkeys(known))
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f": did you mean {near[0]}?" if near else f": it knows {', '.join(known)}"
