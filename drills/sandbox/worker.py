"""The worker: the process that runs graded code, one call after another, under the instruments.

Everything in it is at the mercy of the graded code, so nothing it says is believed beyond the values it returns.
It must never hold an expected result, a seed or a test.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from drills.instruments.notes import CallOptions, Notes
from drills.sandbox import learner, wire


def serve(sock: Any, config: dict[str, Any]) -> None:
    """Say what is on, load the graded file, answer calls until the parent hangs up."""
    import torch

    torch.set_num_threads(1)
    sys.stdin = open(os.devnull)  # noqa: SIM115  for as long as the process lives
    line = Line(sock)
    graded = Graded(Path(config["file"]), config["device"])
    line.say({"nonce": config["nonce"], "status": graded.status})
    loading = graded.load()
    line.say({"nonce": config["nonce"], **loading})
    while "raised" not in loading:
        request = line.hear()
        if request is None:
            return
        head, tree = graded.answer(request)
        try:
            line.say(head, tree)
        except wire.Oversized as error:
            line.say({"nonce": head["nonce"], "oversized": str(error)})


class Line:
    """The worker's end of the connection."""

    def __init__(self, sock: Any) -> None:
        self.sock = sock

    def say(self, head: dict[str, Any], tree: Any = None) -> None:
        """Send one message; what was printed before it is on its way before it."""
        data = wire.encode(wire.Message(head, tree), wire.REPLY)
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except Exception:
                continue
        self.sock.sendall(data)

    def hear(self) -> wire.Message | None:
        """The next request; None when the parent has hung up."""
        header = self._read(wire.HEADER.size)
        if header is None:
            return None
        text, blob = wire.sizes(header, wire.CALL)
        return wire.decode(self._read(text) or b"", self._read(blob) or b"", wire.CALL)

    def _read(self, size: int) -> bytes | None:
        data = bytearray(size)
        view = memoryview(data)
        while view:
            count = self.sock.recv_into(view)
            if not count:
                return None
            view = view[count:]
        return bytes(data)


class Graded:
    """The graded file and the instruments around it. device: "cpu" (Triton's interpreter) or "cuda"."""

    def __init__(self, file: Path, device: str) -> None:
        self.file = file
        self.device = device
        self.module: Any = None
        if device == "cpu":
            os.environ["TRITON_INTERPRET"] = "1"
        from drills import instruments

        self.instruments = instruments
        status = instruments.install()
        self.status = {"on": status.on, "note": status.note, "versions": dict(status.versions)}

    def load(self) -> dict[str, Any]:
        """Load the file: {"functions": [...]} or {"raised": {...}}."""
        try:
            self.module = learner.load(self.file)
            return {"functions": learner.functions(self.module)}
        except BaseException as error:
            return {"raised": learner.describe(error, self.file)}

    def answer(self, request: wire.Message) -> tuple[dict[str, Any], Any]:
        """Make one call: the reply's head, and (what was returned, [[position, argument after the call], ...])."""
        head, args = request.head, request.tree
        notes = Notes()
        answer: dict[str, Any] = {"nonce": head["nonce"]}
        tree = None
        begun = time.perf_counter()
        try:
            function = getattr(self.module, head["exercise"])
            tree = self._call(function, args, head, notes)
        except BaseException as error:
            answer["raised"] = learner.describe(error, self.file)
            found = getattr(error, "finding", None)
            if found is not None:
                notes.findings.append(found)
        notes.seconds = time.perf_counter() - begun
        answer["notes"] = asdict(notes)
        return answer, tree

    def _call(self, function: Callable[..., Any], args: tuple, head: dict[str, Any], notes: Notes) -> Any:
        placed = self.instruments.place(args, self.device)
        inputs = dict(zip(head["names"], placed.args, strict=False))
        with self.instruments.recording(CallOptions(**head["options"]), inputs) as recording:
            returned = function(*placed.args)
        seen = recording.notes(returned)
        notes.launches, notes.findings = seen.launches, [*seen.findings, *placed.findings(head["inplace"])]
        return returned, [[position, placed.args[position]] for position in head["inplace"]]
