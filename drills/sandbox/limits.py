"""What a process may use, and how the kernel is told: prctl, rlimits, and a look at /proc.

Works on the calling process or only reads; must never signal anything.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
from dataclasses import asdict, dataclass
from pathlib import Path

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Caps:
    """Limits of one worker and all its descendants.

    memory: resident bytes, all together, beyond what the zygote holds itself. processes, threads: how many, all
    together. file: bytes of one file that they write. written: bytes of all files in their private folder, where they
    have one. open_files: descriptors of one process.
    """

    memory: int = 2 << 30
    processes: int = 32
    threads: int = 512
    file: int = 256 << 20
    written: int = 512 << 20
    open_files: int = 512

    def to_json(self) -> dict[str, int]:
        """A JSON-able dict; `Caps(**it)` is the same again."""
        return asdict(self)


UNCAPPED = Caps(memory=1 << 60, processes=1 << 30, threads=1 << 30, written=1 << 60)
"""For a zygote: what it forks is capped by itself."""


def die_with_parent(parent: int) -> None:
    """The kernel kills this process when `parent`, its parent, is gone; at once if it is gone already."""
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(0)


def adopt_orphans() -> None:
    """Descendants whose own parent ends become children of this process, whatever session they moved to."""
    _prctl(PR_SET_CHILD_SUBREAPER, 1)


def apply(caps: Caps) -> None:
    """Set the limits that the kernel itself keeps, for this process and what it starts. No core files."""
    for what, value in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, caps.file),
        (resource.RLIMIT_NOFILE, caps.open_files),
    ):
        hard = resource.getrlimit(what)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(what, (value, value))


def children(pid: int) -> list[int]:
    """Processes whose parent is `pid`, zombies included; none if it is gone."""
    found: list[int] = []
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            found += map(int, Path(f"/proc/{pid}/task/{task}/children").read_text().split())
    except FileNotFoundError:
        return found if os.path.exists("/proc/thread-self/children") else _children_by_scan(pid)
    except OSError:
        pass
    return found


def family(pid: int) -> list[int]:
    """`pid` and all its descendants."""
    found = [pid]
    for one in found:
        found += [child for child in children(one) if child not in found]
    return found


def threads(pid: int) -> int:
    """How many threads a process has; 0 if it is gone."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[17])
    except (OSError, IndexError):
        return 0


def resident(pid: int) -> int:
    """Bytes of memory that a process holds, pages shared with others included; 0 if it is gone."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE
    except (OSError, IndexError):
        return 0


def _children_by_scan(pid: int) -> list[int]:
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            fields = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            found.append(int(name))
    return found


def _prctl(option: int, value: int) -> None:
    if ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f"prctl({option}) failed")
