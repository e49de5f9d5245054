"""The terminal while `watch` runs: single keys without Enter, signals as events, and everything put back at the end.

Works without a terminal too: then there are no keys. Must never decide what a key means.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import termios
import tty
from types import FrameType, TracebackType

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
NUDGES = (signal.SIGWINCH, signal.SIGCONT)


class Terminal:
    """Use it as `with Terminal() as terminal`. ending: the signal that says to stop, 0 before one came."""

    def __init__(self) -> None:
        self.ending = 0
        self.keyed = False
        self.resized = False
        self.before: list | None = None
        self.handlers: dict[int, object] = {}

    def __enter__(self) -> Terminal:
        self.woken, self.wake = socket.socketpair()
        self.woken.setblocking(False)
        self.wake.setblocking(False)
        for number in (*ENDING, *NUDGES):
            if signal.getsignal(number) != signal.SIG_IGN:  # nohup, or a job in the background
                self.handlers[number] = signal.signal(number, self._on_signal)
        self.keyed = self._may_read_keys()
        if self.keyed:
            self.before = termios.tcgetattr(sys.stdin.fileno())
            self._key_by_key()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.before is not None:
            with contextlib.suppress(termios.error, OSError):  # it may have been hung up
                termios.tcsetattr(sys.stdin.fileno(), termios.TCSADRAIN, self.before)
        for number, handler in self.handlers.items():
            signal.signal(number, handler)
        self.woken.close()
        self.wake.close()

    def sources(self) -> list[object]:
        """What to select on."""
        return [self.woken, *([sys.stdin] if self.keyed else [])]

    def keys(self) -> str:
        """The keys typed since the last time; a terminal that has gone away ends `watch`."""
        try:
            data = os.read(sys.stdin.fileno(), 1024)
        except OSError:
            data = b""
        if not data:
            self.ending = self.ending or signal.SIGHUP
        text = data.decode("utf-8", "ignore")
        return "" if text.startswith("\x1b") else text  # an arrow or a function key means nothing here

    def nudged(self) -> bool:
        """Whether the window has another size, or `watch` runs again after Ctrl-Z: the screen is to be drawn anew."""
        with contextlib.suppress(BlockingIOError):
            while self.woken.recv(4096):
                pass
        was, self.resized = self.resized, False
        return was

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if number in ENDING:
            self.ending = self.ending or number
        else:
            self.resized = True
            if number == signal.SIGCONT and self.before is not None:
                self.keyed = self._may_read_keys()
                self._key_by_key()
        with contextlib.suppress(OSError):
            self.wake.send(b"!")

    def _key_by_key(self) -> None:
        if not self.keyed:
            return
        with contextlib.suppress(termios.error, OSError):
            tty.setcbreak(sys.stdin.fileno(), termios.TCSADRAIN)

    def _may_read_keys(self) -> bool:
        """Whether there is a keyboard, and it is ours: a job in the background would be stopped for reading."""
        try:
            return sys.stdin.isatty() and os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
        except (OSError, ValueError, AttributeError):  # closed, or none at all
            return False
