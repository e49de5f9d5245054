"""The parent's end of a connection to one untrusted process: messages under a deadline, and what it prints.

Never blocks longer than the deadline and never raises anything but `Late`, `Gone`, `Flood` and `Malformed`.
"""

from __future__ import annotations

import contextlib
import hmac
import os
import select
import socket
import time

from drills.instruments import own_words
from drills.sandbox import halted, wire
from drills.sandbox.outcome import FLOOD_LIMIT, PRINTED_LIMIT, clean

CHUNK = 1 << 20
PAUSE = 0.02
"""Seconds without a further line, after which the lines that a process is at are all there."""


class Late(Exception):
    """No whole answer before the deadline."""


class Gone(Exception):
    """The other side has closed its end."""


class Flood(Exception):
    """More was printed than anybody reads."""


class Channel:
    """sock: a connected stream socket. output: the reading end of the pipe that is the process's stdout and stderr.

    key: by which the process proves that an answer is its own.
    """

    def __init__(self, sock: socket.socket, output: int, key: bytes) -> None:
        self.sock = sock
        self.key = key
        self.output = output
        self.printed = b""
        self.count = 0
        sock.setblocking(False)
        os.set_blocking(output, False)

    def send(self, data: bytes, deadline: float) -> None:
        """Write it all."""
        rest = memoryview(data)
        while rest:
            self._wait(deadline, writing=True)
            try:
                rest = rest[self.sock.send(rest[:CHUNK]) :]
            except BlockingIOError:
                continue
            except OSError as error:
                raise Gone from error

    def receive(self, deadline: float) -> wire.Message:
        """The next message."""
        header = self._read(wire.HEADER.size, deadline)
        text, blob = wire.sizes(header, wire.REPLY)
        data = self._read(text + blob, deadline)
        if not hmac.compare_digest(self._read(own_words.KEY, deadline), own_words.proof(self.key, header + data)):
            raise wire.Malformed("what the grader did not write")
        return wire.decode(data[:text], data[text:], wire.REPLY)

    def _read(self, size: int, deadline: float) -> bytes:
        parts: list[bytes] = []
        while size:
            self._wait(deadline, writing=False)
            try:
                part = self.sock.recv(min(size, CHUNK))
            except BlockingIOError:
                continue
            except OSError as error:
                raise Gone from error
            if not part:
                raise Gone
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def _wait(self, deadline: float, writing: bool) -> None:
        """Until the socket is ready, taking in what is printed meanwhile."""
        while True:
            reading = [self.output] if self.output >= 0 else []
            left = deadline - time.monotonic()
            if left <= 0:
                raise Late
            there, here = ([], [self.sock]) if writing else ([self.sock], [])
            readable, writable, _ = select.select(reading + there, here, [], left)
            if self.output in readable:
                self.drain()
            if self.sock in readable or writable:
                return

    def drain(self) -> None:
        """Take in what has been printed; `Flood` when it is too much since `take_printed`."""
        while self.output >= 0:
            try:
                part = os.read(self.output, CHUNK)
            except BlockingIOError:
                return
            if not part:
                os.close(self.output)
                self.output = -1
                return
            self.count += len(part)
            self.printed += part[: PRINTED_LIMIT + 1 - len(self.printed)]
            if self.count > FLOOD_LIMIT:
                raise Flood

    def told_where(self, deadline: float) -> list[tuple[str, int]]:
        """The lines that a process which was asked (halted.py) says it is at; none if it has not by the deadline."""
        frames: list[tuple[str, int]] = []
        with contextlib.suppress(Flood):
            while self.output >= 0 and (left := deadline - time.monotonic()) > 0:
                if not select.select([self.output], [], [], min(left, PAUSE) if frames else left)[0]:
                    break
                self.drain()
                before, frames = halted.parted(self.printed.decode(errors="surrogateescape"))
        if frames:
            self.printed = before.encode(errors="surrogateescape")
        return frames

    def take_printed(self) -> str:
        """What was printed since the last time: cleaned, capped."""
        with contextlib.suppress(Flood):
            self.drain()
        text, self.printed, self.count = self.printed.decode(errors="replace"), b"", 0
        return clean(text)

    def close(self) -> None:
        """Close both ends here."""
        self.sock.close()
        if self.output >= 0:
            os.close(self.output)
            self.output = -1
