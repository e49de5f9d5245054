"""Grading, as the command line has it: `grade.py [LESSON[.EXERCISE] …]` and its options.

Must never import torch before it is clear that something is to be run, and decides no verdict.
"""

from __future__ import annotations

import argparse
import importlib.util
import math
import sys
import time
from pathlib import Path

from rich.console import Console

from drills import catalog, commands, result_files
from drills.catalog import ROOT, has_solutions
from drills.errors import PASSED, GraderFailed, NothingGraded, WrongUse
from drills.report.model import LEVELS, Grade
from drills.report.progress_line import ProgressLine
from drills.sandbox import isolation
from drills.study import environment

NEEDED = ("torch", "triton", "numpy", "pytest", "safetensors")
SUGGESTED = ("hint", "list", "show")


def arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of grading."""
    parser.add_argument("names", nargs="*", metavar="LESSON[.EXERCISE]", help="l4, l4.merge_states … (default: all)")
    what = parser.add_argument_group("what").add_mutually_exclusive_group()
    instead = "grade solutions/ instead of mine/" if has_solutions() else argparse.SUPPRESS
    what.add_argument("--solutions", action="store_true", help=instead)
    what.add_argument("--target", type=Path, metavar="DIR", help="grade the files in this folder")
    how = parser.add_argument_group("how")
    how.add_argument("--level", choices=LEVELS, help="this level's tests only")
    how.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto", help="default: a GPU if there is one")
    how.add_argument("--timeout", type=seconds, default=10.0, metavar="S", help="seconds for one call (default: 10)")
    how.add_argument("--seed", type=int, metavar="N", help="repeat a run's inputs")
    levels = ("auto", *isolation.LEVELS)
    how.add_argument("--isolation", choices=levels, default="auto", help="how far your code is shut in")
    how.add_argument("--debug", action="store_true", help="in this process: print and breakpoint() work")
    out = parser.add_argument_group("results")
    result_files.add_arguments(out)
    out.add_argument("--exit-zero", action="store_true", help="exit code 0 even if something failed")


def run(options: argparse.Namespace, console: Console) -> int:
    """Grades, prints the scorecard, keeps what passed, and returns the exit code."""
    begun = time.monotonic()
    selections = catalog.select(options.names)
    if not selections:
        raise NothingGraded("there are no lessons here")
    target = find_target(options)
    result_files.check(options)
    check_platform()
    grade = _grade(selections, target, options, console)
    grade.seconds = time.monotonic() - begun if grade.seconds else 0.0  # what one waited, the start included
    return finish(grade, target, options, console)


def finish(grade: Grade, target: Path, options: argparse.Namespace, console: Console) -> int:
    """Prints and keeps a grade, and returns the exit code it comes to."""
    from drills.report import scorecard, verdict
    from drills.study import passed

    scorecard.print_scorecard(grade, console, suggested())
    if grade.grader_error:
        console.print(f" {environment.DOCTOR}", soft_wrap=True)
    points = result_files.points_line(grade, options)
    if points:
        console.print(f" {points}", soft_wrap=True)
    result_files.write(grade, options)
    if target == ROOT / "mine" and not grade.level and not options.debug:
        for line in (passed.news(grade) if has_solutions() else "", passed.keep(grade)):
            if line:
                console.print(f" {line}", soft_wrap=True)
    code = verdict.exit_code(grade)
    return PASSED if options.exit_zero and not grade.grader_error else code


def suggested() -> frozenset[str]:
    """The commands that a scorecard may send a learner to."""
    there = {name for name in SUGGESTED if commands.exists(name)}
    return frozenset(there if catalog.has_solutions() else there - {"show"})


def find_target(options: argparse.Namespace) -> Path:
    """The folder to grade; WrongUse if it is no folder."""
    if options.solutions:
        if not catalog.has_solutions():
            raise WrongUse(f"{catalog.NOT_HERE}: grade your own with  python grade.py")
        return ROOT / "solutions"
    if options.target is None:
        return ROOT / "mine"
    try:
        target = options.target.expanduser().resolve()
        is_folder, is_there = target.is_dir(), target.exists()
    except (OSError, RuntimeError, ValueError) as error:
        raise WrongUse(f"--target {options.target}: {error}") from None
    if is_folder:
        return target
    if is_there:
        raise WrongUse(f"--target {options.target} is a file: name the folder that holds it")
    raise WrongUse(f"--target {options.target}: there is no such folder")


def check_platform() -> None:
    """GraderFailed, in one line, where there is no Triton or a package is missing."""
    if sys.platform != "linux":
        raise GraderFailed(
            "grading needs Triton, which runs on Linux only (WSL and Colab are Linux). Here you can read the pages: "
            "python grade.py read, hint, quiz, list, reset and show work"
        )
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        says = f"{', '.join(missing)} not installed: python -m pip install -r requirements.txt"
        raise GraderFailed(f"{says}  (python grade.py doctor  shows all that is needed)")


def seconds(text: str) -> float:
    """For an option: a number of seconds above 0."""
    value = float(text)
    if not (math.isfinite(value) and value > 0):
        raise argparse.ArgumentTypeError(f"{text} is no number of seconds above 0")
    return value


def _grade(selections: list[catalog.Selection], target: Path, options: argparse.Namespace, console: Console) -> Grade:
    from drills import session
    from drills.request import Progress, Request

    with ProgressLine(console, quiet=options.plain or options.debug) as line:

        def tell(now: Progress) -> None:
            short = now.lesson.split("_", 1)[0]
            line.show(f"{short} · {now.exercise} · {now.title}  {now.done} of {now.total}")

        line.show("starting …")
        request = Request(
            selections=tuple(selections),
            target=target,
            level=options.level,
            device=options.device,
            timeout=options.timeout,
            seed=options.seed,
            every_twin=options.seed is not None,
            debug=options.debug,
            isolation=isolation.chosen(options.isolation),
            progress=tell,
        )
        with environment.blamed():
            return environment.examined(session.grade(request))
