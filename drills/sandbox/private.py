"""Folders that one confined process may write to: made before it starts, measured while it runs, removed after it.

Runs in the zygote. What is in such a folder was written by graded code: nothing in it is opened, followed or believed.
"""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
import time
from collections.abc import Iterable, Iterator

from drills.sandbox import limits

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


def unlisted(folder: str, processes: Iterable[int], enough: int) -> int:
    """Bytes of files that lie in no folder any more, and that these processes still hold, where `folder` lies.

    At least `enough` where a process does not let itself be asked.
    """
    device, found = os.lstat(folder).st_dev, {}
    for pid in processes:
        try:
            for task in os.listdir(f"/proc/{pid}/task"):
                for place in _held(f"/proc/{pid}/task/{task}/fd"):
                    with contextlib.suppress(FileNotFoundError):
                        held = os.stat(place)
                        if held.st_dev == device and stat.S_ISREG(held.st_mode) and not held.st_nlink:
                            found[held.st_ino] = held.st_blocks * 512
            for number, size in _mapped(f"/proc/{pid}/maps", folder):
                found[number] = max(found.get(number, 0), size)
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended
        except OSError:
            if limits.resident(pid):  # else it is about to end
                return enough
    return sum(found.values())


def _held(descriptors: str) -> Iterator[str]:
    with os.scandir(descriptors) as found:
        yield from (entry.path for entry in found)


def _mapped(maps: str, folder: str) -> Iterator[tuple[int, int]]:
    """(number, bytes) of files of the folder's that are mapped to memory and are not there any more."""
    with open(maps, "rb") as lines:
        for line in lines:
            if line.endswith(b" (deleted)\n") and os.fsencode(folder) in line:
                span, _, _, _, number, _ = line.split(maxsplit=5)
                first, after = (int(one, 16) for one in span.split(b"-"))
                yield int(number), after - first


def remove(folder: str) -> None:
    """The folder and all in it, however deep, and whatever its modes."""
    for command in (["rm", "-rf", "--"], ["chmod", "-R", "u+rwx", "--"], ["rm", "-rf", "--"]):
        if os.path.lexists(folder):
            null = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in range(3)]
            os.waitpid(os.posix_spawnp(command[0], [*command, folder], os.environ, file_actions=null), 0)


def _is_stale(entry: os.DirEntry) -> bool:
    found = entry.stat(follow_symlinks=False)
    return found.st_uid == os.getuid() and time.time() - found.st_mtime > STALE_SECONDS
