"""Debug mode: graded code called in this very process, so that print and breakpoint() work.

The opposite of isolation, on the learner's own demand and for the learner's own file. No deadline, no cap.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from drills.instruments.notes import Notes, Status
from drills.sandbox import wire
from drills.sandbox.checked import build
from drills.sandbox.client import Call, Loaded
from drills.sandbox.outcome import Raised, Reply
from drills.sandbox.worker import Graded


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

    def call(self, call: Call) -> Reply:
        """Make one call. The arguments are copies, as they are in a worker."""
        head: dict[str, Any] = {
            "nonce": "",
            "exercise": call.exercise,
            "names": list(call.names),
            "inplace": list(call.inplace),
            "options": asdict(call.options),
        }
        answer, tree = self.graded.answer(wire.copy(wire.Message(head, call.args), wire.CALL))
        notes = build(Notes, answer["notes"])
        if "raised" in answer:
            return Reply(raised=Raised.from_json(answer["raised"]), notes=notes)
        results, after = wire.copy(wire.Message({}, tree), wire.REPLY).tree
        return Reply(results=results, after=dict(after), notes=notes)

    def close(self) -> None:
        """Nothing to end."""
