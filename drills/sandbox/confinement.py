"""A forked process shuts itself in, before it loads graded code: files, system calls, privileges.

Works on the calling process only and cannot be undone. Whatever of it fails raises OSError: a process that is not
shut in must never serve.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import socket
import struct
import tempfile
from typing import Any

from drills.sandbox import landlock, seccomp, visible

PR_SET_DUMPABLE, PR_CAPBSET_DROP = 4, 24
CAPABILITIES_3 = 0x20080522
GPU = "cuda"


def compiles(kind: str, config: dict[str, Any]) -> bool:
    """Whether a process of this kind runs compilers, and so starts processes and writes files."""
    return kind == "gate" or on_gpu(config)


def on_gpu(config: dict[str, Any]) -> bool:
    """Whether a process uses a GPU."""
    return config.get("device") == GPU


def files(kind: str, config: dict[str, Any]) -> list[tuple[str, int]]:
    """What a process of this kind may open, and how.

    A worker on the CPU reads and writes nothing else. A worker on a GPU and a gate compile, in a private folder.
    """
    rights = landlock.RUN if compiles(kind, config) else landlock.READ
    allowed = [(path, rights) for path in (*visible.code(), *visible.SETTINGS, *visible.machinery())]
    allowed += [(path, landlock.READ) for path in visible.HARDWARE]
    allowed += [(f"/dev/{name}", landlock.DEVICE) for name in visible.PLAIN_DEVICES]
    if on_gpu(config):
        allowed += [(path, landlock.READ) for path in visible.GPU_FILES]
        allowed += [(path, landlock.DEVICE | landlock.READ) for path in visible.gpu_devices()]
        allowed.append((visible.OWN, landlock.READ | landlock.WRITE_FILE | landlock.TRUNCATE))
    allowed += [(config[name], landlock.KEEP | rights) for name in ("private", "kernels") if name in config]
    return allowed


def hide_files(kind: str, config: dict[str, Any]) -> None:
    """Landlock for this kind of process; temporary files go to its private folder, if it has one."""
    private = config.get("private")
    if private:
        tempfile.tempdir = private
        os.environ.update(TMPDIR=private, TRITON_HOME=private, TRITON_CACHE_DIR=os.path.join(private, "cache"))
        os.environ["CUDA_CACHE_PATH"] = os.path.join(private, "cuda")
    if os.path.isdir(config.get("kernels", "")):
        os.environ["TRITON_CACHE_DIR"] = config["kernels"]
    landlock.restrict(files(kind, config))


def refuse_calls(processes: bool, listening: bool = False) -> None:
    """The system calls' filter; no privileges are left, and none can be had."""
    landlock.no_new_privileges()
    drop_privileges()
    seccomp.restrict(processes, listening)


def tried() -> str:
    """Shuts this process in for a trial; why that does not work, "" if it does."""
    try:
        landlock.restrict([("/usr", landlock.READ)])
        refuse_calls(processes=False)
    except OSError as error:
        return str(error)
    for what, attempt in (("files", lambda: os.open(__file__, os.O_RDONLY)), ("the network", socket.socket)):
        try:
            attempt()
            return f"Landlock and seccomp are there but {what} can be reached"
        except PermissionError:
            continue
        except OSError as error:
            return str(error)
    return ""


def drop_privileges() -> None:
    """All capabilities, also those of root."""
    libc = ctypes.CDLL(None, use_errno=True)
    for number in range(64):
        if libc.prctl(PR_CAPBSET_DROP, number, 0, 0, 0) != 0:
            break
    if libc.capset(struct.pack("=Ii", CAPABILITIES_3, 0), bytes(24)) != 0:
        raise OSError(ctypes.get_errno(), "capset failed")


def untraceable() -> None:
    """No process of the same user may trace this one or open its memory."""
    ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)


def die_first() -> None:
    """Where the machine runs out of memory, the kernel ends this process before others."""
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")
