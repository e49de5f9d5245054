"""How one call of graded code came out, as the parent sees it: results, an exception, or the death of the process.

Built from what an untrusted process sent; every field is checked here before anybody relies on its type.
"""

from __future__ import annotations

import os
import re
import signal
from dataclasses import dataclass, field
from typing import Any

from drills.instruments.notes import Notes
from drills.sandbox.malformed import Malformed

PRINTED_LIMIT = 64 << 10
FLOOD_LIMIT = 8 << 20
TEXT_LIMIT = 2000
MOST_LINES = 1 << 31
ESCAPES = re.compile(r"\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)?|.)", re.DOTALL)
CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


@dataclass(frozen=True)
class Raised:
    """An exception that left graded code. line, source: where in the learner's own file; None and "" if nowhere."""

    type: str
    message: str = ""
    line: int | None = None
    source: str = ""

    @classmethod
    def from_json(cls, tree: Any) -> Raised:
        """Checked; `Malformed` if the tree is something else."""
        line = tree.get("line") if isinstance(tree, dict) else 0
        if not isinstance(tree, dict) or not (line is None or (type(line) is int and 0 < line < MOST_LINES)):
            raise Malformed("an exception without its parts")
        text = {name: clean(str(tree.get(name, "")), TEXT_LIMIT) for name in ("type", "message", "source")}
        return cls(line=line, **text)


@dataclass(frozen=True)
class Death:
    """The end of a worker that gave no answer, or none that counts.

    kind: timeout, crash, exit, flood, memory, processes, disk, malformed, oversized, broken.
    words: one sentence for the learner. signal: the signal's name for a crash, else "".
    line, source: where in the learner's own file it was when it gave no answer; None and "" if nobody knows.
    """

    kind: str
    words: str
    signal: str = ""
    line: int | None = None
    source: str = ""


@dataclass
class Reply:
    """The answer to one call; exactly one of `death`, `raised` and `results` says how it went.

    results: what the function returned, as it came: tensors, numbers, lists, tuples, Opaque.
    after: the in-place arguments as they are after the call, by position.
    printed: what graded code printed, cleaned and capped.
    """

    results: Any = None
    after: dict[int, Any] = field(default_factory=dict)
    raised: Raised | None = None
    death: Death | None = None
    notes: Notes = field(default_factory=Notes)
    printed: str = ""


@dataclass(frozen=True)
class Ended:
    """What the zygote reports of a child that is gone: its wait status, and why the zygote killed it, if it did."""

    status: int
    reason: str = ""


def timed_out(seconds: float, importing: bool, line: int | None, source: str) -> Death:
    """No answer in time."""
    where = " while the file was being loaded" if importing else ""
    return Death("timeout", f"no answer in {seconds:g} s{where}", line=line, source=clean(source, TEXT_LIMIT))


def flooded() -> Death:
    """Printed more than anybody reads."""
    return Death("flood", f"printed more than {FLOOD_LIMIT >> 20} MiB in one call: is there a print in a loop?")


def malformed(error: Malformed) -> Death:
    """The answer was no answer. An oversized one has its own kind."""
    if type(error) is Malformed:
        return Death("malformed", f"the process sent {error} in place of an answer")
    return Death("oversized", f"the answer is too large: {error}")


def device_lost(what: str) -> Death:
    """A kernel on the GPU did what the driver stops a process for."""
    said = clean(what, TEXT_LIMIT).removeprefix("CUDA error: ")
    if "assert" in said:
        return Death("crash", f"an assertion failed on the GPU ({said})", "CUDA error")
    return Death("crash", f"the GPU stopped in your kernel ({said})", "CUDA error")


def broken(what: str) -> Death:
    """The instruments around the call failed: by a fault of their own, or because graded code reached into them."""
    return Death("broken", f"the grader's instruments failed on this call ({clean(what, TEXT_LIMIT)})")


def died(ended: Ended | None) -> Death:
    """In words, from the wait status; None for a process that closed its connection and went on."""
    if ended is None:
        return Death("malformed", "the process closed its connection to the grader")
    if ended.reason in TOO_MUCH:
        return Death(ended.reason, TOO_MUCH[ended.reason])
    if os.WIFEXITED(ended.status):
        code = os.WEXITSTATUS(ended.status)
        return Death("exit", f"your code ended the process (exit code {code}) before it answered: remove the exit")
    name = _signal_name(os.WTERMSIG(ended.status))
    return Death("crash", CRASHES.get(name, f"the process was ended by a signal ({name})"), name)


TOO_MUCH = {
    "memory": "the process used more memory than it may and was stopped",
    "processes": "the process started more processes than it may and was stopped",
    "disk": "the process wrote more to disk than it may and was stopped",
}

CRASHES = {
    "SIGSEGV": "your kernel read outside a tensor and the process died (SIGSEGV)",
    "SIGBUS": "your kernel read outside a tensor and the process died (SIGBUS)",
    "SIGABRT": "the process aborted (SIGABRT): its memory is likely damaged by a write outside a tensor",
    "SIGFPE": "the process died of a division by zero between integers (SIGFPE)",
    "SIGXFSZ": "the process wrote a file larger than it may (SIGXFSZ)",
}


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def clean(text: str, limit: int = PRINTED_LIMIT) -> str:
    """Text of graded code, safe to show: no escape sequences, no control characters but newline and tab, capped."""
    if len(text) <= limit and text.isascii() and text.isprintable():
        return text
    short = text[:limit]
    short = CONTROLS.sub("", ESCAPES.sub("", short.replace("\r\n", "\n").replace("\r", "\n")))
    return short if len(text) <= limit else short + "\n… (cut)"
