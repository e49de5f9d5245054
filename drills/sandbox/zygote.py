"""The zygote: a process with torch loaded that forks workers on request, watches them, and buries them.

It runs no graded code itself and knows no seed. It must never block on a child, and nothing that it forked, or that
those forked in turn, may live longer than it does.

Requests and reports are JSON, one a packet. In: {"do": "fork", "id", "kind", "config", "caps"} with the child's
descriptors attached, {"do": "kill", "id"}, {"do": "ask", "id"} (where is it? see halted.py). Out: {"id", "status",
"reason"} when a child and its family are gone.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib
import json
import os
import select
import signal
import socket
import sys
from typing import Any

from drills.sandbox import birth, brood, limits, private
from drills.sandbox.brood import Child
from drills.sandbox.isolation import Isolation

KINDS = {
    "worker": "drills.sandbox.worker",
    "gate": "drills.instruments.gate_worker",
    "probe": "drills.sandbox.probe",
    "zygote": "drills.sandbox.zygote",
}
"""What can be forked: the module whose `serve(sock, config)` the child runs. descriptors: a socket, then output."""

FOR_CALLS = (
    "triton.language",
    "drills.sandbox.worker",
    "drills.sandbox.alone",
    "drills.instruments.interpreter",
    "drills.instruments.one_call",
)
FOR_COMPILING = (
    "triton.compiler",
    "triton.compiler.code_generator",
    "triton.language.extra.libdevice",
    "drills.instruments.gate_compile",
    "drills.instruments.gate_kernels",
)
FEW_COLLECTIONS = (100_000, 50, 50)
"""The interpreter makes many short-lived objects: looking for cycles among them each 700 costs a tenth of the time."""

PACKET = 64 << 10
WATCH_SECONDS = 0.03


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
            left = list(self.running.values())
            for pid in self.running:
                brood.kill(pid)
            self.running.clear()
            brood.sweep(self.running)
            for child in left:
                child.clear()

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
            return True
        for pid, child in self.running.items():
            if child.id == request["id"]:
                brood.kill(pid) if request["do"] == "kill" else brood.ask(pid)
        return True

    def fork(self, request: dict[str, Any], descriptors: list[int]) -> None:
        parent, kind = os.getpid(), request["kind"]
        child = Child(request["id"], limits.Caps(**request["caps"]), bounded=self.isolation.bounds_files)
        try:
            config = {**request["config"], "descriptors": descriptors[2:]}
            if self.isolation.gives_folder(kind, config):
                child.folder = config["private"] = private.make()
            pid = os.fork()
        except OSError as error:
            child.reason = f"no process to be had: {error.strerror}"
            self.report(child, status=70 << 8)
            pid = -1
        if pid == 0:
            birth.live(parent, child.caps, descriptors, lambda sock: self.become(sock, kind, config))
        for descriptor in descriptors:
            os.close(descriptor)
        if pid > 0:
            self.running[pid] = child

    def report(self, child: Child, status: int) -> None:
        """Tell the parent how a child ended; nothing is left of it by then."""
        child.clear()
        with contextlib.suppress(OSError):
            self.control.send(json.dumps({"id": child.id, "status": status, "reason": child.reason}).encode())

    def become(self, sock: socket.socket, kind: str, config: dict[str, Any]) -> None:
        """In a forked process: let go of what is the zygote's own, confine the process, and let it serve."""
        self.control.close()
        os.close(self.wake)
        os.close(self.woken)
        module = importlib.import_module(KINDS[kind])
        self.isolation.confine(kind, config)
        module.serve(sock, {**config, "seal": functools.partial(self.isolation.seal, kind, config)})

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
            brood.sweep(self.running)
        for child, status in ended:
            self.report(child, status)

    def watch(self) -> None:
        """Kill a worker whose family holds too much."""
        orphans = brood.orphans(self.running) if self.running else []
        for pid, child in self.running.items():
            child.reason = child.reason or brood.overdrawn(pid, child, self.own, orphans)
            if child.reason:
                brood.kill_family(pid)


def start(control: socket.socket, isolation: Isolation) -> None:
    """In a process of its own: become the zygote. Never returns.

    It is not killed with its parent: it sees the parent's end of `control` close, and has orphans to bury first.
    """
    try:
        if os.getsid(0) != os.getpid():
            os.setsid()
        birth.forget(control.fileno())
        _serve(control, isolation)
    finally:
        os._exit(0)


def serve(sock: socket.socket, config: dict[str, Any]) -> None:
    """In a process that a zygote forked: be one too, with Triton loaded, the interpreter's or the compiler's.

    config["purpose"]: "cpu" or "cuda", for workers on that device, or "compile", for gates.
    """
    purpose = config["purpose"]
    if purpose == "cpu":
        os.environ["TRITON_INTERPRET"] = "1"
    for module in FOR_COMPILING if purpose == "compile" else FOR_CALLS:
        # What does not load here does not load in the worker either, and it is the worker that says why.
        with contextlib.suppress(Exception):
            importlib.import_module(module)
    with contextlib.suppress(Exception):  # what it notes of Triton and Python's library, each of its children has
        if purpose == "cpu":
            importlib.import_module("drills.instruments").install()
        elif purpose == "compile":
            importlib.import_module("drills.instruments.gate_answer").prepare()
    _serve(sock, Isolation.named(config["isolation"]))


def _serve(control: socket.socket, isolation: Isolation) -> None:
    limits.adopt_orphans()
    isolation.prepare()
    gc.freeze()
    gc.set_threshold(*FEW_COLLECTIONS)
    Zygote(control, isolation).run()


def main() -> None:
    """Started by exec: `python -m drills.sandbox.zygote CONTROL ISOLATION`."""
    from drills.sandbox import later

    with later.without_parts():
        import torch  # noqa: F401

    isolation = Isolation.named(sys.argv[2])
    start(socket.socket(fileno=int(sys.argv[1])), isolation)


if __name__ == "__main__":
    main()
