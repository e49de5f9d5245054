"""The parent's view of a worker: call a graded function, get a Reply. Always a Reply, whatever the worker does.

One Worker serves one graded file. Its process is replaced after every death. Must never import the graded file.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import socket
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from drills.errors import GraderFailed
from drills.instruments import own_words
from drills.instruments.notes import CallOptions, Notes, Status
from drills.sandbox import halted, outcome, wire
from drills.sandbox.channel import Channel, Flood, Gone, Late
from drills.sandbox.checked import build
from drills.sandbox.limits import Caps
from drills.sandbox.nursery import Child, Nursery
from drills.sandbox.outcome import Death, Raised, Reply

KIND = re.compile(r"[a-z_]{1,40}")
START_SECONDS = 60.0
"""For the grader's own part of a worker's start (importing triton, CUDA): no learner's code runs in it."""

WHERE_SECONDS = 0.2
"""For a process that was late to say where it is. It needs a hundredth of that, on a busy machine more."""


@dataclass(frozen=True)
class Call:
    """One call. names: argument names by position. inplace: positions of arguments that may and shall change."""

    exercise: str
    args: tuple[Any, ...]
    names: tuple[str, ...] = ()
    inplace: tuple[int, ...] = ()
    options: CallOptions = field(default_factory=CallOptions)


@dataclass(frozen=True)
class Loaded:
    """How loading the graded file went: the functions that it defines, or why there are none."""

    functions: tuple[str, ...] = ()
    raised: Raised | None = None
    death: Death | None = None
    printed: str = ""


