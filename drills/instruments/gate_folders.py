"""The folders in which the compile gate's processes keep temporary files, one a process; each removes its own.

A process that is killed, by a cap or by what it compiles, leaves its folder behind: the run that started it clears it
away at its end, by the mark that all of a run's folders have. What a killed run leaves goes an hour later.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import time
from pathlib import Path

PREFIX = "drills-gate-"
STALE_S = 3600.0


def make(mark: str = "") -> str:
    """A new folder with this mark."""
    return tempfile.mkdtemp(prefix=f"{PREFIX}{mark}-")


def clear(mark: str) -> None:
    """Remove what is left of the folders with this mark, whose processes have ended or are about to."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}{mark}-*"):
        shutil.rmtree(folder, ignore_errors=True)


def sweep() -> None:
    """Remove the folders of processes that were killed together with their run, long ago."""
    with contextlib.suppress(OSError):
        for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
            found = folder.lstat()
            if found.st_uid == os.getuid() and time.time() - found.st_mtime > STALE_S:
                shutil.rmtree(folder, ignore_errors=True)
