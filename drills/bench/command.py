"""`grade.py bench`: how fast your kernels and the solutions are on this GPU, beside a copy and installed libraries.

What is measured runs in other processes (processes.py); this one reads rows from them. Must never import torch.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from rich.console import Console
from rich.text import Text

from drills import catalog, source
from drills.bench import processes
from drills.bench.plot import draw
from drills.bench.rows import Machine, Row
from drills.bench.table import heading, line, machine_line
from drills.errors import PASSED, NothingGraded, WrongUse
from drills.files import write_atomically

DTYPES = ("float16", "bfloat16", "float32")


def arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.add_argument("lessons", nargs="*", metavar="LESSON", help="only these lessons or exercises")
    says = "the solutions alone, without mine/" if catalog.has_solutions() else argparse.SUPPRESS
    parser.add_argument("--solutions", action="store_true", help=says)
    parser.add_argument("--dtype", action="append", choices=DTYPES, help="float16 and bfloat16 unless given")
    parser.add_argument("--match", default="", metavar="TEXT", help='only shapes whose label has this: "B=64 P=8192"')
    parser.add_argument("--runs", type=int, default=40, metavar="N", help="timed runs of each function (40)")
    parser.add_argument("--no-peers", action="store_true", help="leave other libraries and a plain copy out")
    parser.add_argument("--peer", action="append", metavar="TEXT", help='of these, only those named so: "FlashInfer"')
    parser.add_argument("--json", type=Path, metavar="FILE", help="all rows as JSON")
    parser.add_argument("--svg", type=Path, metavar="FILE", help="a plot of share of the floor against bytes")


def run(options: argparse.Namespace, console: Console) -> int:
    """Measures, prints a row as soon as it is there, writes the files that were asked for."""
    if options.runs < 1:
        raise WrongUse("--runs needs a number of at least 1")
    selected = catalog.select(options.lessons)
    if options.solutions and not catalog.has_solutions():
        raise WrongUse(catalog.NOT_HERE)
    rows: list[Row] = []
    machine = None
    try:
        for kind, tree in processes.answers(_request(selected, options)):
            if kind == "machine":
                machine = Machine(**tree)
                console.print(Text(machine_line(machine)), soft_wrap=True)
            else:
                row = Row(**{key: value for key, value in tree.items() if key not in ("rate", "share")})
                if not rows or rows[-1].exercise != row.exercise:
                    console.print(Text(heading(row), "bold"), soft_wrap=True)
                rows.append(row)
                console.print(Text(line(row, rows)), soft_wrap=True)
    finally:  # what was measured before it was stopped is kept
        if rows:
            _write(options, machine, rows)
    if not rows:
        raise NothingGraded("no benchmark shape matches")
    return PASSED


def _write(options: argparse.Namespace, machine: Machine, rows: list[Row]) -> None:
    """The files that were asked for."""
    if options.json:
        tree = {"machine": machine.to_json(), "rows": [row.to_json() for row in rows]}
        write_atomically(options.json, json.dumps(tree, indent=1) + "\n")
    if options.svg:
        write_atomically(options.svg, draw(rows))


def _request(selected: list[catalog.Selection], options: argparse.Namespace) -> dict:
    """What is to be measured: lesson → who → file and exercises."""
    lessons = {}
    for selection in selected:
        entry, names = selection.lesson, list(selection.exercises)
        targets = {"solution": {"path": str(entry.solution), "exercises": names}} if entry.solution.is_file() else {}
        if faster := [name for name in entry.fast_exercises if name in names]:
            targets["fast"] = {"path": str(entry.fast), "exercises": faster}
        if not options.solutions and entry.mine.is_file():
            found = source.inspect(entry.mine, entry.exercises, entry.stub)
            written = [one.name for one in found.functions if one.state == "written" and one.name in names]
            if written:
                targets["mine"] = {"path": str(entry.mine), "exercises": written}
        lessons[entry.stem] = targets
    chosen = sorted({name for selection in selected for name in selection.exercises})
    return {
        "lessons": lessons,
        "dtypes": options.dtype or ["float16", "bfloat16"],
        "match": options.match,
        "exercises": chosen,
        "runs": options.runs,
        "peers": [] if options.no_peers else options.peer or [""],
    }
