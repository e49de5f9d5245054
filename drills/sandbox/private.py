"""Folders that one confined process may write to: made before it starts, measured while it runs, removed after it.

Runs in the zygote. What is in such a folder was written by graded code: nothing in it is opened, followed or believed.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import time

PREFIX = "drills-private-"
STALE_SECONDS = 24 * 3600.0
MOST_ENTRIES = 5000
DEEPEST = 32


def make() -> str:
    """A fresh folder that only this user may enter. Old ones, whose zygote was killed, are removed on the way."""
    where = tempfile.gettempdir()
    with contextlib.suppress(OSError), os.scandir(where) as entries:
        for entry in entries:
            if entry.name.startswith(PREFIX) and _is_stale(entry):
                remove(entry.path)
    return tempfile.mkdtemp(prefix=PREFIX, dir=where)


def size(folder: str, enough: int) -> int:
    """Bytes that the files in it take; at least `enough` where that, too many files, or too deep a folder is found."""
    total = entries = 0
    waiting = [(folder, 0)]
    while waiting and total < enough:
        place, depth = waiting.pop()
        with contextlib.suppress(OSError), os.scandir(place) as found:
            for entry in found:
                entries += 1
                if entries > MOST_ENTRIES or depth > DEEPEST:
                    return enough
                with contextlib.suppress(OSError):
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append((entry.path, depth + 1))
                    else:
                        total += entry.stat(follow_symlinks=False).st_blocks * 512
    return total


def remove(folder: str) -> None:
    """The folder and all in it, however deep, and whatever its modes."""
    for command in (["rm", "-rf", "--"], ["chmod", "-R", "u+rwx", "--"], ["rm", "-rf", "--"]):
        if os.path.lexists(folder):
            null = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in range(3)]
            os.waitpid(os.posix_spawnp(command[0], [*command, folder], os.environ, file_actions=null), 0)


def _is_stale(entry: os.DirEntry) -> bool:
    found = entry.stat(follow_symlinks=False)
    return found.st_uid == os.getuid() and time.time() - found.st_mtime > STALE_SECONDS
