"""The zygote: a process with torch loaded that forks workers on request, watches them, and buries them.

It runs no graded code itself and knows no seed. It must never block on a child, and nothing that it forked, or that
those forked in turn, may live longer than it does.

Requests and reports are JSON, one a packet. In: {"do": "fork", "id", "kind", "config", "caps"} with the child's
descriptors attached, {"do": "kill", "id"}. Out: {"id", "status", "reason"} when a child and its family are gone.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import io
import json
import os
import select
import signal
import socket
import sys
import time
from dataclasses import dataclass
from typing import Any

from drills.sandbox import limits
from drills.sandbox.isolation import Isolation

KINDS = {
    "worker": "drills.sandbox.worker",
    "gate": "drills.instruments.gate_worker",
    "probe": "drills.sandbox.probe",
}
"""What can be forked: the module whose `serve(sock, config)` the child runs. descriptors: a socket, then output."""

PACKET = 64 << 10
WATCH_SECONDS = 0.05
SWEEP_SECONDS = 5.0
KEPT_VARIABLES = ("PATH", "HOME", "LANG", "TMPDIR", "TZ", "LD_LIBRARY_PATH", "VIRTUAL_ENV", "USER", "LOGNAME")
KEPT_PREFIXES = ("LC_", "PYTHON", "TRITON_", "CUDA_", "NVIDIA_", "TORCH_", "PYTORCH_", "OMP_", "MKL_", "OPENBLAS_")


@dataclass
class Child:
    """A forked process. id: the parent's name for it. reason: why the zygote killed it, "" if it did not."""

    id: int
    caps: limits.Caps
    reason: str = ""


class Zygote:
    """The loop. `control` is a SOCK_SEQPACKET socket to the parent."""

    def __init__(self, control: socket.socket, isolation: Isolation) -> None:
        self.control = control
        self.isolation = isolation
        self.running: dict[int, Child] = {}
        self.wake, self.woken = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self.own = limits.resident(os.getpid())

    def run(self) -> None:
        """Serve until the parent goes away; then end everything."""
        signal.set_wakeup_fd(self.woken, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        try:
            while self.turn():
                pass
        finally:
            for pid in self.running:
                _kill(pid)
            self.running.clear()
            self.sweep()

    def turn(self) -> bool:
        """One round; False when the parent is gone."""
        ready, _, _ = select.select([self.control, self.wake], [], [], WATCH_SECONDS if self.running else None)
        if self.wake in ready:
            os.read(self.wake, 4096)
        self.reap()
        if self.control in ready and not self.obey():
            return False
        self.watch()
        return True

    def obey(self) -> bool:
        packet, descriptors, _, _ = socket.recv_fds(self.control, PACKET, 4)
        if not packet:
            return False
        request = json.loads(packet)
        if request["do"] == "fork":
            self.fork(request, descriptors)
        else:
            for pid, child in self.running.items():
                if child.id == request["id"]:
                    _kill(pid)
        return True

    def fork(self, request: dict[str, Any], descriptors: list[int]) -> None:
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            _become(parent, self, request, descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        self.running[pid] = Child(request["id"], limits.Caps(**request["caps"]))

    def reap(self) -> None:
        """Take in every child that has ended; report those that were asked for once their families are gone too."""
        ended = []
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                break
            if pid == 0:
                break
            if pid in self.running:
                ended.append((self.running.pop(pid), status))
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(pid, signal.SIGKILL)
        if ended:
            self.sweep()
        for child, status in ended:
            with contextlib.suppress(OSError):
                self.control.send(json.dumps({"id": child.id, "status": status, "reason": child.reason}).encode())

    def sweep(self) -> None:
        """Kill every child that nobody asked for, and its family: what an ended worker left behind."""
        deadline = time.monotonic() + SWEEP_SECONDS
        while time.monotonic() < deadline:
            strays = [pid for pid in limits.children(os.getpid()) if pid not in self.running]
            if not strays:
                return
            for stray in strays:
                for pid in limits.family(stray):
                    _kill(pid)
            for stray in strays:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(stray, os.WNOHANG)
            time.sleep(0.001)

    def watch(self) -> None:
        """Kill a worker whose family holds too much memory or too many processes."""
        for pid, child in self.running.items():
            family = limits.family(pid)
            if len(family) > child.caps.processes:
                child.reason = "processes"
            elif sum(max(0, limits.resident(one) - self.own) for one in family) > child.caps.memory:
                child.reason = "memory"
            if child.reason:
                for one in family:
                    _kill(one)


def _kill(pid: int) -> None:
    for kill in (os.killpg, os.kill):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            kill(pid, signal.SIGKILL)


def _become(parent: int, zygote: Zygote, request: dict[str, Any], descriptors: list[int]) -> None:
    """In the forked child: give up what is the zygote's, take on the limits, and serve. Never returns."""
    status = 70
    try:
        os.setsid()
        limits.die_with_parent(parent)
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        zygote.control.close()
        os.close(zygote.wake)
        os.close(zygote.woken)
        if len(descriptors) > 1:
            os.dup2(descriptors[1], 1)
            os.dup2(descriptors[1], 2)
            os.close(descriptors[1])
        sock = socket.socket(fileno=descriptors[0])
        limits.apply(limits.Caps(**request["caps"]))
        zygote.isolation.confine(request["kind"], request["config"])
        importlib.import_module(KINDS[request["kind"]]).serve(sock, request["config"])
        status = 0
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        with contextlib.suppress(BaseException):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)


def start(control: socket.socket, isolation: Isolation, parent: int) -> None:
    """In a process of its own: become the zygote. Never returns."""
    try:
        os.setsid()
        limits.die_with_parent(parent)
        limits.adopt_orphans()
        _forget(control.fileno())
        gc.freeze()
        Zygote(control, isolation).run()
    finally:
        os._exit(0)


def _forget(control: int) -> None:
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


def main() -> None:
    """Started by exec: `python -m drills.sandbox.zygote CONTROL ISOLATION`."""
    import torch  # noqa: F401

    isolation = Isolation.named(sys.argv[2])
    start(socket.socket(fileno=int(sys.argv[1])), isolation, os.getppid())


if __name__ == "__main__":
    main()
