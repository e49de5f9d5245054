"""The parent's hold on the zygote: start it, ask it for processes, end them, learn how they ended.

Must be started before a seed is drawn or a test is loaded, so that nothing of either is in the zygote's memory.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import sys
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from drills.sandbox import environment
from drills.sandbox.isolation import PROCESS, Isolation
from drills.sandbox.limits import UNCAPPED, Caps
from drills.sandbox.outcome import Ended

PACKET = 64 << 10
BURIAL_SECONDS = 10.0
ROOT = Path(__file__).resolve().parents[2]


class Nursery:
    """A running zygote. Close it when done; if it is killed, the next fork starts another.

    The first is forked from this process, or started by exec where the isolation asks for it. `branch` gives one that
    the first has forked in turn, with Triton loaded too.
    """

    def __init__(self, isolation: Isolation = PROCESS, root: Nursery | None = None, purpose: str = "") -> None:
        self.isolation = isolation
        self.root = root
        self.purpose = purpose
        self.ended: dict[int, Ended] = {}
        self.last = 0
        self.pid = 0
        self.child: Child | None = None
        self.branches: dict[str, Nursery] = {}
        self.control = self._start(again=False)

    def branch(self, purpose: str) -> Nursery:
        """The zygote for workers on a device ("cpu", "cuda") or for gates ("compile"); it lives as long as this one."""
        if purpose not in self.branches:
            self.branches[purpose] = Nursery(self.isolation, self, purpose)
        return self.branches[purpose]

    def _start(self, again: bool) -> socket.socket:
        here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        arguments = [sys.executable, "-m", "drills.sandbox.zygote", str(there.fileno()), self.isolation.name]
        with there:
            if self.root is not None:
                self.child = self.root.fork("zygote", self._config(), UNCAPPED, [there])
            elif command := self.isolation.command(arguments) or (arguments if again else None):
                there.set_inheritable(True)
                variables = {**environment.kept(os.environ), "PYTHONPATH": str(ROOT)}
                self.pid = os.posix_spawnp(command[0], command, variables)
            else:
                self.pid = self._fork(there)
        return here

    def _config(self) -> dict[str, str]:
        return {"purpose": self.purpose, "isolation": self.isolation.name}

    def _fork(self, there: socket.socket) -> int:
        import torch  # noqa: F401  loaded once, here, for every worker to come

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            pid = os.fork()
        if pid == 0:
            from drills.sandbox import zygote

            zygote.start(there, self.isolation)
        return pid

    def fork(self, kind: str, config: dict[str, Any], caps: Caps, sockets: list[socket.socket | int]) -> Child:
        """A new process of this kind (see zygote.KINDS) that holds these descriptors; the caller closes its own."""
        self.last += 1
        request = {"do": "fork", "id": self.last, "kind": kind, "config": config, "caps": caps.to_json()}
        packet = json.dumps(request).encode()
        numbers = [one if isinstance(one, int) else one.fileno() for one in sockets]
        try:
            socket.send_fds(self.control, [packet], numbers)
        except OSError:
            self._end()
            self.control = self._start(again=True)
            socket.send_fds(self.control, [packet], numbers)
        return Child(self, self.last)

    def kill(self, number: int) -> None:
        """Ask for the end of one child and its family; `wait` says when it is done."""
        self._request("kill", number)

    def ask(self, number: int) -> None:
        """Have one child print which lines it is at (see halted.py)."""
        self._request("ask", number)

    def _request(self, what: str, number: int) -> None:
        with contextlib.suppress(OSError):
            self.control.send(json.dumps({"do": what, "id": number}).encode())

    def wait(self, number: int, seconds: float) -> Ended | None:
        """How this child ended; None if it still runs after so long. A child of a lost zygote was killed with it."""
        deadline = time.monotonic() + seconds
        while number not in self.ended:
            left = deadline - time.monotonic()
            if not select.select([self.control], [], [], max(0.0, left))[0]:
                return None
            try:
                packet = self.control.recv(PACKET)
            except ConnectionResetError:  # it went with requests unread
                packet = b""
            if not packet:
                return Ended(int(signal.SIGKILL))
            report = json.loads(packet)
            self.ended[report["id"]] = Ended(report["status"], report["reason"])
        return self.ended[number]

    def close(self) -> None:
        """End the zygote and all that it forked; returns when they are gone."""
        for branch in self.branches.values():
            branch.control.close()  # all of them begin to end
        for branch in self.branches.values():
            branch.close()
        self._end()

    def _end(self) -> None:
        self.control.close()
        if self.child is not None:
            self.child.ended(BURIAL_SECONDS)
            return
        deadline = time.monotonic() + BURIAL_SECONDS
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(self.pid, os.WNOHANG)[0] == 0:
                if time.monotonic() > deadline:
                    os.kill(self.pid, signal.SIGKILL)
                time.sleep(0.002)


@dataclass(frozen=True)
class Child:
    """One process that the zygote forked."""

    nursery: Nursery
    number: int

    def kill(self) -> None:
        """End it and its family; returns when they are gone."""
        self.nursery.kill(self.number)
        self.nursery.wait(self.number, BURIAL_SECONDS)

    def ask(self) -> None:
        """Have it print which lines it is at."""
        self.nursery.ask(self.number)

    def ended(self, seconds: float = 0.0) -> Ended | None:
        """How it ended; None if it still runs after so long."""
        return self.nursery.wait(self.number, seconds)
