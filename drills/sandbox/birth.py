"""What a forked process does first: give up what was its parent's, and take on its own limits.

Runs before anything of the new process's own. Must never leave it a descriptor or a variable that it has no need of.
"""

from __future__ import annotations

import contextlib
import ctypes
import io
import os
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from drills.sandbox import environment, limits

TITLE = b"drills: runs graded code"
"""What lists of processes show in place of the grader's command line."""


def live(parent: int, caps: limits.Caps, descriptors: list[int], run: Callable[[socket.socket], None]) -> NoReturn:
    """In a process that the zygote has just forked: run `run` with the first of the descriptors, then exit.

    descriptors: a socket; then, if there is a second, where stdout and stderr go.
    """
    status = 70
    try:
        os.setsid()
        limits.die_with_parent(parent)
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        if len(descriptors) > 1:
            os.dup2(descriptors[1], 1)
            os.dup2(descriptors[1], 2)
            os.close(descriptors[1])
        limits.apply(caps)
        run(socket.socket(fileno=descriptors[0]))
        status = 0
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        with contextlib.suppress(BaseException):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)


def forget(control: int) -> None:
    """Drop what the parent had open and in its environment: descriptors, handlers, standard streams, variables."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN if number in (signal.SIGINT, signal.SIGPIPE) else signal.SIG_DFL)
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    for entry in os.listdir("/proc/self/fd"):
        if int(entry) > 2 and int(entry) != control:
            with contextlib.suppress(OSError):
                os.close(int(entry))
    sys.stdin, sys.stdout, sys.stderr = (_stream(n) for n in range(3))
    remembered = environment.kept(os.environ)
    os.environ.clear()
    _erase_first_words()
    os.environ.update(remembered)


def _stream(number: int) -> io.TextIOWrapper:
    """Standard input or output; what was printed is out line by line, also of a process that is ended later."""
    return io.TextIOWrapper(io.FileIO(number, "rw"[number > 0], closefd=False), line_buffering=number > 0)


def _erase_first_words() -> None:
    """Overwrite the command line and the environment that this process's memory, and /proc, still hold from its start.

    A forked process has its parent's: a seed given as an option, a token in a variable.
    """
    with contextlib.suppress(OSError, ValueError):
        fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        first, after_words, first_variable, after = map(int, fields[45:49])
        for begin, end, title in ((first, after_words, TITLE), (first_variable, after, b"")):
            if 0 < begin < end < begin + (1 << 22):
                ctypes.memset(begin, 0, end - begin)
                ctypes.memmove(begin, title, min(len(title), end - begin - 1))
    sys.argv[:], sys.orig_argv[:] = [""], [""]
