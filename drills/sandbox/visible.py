"""Which files a confined process may see: Python, its packages, the system's libraries, two folders of the grader.

Lists paths, opens nothing. Must never list the repository itself, its solutions, its tests, or a home folder.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import sys
from pathlib import Path

PACKAGES = ("torch", "triton", "numpy", "safetensors")
SYSTEM = ("/usr", "/lib", "/lib32", "/lib64", "/libx32", "/bin", "/sbin", "/nix/store", "/gnu/store")
SETTINGS = ("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/localtime", "/etc/alternatives")
MACHINERY = ("__init__.py", "errors.py", "reserve.py", "sandbox", "instruments")
"""What of drills/ the running process needs; the rest knows what the right answers are."""

HARDWARE = ("/proc/cpuinfo", "/proc/meminfo", "/sys/devices/system/cpu", "/sys/devices/system/node")
"""torch asks what the processor can do when it first converts half precision."""

GPU_FILES = ("/proc/driver", "/proc/devices", "/proc/modules", "/sys")
OWN = "/proc/self"
"""CUDA names its threads there."""

GPU_DEVICES = ("nvidia", "dri")
PLAIN_DEVICES = ("null", "zero", "random", "urandom", "full")

DRILLS = Path(__file__).resolve().parents[1]
ROOT = DRILLS.parent


@functools.cache
def code() -> list[str]:
    """Folders that hold Python, its packages and the system's libraries; none of them holds the repository."""
    found = {*spelled(), os.path.dirname(os.path.realpath(sys.executable))}
    found |= {folder for folder in os.environ.get("LD_LIBRARY_PATH", "").split(":") if os.path.isdir(folder)}
    real = {os.path.realpath(one) for one in (*found, *SYSTEM) if os.path.exists(one)}
    return [part for one in outermost(real) for part in without(one, str(ROOT))]


@functools.cache
def spelled() -> frozenset[str]:
    """Folders of Python and its packages as Python itself names them in its frames: perhaps through a link."""
    found = {sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix}
    for name in PACKAGES:
        spec = importlib.util.find_spec(name)
        found |= {os.path.dirname(folder) for folder in spec.submodule_search_locations or ()} if spec else set()
    return frozenset(found)


def machinery() -> list[str]:
    """The grader's own files that the running process needs."""
    return [str(DRILLS / name) for name in MACHINERY]


def gpu_devices() -> list[str]:
    """Device files of GPUs."""
    return sorted(f"/dev/{name}" for name in os.listdir("/dev") if name.startswith(GPU_DEVICES))


def outermost(paths: set[str]) -> list[str]:
    """The paths that lie in none of the others."""
    kept: list[str] = []
    for path in sorted(paths):
        if path != "/" and not any(path == one or path.startswith(f"{one}/") for one in kept):
            kept.append(path)
    return kept


def without(folder: str, hidden: str) -> list[str]:
    """`folder`, or, if `hidden` lies in it, what it holds beside that."""
    if hidden == folder:
        return []
    if not hidden.startswith(f"{folder}/"):
        return [folder]
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return []
    return [part for name in names for part in without(os.path.join(folder, name), hidden)]
