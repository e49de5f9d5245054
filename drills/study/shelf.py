"""Changes a learner's file without ever losing what they wrote: the old text is shelved in mine/.backup/ first.

Backups are plain files called `l4_merge_states.0007.2026-03-01T18-05-01.py`; the number orders them, whatever the
clock says. Every change is a whole new file under the old name, or none.
"""

from __future__ import annotations

import datetime
import re
from pathlib import Path

from drills.errors import GraderFailed, WrongUse
from drills.files import write_atomically

FOLDER = ".backup"
_NAME = re.compile(r"(?P<stem>\w+)\.(?P<number>\d{4,})\.[\dT-]+\.py")


def read(path: Path) -> bytes | None:
    """The bytes of a learner's file; None if there is none, WrongUse if it cannot be read."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise WrongUse(f"{_short(path)} cannot be read: {error.strerror or error}. Nothing was changed.") from None


def replace(path: Path, data: bytes) -> Path | None:
    """Writes `data` to `path` after its old text was shelved; the backup, or None if there was nothing to keep.

    GraderFailed, in one line and with nothing changed, if either cannot be written.
    """
    old = read(path)
    backup = None
    try:
        path.parent.mkdir(exist_ok=True)
        if old is not None and old != data:
            backup = _shelve(path, old)
        write_atomically(path, data)
    except OSError as error:
        at = error.filename or path
        raise GraderFailed(
            f"{_short(Path(str(at)))} cannot be written: {error.strerror or error}. Nothing was changed."
        ) from None
    return backup


def backups(folder: Path, stem: str | None = None) -> list[Path]:
    """The backups in `folder` (mine/), newest first; only those of one lesson if `stem` is given."""
    found = []
    for path in (folder / FOLDER).glob("*.py"):
        match = _NAME.fullmatch(path.name)
        if match and stem in (None, match["stem"]):
            found.append((int(match["number"]), path))
    return [path for _, path in sorted(found, reverse=True)]


def original(backup: Path) -> Path:
    """The file that a backup was made of."""
    return backup.parent.parent / f"{backup.name.split('.', 1)[0]}.py"


def _shelve(path: Path, data: bytes) -> Path:
    folder = path.parent / FOLDER
    folder.mkdir(exist_ok=True)
    newest = backups(path.parent)[:1]
    number = int(newest[0].name.split(".")[1]) + 1 if newest else 1
    stamp = datetime.datetime.now().strftime("%Y-%m-%dT%H-%M-%S")
    backup = folder / f"{path.stem}.{number:04}.{stamp}.py"
    write_atomically(backup, data)
    return backup


def _short(path: Path) -> str:
    return "/".join(path.parts[-2:])
