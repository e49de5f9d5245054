"""A process of `grade.py bench`: reads JSON lines on stdin, writes JSON lines to a pipe, measures in turns.

The first line is the request. Then, for each shape and dtype, it waits for a line: its turn. What the code prints goes
to its own stdout and never mixes with the rows. With "isolation" in the request it runs a learner's file: it loads what
it needs of the grader, shuts itself in as a worker is, and only then loads the file. Must never be imported by the
parent.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from drills.bench.measure import Wanted, describe, measure
from drills.bench.rows import Machine
from drills.bench.timing import Clock
from drills.lessons.base import Lesson
from drills.sandbox import alone, learner, limits
from drills.sandbox.isolation import Isolation


def load(path: str, exercises: list[str], text: bytes | None = None) -> dict[str, Callable]:
    """The functions called `exercises` of the file at `path`, those that it has."""
    module = learner.load(Path(path), text)
    return {name: getattr(module, name) for name in exercises if callable(getattr(module, name, None))}


def confine(level: str, private: str) -> None:
    """Shut this process in, on a GPU, with one folder to write to. No way back."""
    os.environ["PYTORCH_KERNEL_CACHE_PATH"] = private  # where torch keeps what it compiles for the oracle
    limits.apply(limits.Caps())
    Isolation.named(level).confine("worker", {"device": "cuda", "private": private})
    alone.hide_machinery()
    alone.refuse_debugger()


def main() -> int:
    """Answers: {"machine": …}, then {"row": …} and {"turn": true} for each shape, {"end": true}; or {"error": …}."""
    with os.fdopen(os.dup(0), encoding="utf-8") as orders:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        request = json.loads(orders.readline())
        with open(int(request["pipe"]), "w", encoding="utf-8", buffering=1) as out:
            answer(request, orders, lambda **tree: print(json.dumps(tree), file=out))
    return 0


def answer(request: dict[str, Any], orders: Any, say: Callable[..., None]) -> None:
    """One request, to its end."""
    lessons: dict[str, Lesson] = {
        stem: importlib.import_module(f"drills.lessons.{stem}").LESSON for stem in request["lessons"]
    }
    targets = [one for targets in request["lessons"].values() for one in targets.values()]
    texts = {one["path"]: Path(one["path"]).read_bytes() for one in targets}
    if "isolation" in request:
        confine(request["isolation"], request["private"])
    if not torch.cuda.is_available():
        say(error="no CUDA GPU is visible to torch here")
        return
    clock = Clock(torch.device("cuda"), request["runs"])
    machine = Machine(**request["machine"]) if "machine" in request else describe(clock)
    say(machine=machine.to_json())
    dtypes, exercises, peers = (tuple(request[name]) for name in ("dtypes", "exercises", "peers"))
    wanted = Wanted(dtypes, request["match"], exercises, peers)
    for stem, targets in request["lessons"].items():
        functions = {who: load(one["path"], one["exercises"], texts[one["path"]]) for who, one in targets.items()}
        for rows in measure(lessons[stem], functions, wanted, clock, machine):
            if not orders.readline():  # nobody is there any more
                return
            for row in rows:
                say(row=row.to_json())
            say(turn=True)
    say(end=True)


if __name__ == "__main__":
    sys.exit(main())
