"""Folders that one confined process may write to: made before it starts, measured while it runs, removed after it.

Runs in the zygote. What is in such a folder was written by graded code: nothing in it is opened, followed or believed.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import time

PREFIX = "drills-private-"
STALE_SECONDS = 24 * 3600.0
MOST_ENTRIES = 5000


def make() -> str:
    """A fresh folder that only this user may enter. Old ones, whose zygote was killed, are removed on the way."""
    where = tempfile.gettempdir()
    with contextlib.suppress(OSError), os.scandir(where) as entries:
        for entry in entries:
            if entry.name.startswith(PREFIX) and _is_stale(entry):
                remove(entry.path)
    return tempfile.mkdtemp(prefix=PREFIX, dir=where)


def size(folder: str, enough: int) -> int:
    """Bytes that the files in it take, or at least `enough` where that, or too many files, are found on the way."""
    total = entries = 0
    waiting = [folder]
    while waiting and total < enough:
        with contextlib.suppress(OSError), os.scandir(waiting.pop()) as found:
            for entry in found:
                entries += 1
                if entries > MOST_ENTRIES:
                    return enough
                with contextlib.suppress(OSError):
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    else:
                        total += entry.stat(follow_symlinks=False).st_blocks * 512
    return total


def remove(folder: str) -> None:
    """The folder and all in it, whatever its form."""
    try:
        shutil.rmtree(folder)
    except FileNotFoundError:
        return
    except (OSError, RecursionError):
        # Nested deeper than Python follows. The command has no such limit.
        with contextlib.suppress(OSError):
            os.waitpid(os.posix_spawnp("rm", ["rm", "-rf", "--", folder], os.environ), 0)


def _is_stale(entry: os.DirEntry) -> bool:
    found = entry.stat(follow_symlinks=False)
    return found.st_uid == os.getuid() and time.time() - found.st_mtime > STALE_SECONDS
