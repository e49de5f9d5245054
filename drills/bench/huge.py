"""Authors: are the solutions right beyond 2^31 elements? Each case on the GPU, some of its rows against float64.

    python -m drills.bench.huge [--dtype bfloat16] [EXERCISE …]

Needs a GPU with 40 GB. Runs the solutions in this process: for the repository's own code only.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import time

import torch

from drills import catalog
from drills.bench.child import load
from drills.bench.huge_cases import CASES
from drills.bench.measure import WrongResult, check

DTYPES = {"float16": torch.float16, "bfloat16": torch.bfloat16}


def main() -> int:
    """Checks and prints a line a case; 1 if one is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("exercises", nargs="*", help="only these")
    parser.add_argument("--dtype", choices=DTYPES, default="float16")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        print("no CUDA GPU is visible to torch here", file=sys.stderr)
        return 2
    device, wrong = torch.device("cuda"), 0
    for entry in catalog.lessons():
        lesson = importlib.import_module(f"drills.lessons.{entry.stem}").LESSON
        files = {entry.solution: entry.exercises, entry.fast: entry.fast_exercises}
        functions = [(path.stem, load(str(path), list(names))) for path, names in files.items() if names]
        for case in CASES:
            if case.exercise not in entry.exercises or (options.exercises and case.exercise not in options.exercises):
                continue
            args = case.make(device, DTYPES[options.dtype], torch.Generator(device=device).manual_seed(0))
            for stem, one in functions:
                if case.exercise not in one:
                    continue
                began = time.perf_counter()
                try:
                    check(lesson.exercise(case.exercise), case, args, lambda *a: lambda: one[case.exercise](*a))  # noqa: B023
                    said = "right"
                except WrongResult as error:
                    said, wrong = f"WRONG: {error}", wrong + 1
                print(f"{stem:20} {case.exercise:30} {case.label:34} {said}  {time.perf_counter() - began:.1f} s")
            del args
            torch.cuda.empty_cache()
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
