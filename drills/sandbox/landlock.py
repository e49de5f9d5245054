"""The kernel's Landlock: this process, and what it starts, may open no file but those named.

System calls by ctypes, since the C library has no functions for them. What each version of the interface adds is asked
for only where it is there; `drills.sandbox.seccomp` refuses by other means what the older ones let through.
"""

from __future__ import annotations

import ctypes
import functools
import os
import stat
import struct
from collections.abc import Iterable

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
VERSION = 1
PATH_BENEATH = 1
PR_SET_NO_NEW_PRIVS = 38

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR, REMOVE_DIR, REMOVE_FILE = (1 << bit for bit in range(6))
MAKE_DIR, MAKE_REG = 1 << 7, 1 << 8
REFER, TRUNCATE, IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
OF_A_FILE = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV

READ = READ_FILE | READ_DIR
RUN = READ | EXECUTE
KEEP = READ | WRITE_FILE | REMOVE_DIR | REMOVE_FILE | MAKE_DIR | MAKE_REG | REFER | TRUNCATE
"""Everything that can be done with plain files and folders; no links, pipes, sockets or devices are made."""

DEVICE = READ_FILE | WRITE_FILE | IOCTL_DEV

ALL_FILES = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 4: (1 << 15) - 1, 5: (1 << 16) - 1}
ALL_TCP = 0b11
ALL_SCOPES = 0b11
"""Abstract sockets and signals."""


@functools.cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def version() -> int:
    """The version of the kernel's interface; OSError where there is none."""
    return _call(CREATE_RULESET, None, 0, VERSION)


def no_new_privileges() -> None:
    """From here on no exec gives more rights, by a set-user-id bit or otherwise."""
    if _libc().prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_NO_NEW_PRIVS) failed")


def restrict(allowed: Iterable[tuple[str, int]]) -> None:
    """Shut this process in for good. allowed: paths with their rights; a path that is not there is left out."""
    abi = version()
    files = ALL_FILES[min(abi, max(ALL_FILES))]
    fields = [files, ALL_TCP, ALL_SCOPES][: 1 if abi < 4 else 2 if abi < 6 else 3]
    attributes = struct.pack(f"={len(fields)}Q", *fields)
    ruleset = _call(CREATE_RULESET, attributes, len(attributes), 0)
    try:
        for path, rights in allowed:
            _add(ruleset, path, rights & files)
        no_new_privileges()
        _call(RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)


def _add(ruleset: int, path: str, rights: int) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # what is not there needs no leave
    try:
        if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
            rights &= OF_A_FILE
        if rights:
            _call(ADD_RULE, ruleset, PATH_BENEATH, struct.pack("=Qi", rights, descriptor), 0)
    finally:
        os.close(descriptor)


def _call(number: int, *arguments: object) -> int:
    # A bare int would be passed as a C int, and the kernel reads whole registers.
    given = [ctypes.c_long(one) if isinstance(one, int) else one for one in arguments]
    result = _libc().syscall(ctypes.c_long(number), *given)
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"Landlock: {os.strerror(number)}")
    return result
