"""Writes a result where the user asked for it: a file as a whole or not at all, a pipe or a terminal as it is."""

from __future__ import annotations

from pathlib import Path

from drills.errors import WrongUse
from drills.files import write_atomically


def put(path: Path, text: str) -> None:
    """Writes `text` to `path`; WrongUse if that cannot be done."""
    try:
        if path.exists() and not path.is_file():
            path.write_text(text, encoding="utf-8")  # a pipe or a terminal
        else:
            write_atomically(path, text)
    except OSError as error:
        raise WrongUse(f"{path} cannot be written: {error.strerror or error}") from None
