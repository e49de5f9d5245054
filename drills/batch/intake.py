"""Finds the submissions under a folder.

A submission is a sub-folder that holds `l4_merge_states.py` (or has it in `mine/`), or the files beside each other
that begin alike: `anna__l4_merge_states.py`, and `anna_123_4567_l4_merge_states-2.py` as Canvas names its downloads.

Looks at names and kinds only: must never open, follow or read what a stranger put there.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from drills import catalog
from drills.batch import names
from drills.batch.entries import LINK, kind
from drills.errors import WrongUse
from drills.report.submission import RENAME

_CANVAS = re.compile(r"([^\W\d_][^_]*(?:_late)?_\d+)_\d{4,}", re.IGNORECASE)
"""How a file begins that was downloaded from Canvas: whose it is, and the file's own number there."""

OF_TOOLS = {
    ".git", ".github", ".hg", ".svn", ".idea", ".vscode", ".venv", ".cache", ".ipynb_checkpoints", ".mypy_cache",
    ".pytest_cache", ".ruff_cache", ".Trash", ".Spotlight-V100", ".Trashes", ".fseventsd", "__MACOSX", "__pycache__",
    ".DS_Store", ".gitattributes", ".gitignore", ".gitkeep", "Thumbs.db", "desktop.ini",
}  # fmt: skip
"""Folders and files that no student made."""

ARCHIVES = (".zip", ".tar", ".gz", ".tgz", ".bz2", ".xz", ".7z", ".rar")

MOST_REFUSED = 1000
"""Lines about what lies beside the submissions and is none."""

OTHER_NAME = "not named as the files asked for"
OTHER_LESSON = "of lessons that are not graded here"

LONGEST_LIST = 240
"""Characters of the names in one line, so that its reason is never cut."""


@dataclass(frozen=True)
class Found:
    """A submission that was found. name: the folder's, or what its files begin with, as the file system has it.

    files: for a file set, file name → the lesson's file name; None for a folder. problem: why it cannot be graded.
    """

    name: str
    files: dict[str, str] | None = None
    problem: str = ""


def find(folder: Path, lessons: Iterable[str]) -> tuple[list[Found], list[str]]:
    """The submissions under `folder`, by name, and lines about what is none. lessons: the lesson files' names.

    What somebody may take for a submission has a line of its own; other files share one for their reason.
    WrongUse if `folder` cannot be read.
    """
    lessons = tuple(lessons)
    found: dict[str, Found] = {}
    sets: dict[str, dict[str, str]] = {}
    refused: list[tuple[str, str]] = []
    strays: dict[str, list[str]] = {}
    for entry in _entries(folder):
        what = kind(entry)
        prefix, lesson = _split(entry.name, lessons)
        if entry.name.startswith(".") and (what != "file" or lesson):
            refused.append((entry.name, f"its name begins with a dot{RENAME}"))
        elif what == "folder":
            found[entry.name] = Found(entry.name, problem=_problem(entry.name))
        elif what == LINK and os.path.isdir(entry.path):
            found[entry.name] = Found(entry.name, problem=f"the folder is {what}")
        elif what != "file":
            refused.append((entry.name, what))
        elif prefix:
            sets.setdefault(prefix, {})[entry.name] = lesson
        elif lesson:
            refused.append((entry.name, "lies beside the submissions, in none of them"))
        elif why := _meant(entry.name, lessons):
            refused.append((entry.name, why))
        else:
            strays.setdefault(OTHER_LESSON if _of_another_lesson(entry.name) else OTHER_NAME, []).append(entry.name)
    for prefix, files in _joined(sets).items():
        if prefix in found:
            why = f"there is a folder {names.shown(prefix)} too, and that is graded"
            refused += [(name, why) for name in files]
        else:
            found[prefix] = Found(prefix, files, _problem(prefix))
    lines = [f"{names.shown(name)}: {why}" for name, why in refused]
    lines[MOST_REFUSED:] = ["and more"] if len(lines) > MOST_REFUSED else []
    lines += [f"{_listed(strays[why])}: {why}" for why in sorted(strays)]
    return [found[name] for name in sorted(found, key=os.fsencode)], lines


def _joined(sets: dict[str, dict[str, str]]) -> dict[str, dict[str, str]]:
    """The file sets, those of one student in Canvas as one, under the first one's name: every file has a number there.

    They stay apart where two of them are of the same lesson: they may be no numbers of Canvas.
    """
    students: dict[str, list[str]] = {}
    for prefix in sorted(sets, key=os.fsencode):
        match = _CANVAS.fullmatch(prefix)
        if match:
            students.setdefault(match[1], []).append(prefix)
    joined = dict(sets)
    for first, *more in students.values():
        lessons = [lesson for prefix in (first, *more) for lesson in set(sets[prefix].values())]
        if len(set(lessons)) == len(lessons):
            joined[first] = {name: lesson for prefix in (first, *more) for name, lesson in joined.pop(prefix).items()}
    return joined


def _entries(folder: Path) -> list[os.DirEntry]:
    """What is in the folder, by name; aside from what tools and macOS leave there."""
    try:
        with os.scandir(folder) as entries:
            shown = [entry for entry in entries if entry.name not in OF_TOOLS and not entry.name.startswith("._")]
    except OSError as error:
        raise WrongUse(f"{folder}: {error.strerror or error}") from None
    return sorted(shown, key=lambda entry: os.fsencode(entry.name))


def _problem(name: str) -> str:
    why = names.odd(name)
    return f"{why}{RENAME}" if why else ""


def _listed(strays: list[str]) -> str:
    """ "notes.txt, roster.csv and 3 more": as many names as go into a line, one at least."""
    shown = [names.shown(strays[0])]
    for name in strays[1:]:
        if sum(map(len, shown)) + len(names.shown(name)) > LONGEST_LIST:
            break
        shown.append(names.shown(name))
    more = len(strays) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def _meant(name: str, lessons: tuple[str, ...]) -> str:
    """Why a file is no submission that somebody may take for one; "" of all others, such as other lessons' files."""
    if name.lower().endswith(ARCHIVES):
        return "an archive, which is not unpacked"
    if _of_another_lesson(name):
        return ""
    alike = any(lesson.removesuffix(".py") in name for lesson in lessons)
    return "has another name than the files asked for" if alike or name.lower().endswith((".py", ".ipynb")) else ""


def _of_another_lesson(name: str) -> bool:
    """Asked of what is none of the lessons' that are graded."""
    return bool(_split(name, tuple(f"{one.stem}.py" for one in catalog.lessons()))[1])


def _split(name: str, lessons: tuple[str, ...]) -> tuple[str, str]:
    """ "anna__l4_merge_states.py" → ("anna", "l4_merge_states.py"); ("", the lesson) without a beginning of its own."""
    for lesson in lessons:
        match = re.fullmatch(rf"(?s:(.+?)[_-]+)?{re.escape(lesson.removesuffix('.py'))}(?:-\d+)?\.py", name)
        if match:
            return match[1] or "", lesson
    return "", ""
