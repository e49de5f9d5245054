"""Freezes the submissions: copies what will be graded to a private place, before any seed is drawn.

From here on nothing under the submissions' own folder is looked at.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field
from pathlib import Path

from drills.batch import intake, names, taking
from drills.batch.place import Place
from drills.errors import GraderFailed, WrongUse


@dataclass
class Frozen:
    """identities: of all submissions, in the order of their names. refused: what lay beside them and is none."""

    identities: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)


def freeze(
    folder: Path, place: Place, lessons: tuple[str, ...], shard: tuple[int, int] | None = None, again: bool = False
) -> Frozen:
    """Copies every submission of this shard to OUT/secret/frozen, one at a time, and drops what is no longer there.

    WrongUse if the place holds results of other submissions only, or if more would be dropped than kept and nobody
    said again: they would be lost, and a folder of late submissions alone is soon given.
    """
    found, refused = intake.find(folder, lessons)
    if shard:
        found = [one for one in found if names.shard(one.name, shard[1]) == shard[0]]
    frozen = Frozen([names.identity(one.name) for one in found], refused)
    known = set(frozen.identities)
    old = set(os.listdir(place.frozen)) | set(place.identities())
    if old and known and not old & known:
        raise WrongUse(f"{place.root} holds the results of other submissions: name another folder after -o")
    gone = sorted(old - known) if known else []
    if len(gone) > len(old & known) and not again:
        raise WrongUse(_most_are_gone(folder, place.root, gone, len(old)))
    try:
        for one, identity in zip(found, frozen.identities, strict=True):
            taken = taking.take(folder, one, lessons)
            digests = {name: hashlib.sha256(data).hexdigest() for name, data in taken.files.items()}
            place.freeze(identity, names.shown(one.name), taken, digests)
        for identity in gone:
            place.forget(identity)
    except OSError as error:
        raise GraderFailed(f"{place.root} cannot be written: {error.strerror or error}") from None
    return frozen


def _most_are_gone(folder: Path, root: Path, gone: list[str], of: int) -> str:
    few = ", ".join([*gone[:3], *(["…"] if len(gone) > 3 else [])])
    return (
        f"{len(gone)} of {of} submissions that {root} has results of are not under {folder}: {few}. Late submissions "
        "go into the folder of the others. Name another folder after -o, or add --again to drop those results"
    )


def check(folder: Path, out: Path) -> None:
    """WrongUse, before anything is made, if `folder` is none or `out` lies where it cannot."""
    if not folder.is_dir():
        raise WrongUse(f"{folder} is {'no folder' if folder.exists() else 'not there'}: name the folder of submissions")
    inner, outer = folder.resolve(), out.resolve()
    if inner == outer:
        raise WrongUse("the results cannot go into the folder of the submissions: name another after -o")
    if inner in outer.parents:
        raise WrongUse(f"{out} lies among the submissions: name a folder outside of {folder} after -o")
    if outer in inner.parents:
        raise WrongUse(f"{folder} lies inside {out}: name a folder for the results that holds nothing else")
