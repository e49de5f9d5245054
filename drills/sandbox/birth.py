"""What a forked process does first: give up what was its parent's, and take on its own limits.

Runs before anything of the new process's own. Must never leave it a descriptor or a variable that it has no need of.
"""

from __future__ import annotations

import contextlib
import io
import os
import signal
import socket
import sys
from collections.abc import Callable
from typing import NoReturn

from drills.sandbox import limits

KEPT_VARIABLES = ("PATH", "HOME", "LANG", "TMPDIR", "TZ", "LD_LIBRARY_PATH", "VIRTUAL_ENV", "USER", "LOGNAME")
KEPT_PREFIXES = ("LC_", "PYTHON", "TRITON_", "CUDA_", "NVIDIA_", "TORCH_", "PYTORCH_", "OMP_", "MKL_", "OPENBLAS_")


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
    sys.stdin, sys.stdout, sys.stderr = (io.TextIOWrapper(io.FileIO(n, "rw"[n > 0], closefd=False)) for n in range(3))
    for name in list(os.environ):
        if name not in KEPT_VARIABLES and not name.startswith(KEPT_PREFIXES):
            del os.environ[name]
