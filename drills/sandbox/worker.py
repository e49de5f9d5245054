"""The worker: the process that runs graded code, one call after another, under the instruments.

Everything in it is at the mercy of the graded code, so nothing it says is believed beyond the values it returns.
It must never hold an expected result, a seed or a test.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import torch

from drills.instruments import own_words
from drills.instruments.notes import CallOptions, Notes, as_tree
from drills.instruments.undisturbed import Undisturbed
from drills.sandbox import layout, learner, raw, sealing, wire

_numel, _element_size, _contiguous = raw.base("numel", "element_size", "contiguous")


def serve(sock: Any, config: dict[str, Any]) -> None:
    """Say what is on, load the graded file, answer calls until the parent hangs up."""
    from drills.sandbox import alone, brood, unreachable

    torch.set_num_threads(1)
    brood.listen()
    sys.stdin = open(os.devnull)  # noqa: SIM115  for as long as the process lives
    line = Line(sock, bytes.fromhex(config.pop("key")))
    try:
        graded = Graded(Path(config["file"]), config["device"], *map(text_of, config["descriptors"]))
    except Exception as error:
        line.say({"nonce": config["nonce"], "broken": f"Triton does not work here: {type(error).__name__}: {error}"})
        return
    try:
        unreachable.close()
        alone.hide_machinery()
        alone.refuse_debugger()
        alone.refuse_looks()
    except Exception as error:
        line.say({"nonce": config["nonce"], "broken": f"no code can be shut in here: {type(error).__name__}: {error}"})
        return
    line.say({"nonce": config["nonce"], "status": as_tree(graded.status)})
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


def text_of(descriptor: int) -> bytes:
    """All that is in a file that the parent has opened."""
    with open(descriptor, "rb") as file:
        file.seek(0)
        return file.read()


class Line:
    """The worker's end of the connection. key: proves that what is said is said here."""

    def __init__(self, sock: Any, key: bytes) -> None:
        self.sock, self.key = sock, key

    def say(self, head: dict[str, Any], tree: Any = None) -> None:
        """Send one message; what was printed before it is on its way before it."""
        with Undisturbed():
            data = wire.encode(wire.Message(head, tree), wire.REPLY)
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except Exception:
                continue
        self.sock.sendall(data + own_words.proof(self.key, data))

    def hear(self) -> wire.Message | None:
        """The next request; None when the parent has hung up."""
        header = self._read(wire.HEADER.size)
        if header is None:
            return None
        text, blob = wire.sizes(header, wire.CALL)
        with Undisturbed():
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
    """The graded file and the instruments around it.

    device: "cpu" (Triton's interpreter) or "cuda". text: the file's bytes, read from `file` if None.
    """

    def __init__(self, file: Path, device: str, text: bytes | None = None) -> None:
        self.file = file
        self.text = text
        self.device = device
        self.module: Any = None
        if device == "cpu":
            os.environ["TRITON_INTERPRET"] = "1"
        from drills.instruments import guards, install, interpreter, one_call, results

        self.place, self.recording, self.kept = guards.place, one_call.Recording, results.Kept()
        self.status = install()
        self.remember = interpreter.remember
        if device == "cuda":
            torch.zeros(1, device="cuda")  # so that starting CUDA counts as the grader's time, not the learner's
            self.settle = torch.cuda.synchronize
        else:
            self.settle = lambda: None

    def load(self) -> dict[str, Any]:
        """Load the file: {"functions": [...]} or {"raised": {...}}."""
        try:
            self.module = learner.load(self.file, self.text)
            self.remember(vars(self.module))
            return {"functions": learner.functions(self.module)}
        except BaseException as error:
            return {"raised": learner.describe(error, self.file)}

    def answer(self, request: wire.Message) -> tuple[dict[str, Any], Any]:
        """Make one call: the reply's head, and (what was returned, [[position, argument after the call], ...])."""
        head, args = request.head, request.tree
        notes = Notes()
        answer: dict[str, Any] = {"nonce": head["nonce"]}
        tree = None
        begun = perf_counter()
        try:
            tree = self._call(self._function(head["exercise"]), args, head, notes)
        except GradedCodeRaised as raised:
            answer["raised"] = learner.describe(raised.error, self.file)
            fault = learner.finding(raised.error)
            if fault is not None and fault not in notes.findings:
                notes.findings.append(fault)
        except DeviceLost as error:
            answer["lost"] = str(error)
        except wire.Oversized as error:
            answer["oversized"] = str(error)
        except BaseException as error:
            answer["broken"] = f"{type(error).__name__}: {error}"
        notes.seconds = perf_counter() - begun
        answer["notes"] = as_tree(notes)
        return answer, tree

    def _function(self, name: str) -> Callable[..., Any]:
        try:
            return getattr(self.module, name)
        except AttributeError as error:
            raise GradedCodeRaised(error) from None

    def _call(self, function: Callable[..., Any], args: tuple, head: dict[str, Any], notes: Notes) -> Any:
        """What was returned and what was changed; `notes` are filled in also if the function raises."""
        names, inplace = head["names"], head["inplace"]
        with Undisturbed():
            placed = self.place(args, self.device, names)
            inputs = dict(zip(names, placed.args, strict=False))
            recording = self.recording(CallOptions(**head["options"]), inputs, [names[one] for one in inplace])
        returned = raised = None
        with recording:
            try:
                returned = function(*placed.args)
            except BaseException as error:
                raised = error
        try:
            self.settle()
        except Exception as error:
            raise DeviceLost(str(error).strip().split("\n")[0]) from None
        with Undisturbed():
            returned = sealing.plain(returned)
            layout.check_tree(returned, wire.REPLY)
            seen = recording.notes(returned)
            kept = recording.kept
            notes.launches, notes.copies, notes.told = seen.launches, seen.copies, seen.told
            notes.findings = [*seen.findings, *self.kept.findings(returned), *placed.findings(inplace)]
            if raised is not None:
                raise GradedCodeRaised(raised)
            changed = [[position, _dense(sealing.seal(placed.args[position], kept))] for position in inplace]
            return sealing.seal(returned, kept), changed


def _dense(tensor: Any) -> Any:
    """The same values without the memory that lies between them, unless they alone are too many to travel."""
    if type(tensor) is not torch.Tensor:
        return tensor
    small = _numel(tensor) * _element_size(tensor) <= wire.REPLY.expanded
    return _contiguous(tensor) if small else tensor


class DeviceLost(Exception):
    """A kernel left the GPU in a state in which this process can do nothing more with it."""


class GradedCodeRaised(Exception):
    """Carries what came out of the graded function, apart from what may come out of the instruments."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error
