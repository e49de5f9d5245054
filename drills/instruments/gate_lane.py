"""One conversation with one process of the compile gate, in a thread of the parent.

The other side runs graded code: it may lie, stop, die or talk without end. Whatever it does, a question gets an answer
here or None within its seconds, and a lane that got none is never used again.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import secrets
import socket
import threading
import time
from collections.abc import Callable
from typing import Any, Protocol

from drills.instruments import own_words

MAX_ANSWER = 64 << 10
LATE_S = 2.0
"""Seconds after a question's own limit at which the other side counts as lost."""

START_S = 15.0
"""Seconds more for the first question: the other side has torch and triton to load."""

UNSTOPPED = {
    "id": None,
    "ok": False,
    "kind": "compile_timeout",
    "error": "the compiler did not finish in time, nor did it end by itself",
}
"""In place of an answer where a process is past its own alarm, which only graded code can have switched off."""


class Job(Protocol):
    """Something to ask: `question(id)` is the JSON object, `seconds` how long the answer may take."""

    seconds: float

    def question(self, number: int) -> dict[str, Any]: ...


def is_obituary(answer: dict[str, Any]) -> bool:
    """Whether this says that there will be no answer: it belongs to no question, and is never good news."""
    return answer.get("id") is None and answer.get("ok") is False


class Lane(threading.Thread):
    """Takes jobs and hands in answers until there are no more jobs (take gives None) or the other side is lost.

    take() blocks until there is a job. done(job, answer) gets any JSON value, or None for no answer.
    """

    def __init__(self, sock: socket.socket, take: Callable[[], Job | None], done: Callable[[Job, Any], None]) -> None:
        super().__init__(name="compile gate", daemon=True)
        self.sock = sock
        self.take = take
        self.done = done
        self.rest = b""
        self.asked = 0
        self.key, self.fresh = secrets.token_bytes(own_words.KEY), True

    def run(self) -> None:
        """The thread's work; ends with the socket closed."""
        with self.sock:
            while (job := self.take()) is not None:
                answer = self.ask(job)
                lost = answer is None or answer.get("id") is None
                self.done(job, answer)
                if lost:
                    break
            self.finish()

    def ask(self, job: Job) -> dict[str, Any] | None:
        """The answer to this job's question, an obituary ("id": null), UNSTOPPED, or None."""
        self.asked = secrets.randbits(52)  # nothing that graded code sends before it is asked is an answer
        patience = job.seconds + LATE_S + (START_S if self.fresh else 0)
        until = time.monotonic() + patience
        try:
            self.sock.settimeout(patience)
            question = {**job.question(self.asked), "key": self.key.hex()} if self.fresh else job.question(self.asked)
            self.fresh = False
            self.sock.sendall(json.dumps(question).encode() + b"\n")
            while (line := self.line(until)) is not None:
                said, _, text = line.partition(b" ")
                proven = hmac.compare_digest(said, own_words.proof(self.key, text).hex().encode())
                answer = json.loads(text if proven else line) if line.strip() else None
                if isinstance(answer, dict) and (proven and answer.get("id") == self.asked or is_obituary(answer)):
                    return answer
        except (OSError, ValueError, RecursionError):
            pass
        return UNSTOPPED if time.monotonic() >= until else None

    def line(self, until: float) -> bytes | None:
        """The next line; None at the end of the stream, at `until`, or when it is too long."""
        while b"\n" not in self.rest:
            self.sock.settimeout(max(0.01, until - time.monotonic()))
            piece = self.sock.recv(1 << 16)
            self.rest += piece
            if not piece or len(self.rest) > MAX_ANSWER or time.monotonic() > until:
                return None
        line, self.rest = self.rest.split(b"\n", 1)
        return line

    def finish(self) -> None:
        """Tell the other side that this is all, and wait a little until it has cleaned up and gone."""
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_WR)
            self.sock.settimeout(LATE_S)
            while self.sock.recv(1 << 16):
                continue

    def hang_up(self) -> None:
        """From another thread: end the stream now, also in the middle of a question."""
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_WR)
