"""The process that runs graded code for `grade.py bench`: reads one JSON request on stdin, writes JSON lines to a pipe.

What the code prints goes to its own stdout and never mixes with the rows. Must never be imported by the parent.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import sys
from collections.abc import Callable

import torch

from drills.bench.measure import Wanted, describe, measure
from drills.bench.timing import Clock


def load(path: str, exercises: list[str]) -> dict[str, Callable]:
    """The functions called `exercises` of the file at `path`, those that it has."""
    spec = importlib.util.spec_from_file_location("graded", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return {name: getattr(module, name) for name in exercises if callable(getattr(module, name, None))}


def main() -> int:
    """Answers one request: lines {"machine": …} and {"row": …}, then {"end": true}; {"error": …} if there is no GPU."""
    request = json.load(sys.stdin)
    with open(int(request["pipe"]), "w", encoding="utf-8", buffering=1) as out:
        if not torch.cuda.is_available():
            print(json.dumps({"error": "no CUDA GPU is visible to torch here"}), file=out)
            return 0
        clock = Clock(torch.device("cuda"), request["runs"])
        machine = describe(clock)
        print(json.dumps({"machine": machine.to_json()}), file=out)
        dtypes, exercises, peers = (tuple(request[name]) for name in ("dtypes", "exercises", "peers"))
        wanted = Wanted(dtypes, request["match"], exercises, peers)
        for stem, targets in request["lessons"].items():
            lesson = importlib.import_module(f"drills.lessons.{stem}").LESSON
            functions = {who: load(one["path"], one["exercises"]) for who, one in targets.items()}
            for row in measure(lesson, functions, wanted, clock, machine):
                print(json.dumps({"row": row.to_json()}), file=out)
        print(json.dumps({"end": True}), file=out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
