"""One worker process as the batch's own process holds it: started, spoken to, ended. Decides nothing."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from drills.catalog import ROOT

CLOSE_SECONDS = 3.0


@dataclass
class Member:
    """state: "starting", "idle" or "busy". task: the submission it has in hand, and the how-manieth attempt it is.

    since: when it came into this state. heard: when it last said something. rest: the beginning of its next line.
    """

    process: subprocess.Popen
    sock: socket.socket
    since: float
    state: str = "starting"
    task: tuple[str, int] | None = None
    heard: float = 0.0
    done: int = 0
    rest: bytes = b""

    @classmethod
    def start(cls, command: tuple[str, ...], log: Path) -> Member:
        """A new one; a descriptor of its socket and the number of this process are added to the command."""
        here, there = socket.socketpair()
        with there, log.open("ab") as output:
            process = subprocess.Popen(
                [*command, str(there.fileno()), str(os.getpid())],
                pass_fds=[there.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
            )
        return cls(process, here, time.monotonic())

    def say(self, **what: Any) -> None:
        """Send one object; a worker that has gone is noticed when it is listened to."""
        with contextlib.suppress(OSError):
            self.sock.sendall(json.dumps(what).encode() + b"\n")

    def hang_up(self) -> None:
        """Let it end by itself if it has nothing in hand, else kill it; `wait` for it afterwards."""
        self.sock.close()
        if self.state != "idle":
            self.process.kill()

    def wait(self) -> None:
        """Until it has ended, which it is made to do."""
        try:
            self.process.wait(CLOSE_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
