"""`watch`'s hold on the process that grades: start it, ask for a grading, stop one, end it.

Never waits: what comes back is taken in when there is something to read. A process that does not obey is ended and
another one started. Must never import torch.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from typing import Any

from drills.catalog import ROOT
from drills.errors import GraderFailed
from drills.sandbox.isolation import Isolation

PATIENCE = 3.0
"""Seconds in which a grading that is to stop has stopped, or its process is ended."""

START_SECONDS = 120.0
FAREWELL = 2.0


@dataclass(frozen=True)
class Job:
    """What to grade: a lesson's stem, its exercises, and the one whose verdict is wanted first ("" for none)."""

    lesson: str
    exercises: tuple[str, ...]
    first: str = ""


class Engine:
    """The grading process. target, device, timeout: as for `grade.py`."""

    def __init__(self, target: str, device: str, timeout: float, isolation: Isolation) -> None:
        self.facts = {"target": target, "device": device, "timeout": timeout}
        self.isolation = isolation
        self.last = 0
        self.running = 0
        self.ready = False
        self.job: Job | None = None
        self.waiting: Job | None = None
        self.stop_by = 0.0
        self.deaths = 0
        self._start()

    def fileno(self) -> int:
        """For select."""
        return self.sock.fileno()

    def ask(self, job: Job) -> int:
        """Grade this, in place of what runs or waits; the number that its messages carry."""
        self.last += 1
        self.waiting = job
        if self.running:
            self._stop()
        else:
            self._send()
        return self.last

    def cancel(self) -> None:
        """Stop what runs and forget what waits."""
        self.last += 1
        self.waiting = None
        if self.running:
            self._stop()

    def take(self) -> list[dict[str, Any]]:
        """What has come for the newest grading. GraderFailed if the process ends without being told to."""
        found = []
        for message in self._messages():
            over = "stopped" in message or "whole" in message or "broken" in message
            if "ready" in message:
                self.ready = True
                self._send()
            elif message["run"] == self.last and "stopped" not in message:
                found.append(message)
            if over:
                self.running, self.stop_by, self.deaths, self.job = 0, 0.0, 0, None
                self._send()
        return found

    def look_after(self) -> float | None:
        """Ends a process that does not stop, and starts another. Seconds until it wants to be asked again, or None."""
        if not self.stop_by:
            return None
        left = self.stop_by - time.monotonic()
        if left > 0:
            return left
        self._end(now=True)
        self._start()
        return None

    def close(self) -> None:
        """End the process and all that it started."""
        self._end(now=False)

    def _start(self) -> None:
        self.ready, self.running, self.stop_by, self.rest = False, 0, 0.0, b""
        self.sock, there = socket.socketpair()
        self.sock.setblocking(False)
        self.trouble = tempfile.TemporaryFile()  # noqa: SIM115  as long as the process
        arguments = [sys.executable, "-m", "drills.study.watch_serve"]
        arguments += [str(there.fileno()), self.isolation.name, str(os.getpid())]
        with there:
            self.process = subprocess.Popen(
                arguments,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                stdin=subprocess.DEVNULL,
                stdout=self.trouble,
                stderr=self.trouble,
                pass_fds=[there.fileno()],
                start_new_session=True,
            )

    def _send(self) -> None:
        job, self.waiting = (self.waiting, None) if self.ready and not self.running else (None, self.waiting)
        if job is None:
            return
        self.running, self.job = self.last, job
        head = {"run": self.last, "lesson": job.lesson, "exercises": list(job.exercises), "first": job.first}
        with contextlib.suppress(OSError):  # its end is seen when it is read from
            self.sock.send(json.dumps(head | self.facts).encode() + b"\n")

    def _stop(self) -> None:
        if not self.stop_by:
            self.stop_by = time.monotonic() + PATIENCE
            self.process.send_signal(signal.SIGINT)

    def _messages(self) -> list[dict[str, Any]]:
        try:
            while part := self.sock.recv(1 << 20):
                self.rest += part
            self._died()
            return []
        except BlockingIOError:
            pass
        except OSError:
            self._died()
            return []
        *lines, self.rest = self.rest.split(b"\n")
        return [json.loads(line) for line in lines]

    def _died(self) -> None:
        """It ended by itself. Another takes its place and its work; that too ends without an answer: GraderFailed."""
        self.process.wait()
        self.trouble.seek(0)
        lines = self.trouble.read().decode("utf-8", "replace").strip().splitlines()
        self.deaths += 1
        if self.deaths > 1 or not self.ready:
            says = lines[-1] if lines else f"exit code {self.process.returncode}"
            raise GraderFailed(f"the process that grades ended: {says}. python grade.py doctor  says what to do")
        self.waiting = self.waiting or self.job
        self._end(now=True)
        self._start()

    def _end(self, now: bool) -> None:
        """Hang up, at which it ends by itself, and its workers with it; killed if it does not or cannot yet."""
        self.sock.close()
        if self.ready and not now:
            self.process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(FAREWELL)
        self.process.kill()
        self.process.wait()
        self.trouble.close()
