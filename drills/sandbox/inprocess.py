"""Debug mode: graded code called in this very process, so that print and breakpoint() work.

The opposite of isolation, on the learner's own demand and for the learner's own file. No deadline, no cap.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from drills.instruments.notes import Status
from drills.sandbox import outcome, wire
from drills.sandbox.client import Call, Loaded, reply_of
from drills.sandbox.outcome import Raised, Reply
from drills.sandbox.worker import Graded

STOPS = ("KeyboardInterrupt", "BdbQuit")
"""What Ctrl-C and the debugger's `q` raise: the learner wants to stop, and the code is not at fault."""


class InProcess:
    """Has the interface of client.Worker."""

    def __init__(self, file: Path, device: str) -> None:
        self.graded = Graded(file, device)
        self.status: Status | None = self.graded.status
        self.loading: Loaded | None = None

    def start(self) -> None:
        """Nothing to start."""

    def load(self) -> Loaded:
        """Import the graded file, once."""
        if self.loading is None:
            said = self.graded.load()
            raised = Raised.from_json(said["raised"]) if "raised" in said else None
            self.loading = Loaded(tuple(said.get("functions", ())), raised)
        return self.loading

    def call(self, call: Call, meanwhile: Callable[[], None] | None = None) -> Reply:
        """Make one call. The arguments are copies, as they are in a worker. meanwhile: done before."""
        if meanwhile is not None:
            meanwhile()
        head: dict[str, Any] = {
            "nonce": "",
            "exercise": call.exercise,
            "names": list(call.names),
            "inplace": list(call.inplace),
            "options": asdict(call.options),
        }
        answer, tree = self.graded.answer(wire.copy(wire.Message(head, call.args), wire.CALL))
        if "raised" in answer and answer["raised"]["type"] in STOPS:
            raise KeyboardInterrupt
        try:
            return reply_of(wire.copy(wire.Message(answer, tree), wire.REPLY))
        except wire.Malformed as error:
            return Reply(death=outcome.malformed(error))

    def dismiss(self) -> None:
        """There is no process to end."""

    def close(self) -> None:
        """Nothing to end."""