class Worker:
    """file: the graded file. device: "cpu" (interpreter) or "cuda". timeout: seconds for one call.

    kernels: a folder in which a GPU's kernels may stay compiled from one process to the next; None: in none.
    """

    def __init__(
        self,
        nursery: Nursery,
        file: Path,
        device: str,
        timeout: float,
        caps: Caps | None = None,
        kernels: Path | None = None,
    ) -> None:
        self.nursery = nursery
        self.file = file
        self.device = device
        self.timeout = timeout
        self.caps = caps or Caps()
        self.kernels = kernels
        self.status: Status | None = None
        self.child: Child | None = None
        self.channel: Channel | None = None
        self.loading: Loaded | None = None
        self.nonce = ""
        self.text: bytes | None = None
        self.done = False

    def start(self) -> None:
        """Fork the process and let it begin to load, without waiting for it."""
        here, there = socket.socketpair()
        reading, writing = os.pipe()
        self.nonce = secrets.token_hex(8)
        key = secrets.token_bytes(own_words.KEY)
        config = {"file": str(self.file), "device": self.device, "nonce": self.nonce, "key": key.hex()}
        config |= {"kernels": str(self.kernels)} if self.kernels else {}
        source = self._source()
        try:
            self.child = self.nursery.fork("worker", config, self.caps, [there, writing, *source])
        finally:
            for descriptor in source:
                os.close(descriptor)
            there.close()
            os.close(writing)
        self.channel = Channel(here, reading, key)
        self.loading = None
        self.done = False

    def load(self) -> Loaded:
        """Wait until the graded file is loaded. Raises GraderFailed if the grader's own part of the start fails."""
        if self.channel is None:
            self.start()
        if self.loading is None:
            self.status = self._first_words()
            self.loading = self._loaded()
        return self.loading

    def call(self, call: Call, meanwhile: Callable[[], None] | None = None) -> Reply:
        """Call a graded function. A file that does not load gives a Reply that says so.

        meanwhile: work of the caller's that is done while the process answers; no time of the call's own.
        """
        if self.child is not None and (self.done or self.child.ended() is not None):
            self.close()
        loaded = self.load()
        if loaded.raised or loaded.death:
            return Reply(raised=loaded.raised, death=loaded.death, printed=loaded.printed)
        try:
            data = wire.encode(wire.Message(self._head(call), call.args), wire.CALL)
        except wire.Malformed as error:
            raise GraderFailed(f"the arguments of {call.exercise} do not fit the wire: {error}") from error
        deadline = time.monotonic() + self.timeout
        answer = self._exchange(data, deadline, meanwhile=meanwhile)
        if isinstance(answer, Death):
            return Reply(death=answer, printed=self._bury())
        try:
            reply = reply_of(answer)
        except wire.Malformed as error:
            reply = Reply(death=outcome.malformed(error))
        reply.printed = self._bury() if reply.death else self.channel.take_printed()
        return reply

    def dismiss(self) -> None:
        """No more calls are expected: have the process end, without waiting for it."""
        if self.child is not None and not self.done:
            self.done = True
            self.nursery.kill(self.child.number)

    def close(self) -> None:
        """End the process, if there is one."""
        self._bury()

    def _source(self) -> list[int]:
        """A descriptor of the graded file's text, which the process may not be able to open; none if it is not there.

        Read at the first start: what replaces a dead process runs the same text.
        """
        if self.text is None:
            try:
                self.text = self.file.read_bytes()
            except OSError:
                return []  # the process says so, as it says what else is wrong with a file
        descriptor = os.memfd_create("graded")
        os.write(descriptor, self.text)
        return [descriptor]

    def _head(self, call: Call) -> dict[str, Any]:
        self.nonce = secrets.token_hex(8)
        return {
            "nonce": self.nonce,
            "exercise": call.exercise,
            "names": list(call.names),
            "inplace": list(call.inplace),
            "options": asdict(call.options),
        }

    def _first_words(self) -> Status:
        answer = self._exchange(b"", time.monotonic() + START_SECONDS)
        if isinstance(answer, Death):
            printed = self._bury()
            raise GraderFailed(f"the worker did not start: {answer.words}\n{printed}".rstrip())
        if "broken" in answer.head:
            self._bury()
            raise GraderFailed(str(answer.head["broken"]))
        return build(Status, answer.head["status"])

    def _loaded(self) -> Loaded:
        answer = self._exchange(b"", time.monotonic() + self.timeout, importing=True)
        if isinstance(answer, Death):
            return Loaded(death=answer, printed=self._bury())
        head = answer.head
        try:
            if "raised" in head:
                return Loaded(raised=Raised.from_json(head["raised"]), printed=self.channel.take_printed())
            return Loaded(functions=tuple(build(list[str], head.get("functions"))))
        except wire.Malformed as error:
            return Loaded(death=outcome.malformed(error), printed=self._bury())

    def _exchange(
        self, data: bytes, deadline: float, importing: bool = False, meanwhile: Callable[[], None] | None = None
    ) -> wire.Message | Death:
        try:
            if data:
                self.channel.send(data, deadline)
            if meanwhile is not None:
                begun = time.monotonic()
                meanwhile()
                deadline += time.monotonic() - begun
            answer = self.channel.receive(deadline)
            if answer.head.get("nonce") != self.nonce:
                raise wire.Malformed("an answer to another question")
            return answer
        except Late:
            return outcome.timed_out(self.timeout, importing, *self._where())
        except Flood:
            return outcome.flooded()
        except wire.Malformed as error:
            return outcome.malformed(error)
        except Gone:
            return outcome.died(self.child.ended(1.0))

    def _where(self) -> tuple[int | None, str]:
        """The line at which the process still is, and its source; None and "" if it does not say."""
        self.child.ask()
        frames = self.channel.told_where(time.monotonic() + WHERE_SECONDS)
        return halted.place(frames, str(self.file), self.text or b"")

    def _bury(self) -> str:
        """Kill the process and its family; what it had printed."""
        printed = ""
        if self.child is not None:
            self.child.kill()
        if self.channel is not None:
            printed = self.channel.take_printed()
            self.channel.close()
        self.child = self.channel = self.loading = None
        return printed


def plausible(notes: Notes) -> Notes:
    """The notes, if no kind is a sentence and no count negative; else `Malformed`."""
    moved = [one for launch in (*notes.launches, *notes.copies) for one in launch.traffic.values()]
    if any(not KIND.fullmatch(one.kind) for one in notes.findings):
        raise wire.Malformed("a finding of no known kind")
    if any(count < 0 for one in moved for count in vars(one).values()):
        raise wire.Malformed("a count below 0")
    return notes


def reply_of(answer: wire.Message) -> Reply:
    """The reply in a worker's answer; `Malformed` if there is none in it."""
    head = answer.head
    if "oversized" in head:
        raise wire.Oversized(outcome.clean(str(head["oversized"]), outcome.TEXT_LIMIT))
    notes = plausible(build(Notes, head.get("notes"), outcome.clean))
    if "lost" in head:
        return Reply(death=outcome.device_lost(str(head["lost"])), notes=notes)
    if "broken" in head:
        return Reply(death=outcome.broken(str(head["broken"])), notes=notes)
    if "raised" in head:
        return Reply(raised=Raised.from_json(head["raised"]), notes=notes)
    after: dict[int, Any] = {}
    with contextlib.suppress(TypeError, ValueError):
        results, changed = answer.tree
        after = {int(position): value for position, value in changed}
        return Reply(results=results, after=after, notes=notes)
    raise wire.Malformed("an answer without results")
