"""Reads the lessons' files out of one submission, whatever else lies there.

Only regular files with a lesson's name are read: opened relative to a descriptor of their folder, without following a
link and without waiting for the writer of a pipe. Must never run, import or write any of it.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from drills.batch import names
from drills.batch.entries import LINK, kind, kind_of
from drills.batch.intake import Found
from drills.source import LARGEST

MOST_REFUSED = 20
"""Lines of one submission about what was not taken."""

MOST_NAMED = 3
"""Names of what is there in place of a lesson's file."""

MOST_ENTRIES = 10_000
"""Entries of one submission's folder that are looked at; the lessons' files are looked up by name."""

_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY


@dataclass
class Taken:
    """What was read of a submission. files: lesson file name → bytes; refused: one line each of what was not.

    others: what else is there, by name.
    """

    files: dict[str, bytes] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    problem: str = ""

    def refuse(self, name: str, why: str) -> None:
        """Note what is not taken; the first lines are kept, the last says that there is more."""
        if len(self.refused) < MOST_REFUSED:
            self.refused.append(f"{names.shown(name)}: {why}")
        elif len(self.refused) == MOST_REFUSED:
            self.refused.append("and more")


def take(folder: Path, one: Found, lessons: Iterable[str]) -> Taken:
    """Reads a submission's files. Never raises for what is in it."""
    taken = Taken(problem=one.problem)
    if one.problem:
        return taken
    try:
        if one.files is not None:
            _take_set(folder, one.files, taken)
        else:
            _take_folder(folder, one.name, tuple(lessons), taken)
    except OSError as error:
        taken.problem = f"the folder cannot be read: {error.strerror or error}"
    if not taken.files and not taken.problem:
        there = [line for line in taken.refused if line.partition(": ")[0] in lessons]
        says = "what is there was not taken" if there else "none of the files asked for is there"
        instead = "" if there or one.files else _instead(taken.others)
        taken.problem = f"{says}: {', '.join(there or lessons)}{instead}"
    return taken


def _instead(others: list[str]) -> str:
    """ "; there is l4.zip", as the end of a sentence."""
    if not others:
        return "; the folder is empty"
    named = [names.shown(name) for name in others[:MOST_NAMED]]
    more = [f"{len(others) - MOST_NAMED} more"] if len(others) > MOST_NAMED else []
    return f"; there is {', '.join(named + more)}"


def _take_set(folder: Path, files: dict[str, str], taken: Taken) -> None:
    place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        last: dict[str, str] = {}
        for name in sorted(files, key=_again):
            lesson = files[name]
            if lesson in last:
                taken.refuse(last[lesson], f"handed in again as {names.shown(name)}, and only the last is graded")
            last[lesson] = name
        for lesson, name in last.items():
            _read(place, name, lesson, taken)
    finally:
        os.close(place)


def _take_folder(folder: Path, name: str, lessons: tuple[str, ...], taken: Taken) -> None:
    place = os.open(folder / name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        for lesson in lessons:
            _read(place, lesson, lesson, taken)
        _list_odd(place, lessons, taken)
        left = [lesson for lesson in lessons if lesson not in taken.files]
        inner = _open_inner(place)
        if inner >= 0:
            try:
                for lesson in left:
                    _read(inner, lesson, lesson, taken)
                for lesson in lessons:
                    if lesson not in left and _is_there(inner, lesson):
                        taken.refuse(f"mine/{lesson}", f"the {lesson} above it was graded")
            finally:
                os.close(inner)
    finally:
        os.close(place)


def _open_inner(place: int) -> int:
    """The submission's mine/, where a whole repository was handed in; -1 if there is none."""
    try:
        return os.open("mine", os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=place)
    except OSError:
        return -1


def _is_there(place: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=place, follow_symlinks=False)
    except OSError:
        return False
    return True


def _read(place: int, name: str, lesson: str, taken: Taken) -> None:
    try:
        descriptor = os.open(name, _FLAGS, dir_fd=place)
    except FileNotFoundError:
        return
    except OSError as error:
        # ELOOP: a link. ENXIO: a socket, or a pipe that nobody writes.
        link = error.errno == errno.ELOOP
        taken.refuse(name, LINK if link else f"cannot be read: {error.strerror or error}")
        return
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            taken.refuse(name, kind_of(status.st_mode))
        elif status.st_size > LARGEST:
            taken.refuse(name, f"larger than {LARGEST >> 10} KiB")
        else:
            with os.fdopen(descriptor, "rb", closefd=False) as file:
                data = file.read(LARGEST + 1)
            if len(data) > LARGEST:  # it grew meanwhile
                taken.refuse(name, f"larger than {LARGEST >> 10} KiB")
            else:
                taken.files[lesson] = data
    except OSError as error:
        taken.refuse(name, f"cannot be read: {error.strerror or error}")
    finally:
        os.close(descriptor)


def _list_odd(place: int, lessons: tuple[str, ...], taken: Taken) -> None:
    """Names what else is there; of what is no ordinary file or folder, says so: links, pipes, odd names."""
    odd, others = [], []
    with os.scandir(place) as entries:
        for count, entry in enumerate(entries):
            if count >= MOST_ENTRIES:
                odd.append((f"{MOST_ENTRIES} entries", "the rest of the folder was not looked at"))
                break
            found = kind(entry)
            why = found if found not in ("file", "folder") else names.odd(entry.name)
            if why and entry.name not in lessons:
                odd.append((entry.name, why))
            elif not entry.name.startswith("."):
                others.append(entry.name)
    taken.others = sorted(others, key=os.fsencode)
    for name, why in sorted(odd, key=lambda one: os.fsencode(one[0])):
        taken.refuse(name, why)


def _again(name: str) -> tuple[int, bytes]:
    """How often it was handed in before, as Canvas counts it."""
    match = re.search(r"-(\d{1,9})\.py$", name)
    return int(match[1]) if match else 0, os.fsencode(name)
