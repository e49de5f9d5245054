"""A Canvas gradebook export as it stands: which columns it has, and its lines, of which only those that are changed are
written anew.

The format is that of Canvas's own exporter and importer: `Student` (or `LastName`, `FirstName`), `ID`, `SIS User ID`,
`SIS Login ID`, `Section`, then assignments as "Name (12345)" and read-only totals; a "Points Possible" line; a line of
"Manual Posting" in some courses. Commas or semicolons, with a byte-order mark or without.
"""

from __future__ import annotations

import csv
import difflib
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from drills.errors import WrongUse

LARGEST = 64 << 20
_TOTALS = re.compile(r"(Current|Final) (Score|Points|Grade)|Override (Score|Grade|Status)")
_WITH_ID = re.compile(r"(.*\S)\s*\((\d+)\)\s*$", re.DOTALL)
_PEOPLE = ("Student", "LastName", "FirstName", "ID", "SIS User ID", "SIS Login ID", "Integration ID", "Root Account")
_POSTING = re.compile(r"\s*(Muted|Manual Posting.*)?\s*$", re.IGNORECASE)


@dataclass
class Line:
    """One record of the file: its cells, and its text as it stood, line end included."""

    cells: list[str]
    raw: str

    def cell(self, index: int | None) -> str:
        """The cell, without blanks around it; "" if there is none."""
        return self.cells[index].strip() if index is not None and index < len(self.cells) else ""


@dataclass
class Export:
    """A file that was read. header, possible: the first line and "Points Possible"; students: the students' lines."""

    path: Path
    bom: bool
    separator: str
    newline: str
    lines: list[Line]
    students: list[Line]
    possible: Line | None

    @property
    def header(self) -> Line:
        """The line with the names of the columns."""
        return self.lines[0]

    def people(self, name: str) -> int | None:
        """The number of a column about people, such as "SIS Login ID"; None if the export has none."""
        return next((index for index, one in enumerate(self.header.cells) if one.strip() == name), None)

    def assignments(self) -> dict[int, str]:
        """The columns that scores may be written to, by number."""
        return {
            index: name.strip()
            for index, name in enumerate(self.header.cells)
            if index > (self.people("Section") or 0)
            and name.strip() not in _PEOPLE
            and not _TOTALS.search(name)
            and not (self.possible and "read only" in self.possible.cell(index).lower())
            and (_WITH_ID.match(name) or (self.possible and self.possible.cell(index)))
        }

    def column(self, wanted: str) -> int:
        """The number of the assignment's column, named with or without "(12345)"; WrongUse if it is not one column."""
        known = self.assignments()
        if not known:
            raise WrongUse(f"{self.path} has no column of an assignment: make the assignment in Canvas, export again")
        if not wanted and len(known) == 1:
            return next(iter(known))
        fold = " ".join(wanted.split()).casefold()
        found = [index for index, name in known.items() if fold in _names(name)]
        if len(found) == 1:
            return found[0]
        listed = ", ".join(f'"{known[index]}"' for index in (found or known))
        if found:
            raise WrongUse(f'{self.path}: "{wanted}" could be {listed}: give the number too')
        if not wanted:
            raise WrongUse(f"{self.path} has several assignments: choose one with --assignment: {listed}")
        near = difflib.get_close_matches(fold, [one for name in known.values() for one in _names(name)], n=1)
        hint = next((f'did you mean "{name}"?' for name in known.values() if near and near[0] in _names(name)), listed)
        raise WrongUse(f'{self.path} has no assignment "{wanted}": {hint}')

    def text(self, changed: dict[int, Line]) -> str:
        """The whole file; changed: number of a line → what stands there now. All other lines are as they were."""
        parts = ["\ufeff"] if self.bom else []
        for index, line in enumerate(self.lines):
            parts.append(self._written(changed[index].cells) if index in changed else line.raw)
        return "".join(parts)

    def _written(self, cells: list[str]) -> str:
        out = io.StringIO()
        csv.writer(out, delimiter=self.separator, lineterminator=self.newline).writerow(cells)
        return out.getvalue()


def read(path: Path) -> Export:
    """The export in `path`; WrongUse, in one line, if it cannot be read or is none."""
    try:
        if path.stat().st_size > LARGEST:
            raise WrongUse(f"{path} is larger than {LARGEST >> 20} MiB: is it a gradebook?")
        raw = path.read_bytes().decode("utf-8")
    except OSError as error:
        raise WrongUse(f"{path} cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise WrongUse(f"{path} is not UTF-8: use the file as Canvas exports it, not saved again elsewhere") from None
    text = raw.removeprefix("\ufeff")
    first = text.split("\n", 1)[0]
    separator = ";" if first.count(";") > first.count(",") else ","
    newline = "\r\n" if first.endswith("\r") else "\n"
    try:
        lines = list(_records(text, separator))
    except csv.Error as error:
        raise WrongUse(f"{path} is no CSV: {error}") from None
    if not lines or not _is_header(lines[0]):
        raise WrongUse(f"{path} is no Canvas gradebook: its first line must begin with Student, ID")
    possible = next((line for line in lines[1:] if "Points Possible" in line.cell(0)), None)
    students = [line for line in lines[1:] if line is not possible and not all(map(_POSTING.match, line.cells))]
    return Export(path, raw != text, separator, newline, lines, students, possible)


def _is_header(line: Line) -> bool:
    return len(line.cells) > 2 and (
        ("Student" in line.cells[0] and "ID" in line.cells[1])
        or ("LastName" in line.cells[0] and "FirstName" in line.cells[1] and "ID" in line.cells[2])
    )


def _records(text: str, separator: str) -> Iterator[Line]:
    taken: list[str] = []

    def lines() -> Iterator[str]:
        for line in io.StringIO(text, newline=""):
            taken.append(line)
            yield line

    for cells in csv.reader(lines(), delimiter=separator):
        yield Line(cells, "".join(taken))
        taken.clear()


def _names(title: str) -> list[str]:
    """What an assignment may be called: with its number, without, or the number alone."""
    match = _WITH_ID.match(title)
    names = [title, match[1], match[2]] if match else [title]
    return [" ".join(one.split()).casefold() for one in names]
