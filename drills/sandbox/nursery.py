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

from drills.sandbox.isolation import PROCESS, Isolation
from drills.sandbox.limits import Caps
from drills.sandbox.outcome import Ended

PACKET = 64 << 10
BURIAL_SECONDS = 10.0
ROOT = Path(__file__).resolve().parents[2]


class Nursery:
    """A running zygote. Close it when done; if it is killed, the next fork starts another by exec."""

    def __init__(self, isolation: Isolation = PROCESS) -> None:
        self.isolation = isolation
        self.ended: dict[int, Ended] = {}
        self.last = 0
        self.control, there = _packet_pair()
        command = isolation.command(_arguments(there, isolation))
        self.pid = self._exec(command, there) if command else self._fork(there)
        there.close()

    def _fork(self, there: socket.socket) -> int:
        import torch  # noqa: F401  loaded once, here, for every worker to come

        parent = os.getpid()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            pid = os.fork()
        if pid == 0:
            from drills.sandbox import zygote

            zygote.start(there, self.isolation, parent)
        return pid

    def _exec(self, command: list[str], there: socket.socket) -> int:
        there.set_inheritable(True)
        return os.posix_spawnp(command[0], command, {**os.environ, "PYTHONPATH": str(ROOT)})

    def fork(self, kind: str, config: dict[str, Any], caps: Caps, sockets: list[socket.socket | int]) -> Child:
        """A new process of this kind (see zygote.KINDS) that holds these descriptors; the caller closes its own."""
        self.last += 1
        request = {"do": "fork", "id": self.last, "kind": kind, "config": config, "caps": caps.to_json()}
        packet = json.dumps(request).encode()
        numbers = [one if isinstance(one, int) else one.fileno() for one in sockets]
        try:
            socket.send_fds(self.control, [packet], numbers)
        except OSError:
            self._start_again()
            socket.send_fds(self.control, [packet], numbers)
        return Child(self, self.last)

    def _start_again(self) -> None:
        self._end()
        self.control, there = _packet_pair()
        arguments = _arguments(there, self.isolation)
        self.pid = self._exec(self.isolation.command(arguments) or arguments, there)
        there.close()

    def kill(self, number: int) -> None:
        """Ask for the end of one child and its family; `wait` says when it is done."""
        with contextlib.suppress(OSError):
            self.control.send(json.dumps({"do": "kill", "id": number}).encode())

    def wait(self, number: int, seconds: float) -> Ended | None:
        """How this child ended; None if it still runs after so long. A child of a lost zygote was killed with it."""
        deadline = time.monotonic() + seconds
        while number not in self.ended:
            left = deadline - time.monotonic()
            if not select.select([self.control], [], [], max(0.0, left))[0]:
                return None
            packet = self.control.recv(PACKET)
            if not packet:
                return Ended(int(signal.SIGKILL))
            report = json.loads(packet)
            self.ended[report["id"]] = Ended(report["status"], report["reason"])
        return self.ended[number]

    def close(self) -> None:
        """End the zygote and all that it forked; returns when they are gone."""
        self._end()

    def _end(self) -> None:
        self.control.close()
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

    def ended(self, seconds: float = 0.0) -> Ended | None:
        """How it ended; None if it still runs after so long."""
        return self.nursery.wait(self.number, seconds)


def _packet_pair() -> tuple[socket.socket, socket.socket]:
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def _arguments(control: socket.socket, isolation: Isolation) -> list[str]:
    return [sys.executable, "-m", "drills.sandbox.zygote", str(control.fileno()), isolation.name]
