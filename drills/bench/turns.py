"""Authors: the solutions beside other libraries, by turns: every function of a shape once a round.

    python -m drills.bench.turns [LESSON …] [--match TEXT] [--dtype bfloat16] [--peer FlashInfer] [--rounds 100]

`grade.py bench` times one function after the other; where two differ by a percent, this is the fairer way. Runs the
solutions in this process: for the repository's own code only.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Iterator

import torch

from drills import catalog
from drills.bench import cost
from drills.bench.child import load
from drills.bench.measure import check, describe, forget_error
from drills.bench.peers import peers_of
from drills.bench.rows import Machine, Row
from drills.bench.table import heading, line, machine_line
from drills.bench.timing import Clock
from drills.lessons.base import BenchCase, Lesson


def measured(lesson: Lesson, case: BenchCase, ours: dict, options: argparse.Namespace, clock, machine: Machine):
    """Rows of one shape. ours: who → exercise → function."""
    args = case.make(clock.device, getattr(torch, options.dtype), torch.Generator(device=clock.device).manual_seed(0))
    exercise = lesson.exercise(case.exercise)
    builders = {who: _call(one[case.exercise]) for who, one in ours.items() if case.exercise in one}
    results = [check(exercise, case, args, build) for build in builders.values()]
    least, work = cost.least_bytes(exercise, args, results[0]), cost.operations(exercise, args)
    builders |= {
        one.name: one.build for one in peers_of(case.exercise) if any(text in one.name for text in options.peer)
    }
    calls = {}
    for who, build in builders.items():
        try:
            call = build(*args)
            call()
            clock.settle()
            calls[who] = call
        except Exception as error:
            print(f" {case.label}: {who} does not run: {error}".splitlines()[0])
            forget_error(clock)
    floor = 1e6 * max(least / machine.copy_rate, work / machine.matrix_rate)
    for who, times in zip(calls, clock.by_turns([[call] for call in calls.values()], options.rounds), strict=True):
        row = Row(lesson.stem, case.exercise, case.label, options.dtype, who, bytes=least, operations=work, floor=floor)
        row.graph, row.graph_low, row.graph_high = times.median, times.low, times.high
        yield row


def _call(function):
    return lambda *args: lambda: function(*args)


def rows_of(options: argparse.Namespace, clock: Clock, machine: Machine) -> Iterator[Row]:
    """Rows of all shapes that were asked for."""
    for selection in catalog.select(options.lessons):
        entry = selection.lesson
        lesson = importlib.import_module(f"drills.lessons.{entry.stem}").LESSON
        ours = {"solution": load(str(entry.solution), list(entry.exercises))}
        if entry.fast_exercises:
            ours["fast"] = load(str(entry.fast), list(entry.fast_exercises))
        for case in lesson.bench:
            if options.match in case.label and case.exercise in selection.exercises:
                yield from measured(lesson, case, ours, options, clock, machine)
                torch.cuda.empty_cache()


def main() -> int:
    """Measures and prints a line a function."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lessons", nargs="*", metavar="LESSON", help="only these lessons or exercises")
    parser.add_argument("--match", default="", metavar="TEXT", help="only shapes whose label has this")
    parser.add_argument("--dtype", default="float16", choices=("float16", "bfloat16"))
    parser.add_argument("--peer", action="append", metavar="TEXT", help="only peers named so")
    parser.add_argument("--rounds", type=int, default=100, metavar="N")
    options = parser.parse_args()
    options.peer = options.peer or ["FlashInfer"]
    if not torch.cuda.is_available():
        print("no CUDA GPU is visible to torch here", file=sys.stderr)
        return 2
    clock = Clock(torch.device("cuda"))
    machine = describe(clock)
    print(machine_line(machine))
    rows: list[Row] = []
    for row in rows_of(options, clock, machine):
        if not rows or rows[-1].exercise != row.exercise:
            print(heading(row))
        rows.append(row)
        print(line(row, rows), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
