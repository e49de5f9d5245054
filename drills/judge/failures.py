"""Failures that need no comparison: what an instrument found, what was raised, and how a worker died.

Decides at which level a failure counts. Never looks at values.
"""

from __future__ import annotations

import re
from functools import partial

from drills.instruments.notes import Finding
from drills.judge.exceptions import advice
from drills.judge.words import results_named
from drills.lessons.base import Exercise
from drills.report.model import Failure

MEMORY_KINDS = frozenset(
    {
        "out_of_bounds",
        "race",
        "read_race",
        "unwritten",
        "input_changed",
        "guard_touched",
        "shares_memory",
        "masked_lane",
        "order_dependent",
    }
)
MEMORY_SIGNALS = ("SIGSEGV", "SIGBUS", "the GPU stopped in your kernel")


class GradedFailure(AssertionError):
    """A graded test failed; `failure` says how. Raised by the `drill` fixture, shown without a traceback.

    title: what was tried, where that is something else than the test's name says; "" where it is not.
    """

    def __init__(self, failure: Failure, title: str = ""):
        super().__init__(one_line(failure))
        self.failure = failure
        self.title = title


def one_line(failure: Failure) -> str:
    """The failure as one line for a log: "wrong_value: got …, expected …"."""
    parts = [f"got {failure.got}"] if failure.got else []
    parts += [f"expected {failure.expected}"] if failure.expected else []
    parts += [failure.likely] if failure.likely else []
    return f"{failure.kind}: " + "; ".join(parts)


def level_of(kind: str, level: str, words: str = "") -> str:
    """The level that a failure of `kind` counts against, where `level` is that of the test which met it."""
    if kind in MEMORY_KINDS:
        return "memory"
    if kind == "crash" and any(signal in words for signal in MEMORY_SIGNALS):
        return "memory"
    if kind == "traffic":
        return "traffic"
    if kind.startswith("compile"):
        return "compile"
    return level


def finding(found: Finding, level: str, called: str = "", exercise: Exercise | None = None) -> Failure:
    """The failure that an instrument's finding stands for. exercise: whose results are called by name."""
    named = partial(results_named, exercise) if exercise else str
    return Failure(
        kind=found.kind,
        level=level_of(found.kind, level, found.got),
        called=called,
        got=named(found.got),
        expected=named(found.expected),
        likely=named(found.likely),
        line=found.line,
        source=found.source,
    )


RESULT = "a result, with no exception"
LOADED = "a file that can be loaded, with no exception"


def raised(
    type_name: str, message: str, level: str, called: str = "", line: int | None = None, source: str = ""
) -> Failure:
    """The learner's code raised an exception, in a call or as it was loaded: its own line is shown, never ours.

    What the interpreter cannot run may be right, so it is a kind of its own.
    """
    beyond = type_name == "NotInterpreted"
    message = re.sub(r"'constexpr\[(\d+)\]'", r"\1", message)
    got = message if beyond else f"{type_name}: {message}" if message else type_name
    return Failure(
        kind="not_interpreted" if beyond else "exception",
        level=level,
        called=called,
        got=got,
        expected="a kernel that the interpreter can run" if beyond else RESULT if called else LOADED,
        likely=advice(type_name, message, line is not None, source),
        line=line,
        source=source,
    )


DEATHS = {
    "timeout": "An endless loop, or far too many programs: does every loop's variable move towards its bound?",
    "crash": "An address outside every tensor, most often: check the offsets and the masks of each load and store.",
    "exit": "The code ended its own process. A function returns its results; take the exit call out.",
    "flood": "Print less: a few lines of one small case tell more.",
    "oversized": "Return only what the contract names, in the shapes that it states.",
    "malformed": "Return torch tensors as the contract names them, and leave the grader's channel alone.",
    "processes": "Start no processes: the kernels run by themselves.",
    "broken": "If your code replaces parts of torch or Triton, take that out; if not, this is the grader's fault.",
    "memory": "Allocate only the results and a small workspace.",
}
"""Kind of death → the likely cause and what to do."""


def death(kind: str, words: str, level: str, called: str = "", line: int | None = None, source: str = "") -> Failure:
    """The worker ended, or was ended, before it answered. `words` say what happened, in plain words."""
    return Failure(
        kind=kind,
        level=level_of(kind, level, words),
        called=called,
        got=words,
        expected="an answer",
        likely=DEATHS.get(kind, ""),
        line=line,
        source=source,
    )
