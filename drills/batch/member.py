"""One worker process as the batch's own process holds it: started, spoken to, ended. Decides nothing."""

from __future__ import annotations

import contextlib
import json
import math
import os
import signal
import socket
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from drills.catalog import ROOT

CLOSE_SECONDS = 3.0


@dataclass
class Adopted:
    """A process that became this one's child when its parent ended. pid: as it says, None until it has."""

    pid: int | None = None

    def kill(self) -> None:
        """At once; of one that has not said who it is, the end of its socket is the end."""
        if self.pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    def wait(self, seconds: float | None = None) -> None:
        """Until it has ended; TimeoutExpired after so many seconds."""
        deadline = time.monotonic() + (math.inf if seconds is None else seconds)
        with contextlib.suppress(ChildProcessError):
            while self.pid is not None and os.waitpid(self.pid, os.WNOHANG)[0] == 0:
                if time.monotonic() > deadline:
                    raise subprocess.TimeoutExpired("a worker", seconds or 0.0)
                time.sleep(0.01)
        self.pid = None


@dataclass
class Member:
    """state: "starting", "idle" or "busy". task: the submission it has in hand, and the how-manieth attempt it is.

    since: when it came into this state. heard: when it last said something. rest: the beginning of its next line.
    """

    process: subprocess.Popen | Adopted
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
        return cls.start_together(command, log, 1)[0]

    @classmethod
    def start_together(cls, command: tuple[str, ...], log: Path, count: int) -> list[Member]:
        """So many at once: the first is started, and forks the others when it has imported what all need.

        The descriptors of all their sockets, with commas, are added to the command. The others become children of this
        process, which must adopt orphans.
        """
        pairs = [socket.socketpair() for _ in range(count)]
        numbers = [there.fileno() for _, there in pairs]
        with log.open("ab") as output:
            process = subprocess.Popen(
                [*command, ",".join(map(str, numbers)), str(os.getpid())],
                pass_fds=numbers,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
            )
        for _, there in pairs:
            there.close()
        processes = [process, *(Adopted() for _ in pairs[1:])]
        return [cls(one, here, time.monotonic()) for one, (here, _) in zip(processes, pairs, strict=True)]

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
