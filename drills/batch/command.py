"""`grade.py batch DIR -o OUT [LESSON …]`: grades a folder of submissions by strangers.

Reads the arguments and checks them before anything is graded; the work is done in drills.batch.engine. Must never
import torch, a lesson or a graded file.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console

from drills import catalog, grading
from drills.batch import seed
from drills.batch.engine import Batch, Wishes
from drills.batch.place import Place
from drills.batch.settings import Settings
from drills.errors import PASSED, NoIsolation, NothingGraded, WrongUse
from drills.report import outputs
from drills.report.model import LEVELS
from drills.sandbox import isolation
from drills.study import prose


def arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.add_argument("folder", nargs="?", type=Path, metavar="DIR", help="each folder in it is a submission")
    parser.add_argument("names", nargs="*", default=[], metavar="LESSON", help="l4, l4.merge_states … (default: all)")
    parser.add_argument("-o", "--out", type=Path, metavar="OUT", help="the folder for everything that comes out")
    how = parser.add_argument_group("how")
    how.add_argument("-j", "--jobs", type=_jobs, default=0, metavar="N", help="workers (default: one a core)")
    how.add_argument("--again", action="store_true", help="grade anew what has a result, and replace others")
    how.add_argument("--level", choices=LEVELS, help="this level's tests only")
    seconds = {"type": grading.seconds, "metavar": "S"}
    how.add_argument("--timeout", **seconds, default=10.0, help="seconds for one call (default: 10)")
    how.add_argument("--wall", **seconds, default=0.0, help="seconds for one submission in all")
    how.add_argument("--isolation", choices=isolation.LEVELS, help="default: the strictest that this machine has")
    how.add_argument("--weak-isolation", action="store_true", help="go on where there is none but process limits")
    many = parser.add_argument_group("many machines")
    many.add_argument("--shard", type=_shard, metavar="I/N", help="grade part I of N; needs --seed-file")
    many.add_argument("--seed-file", type=Path, metavar="FILE", help="draw the hidden inputs from this secret seed")
    many.add_argument("--draw-seed", type=Path, metavar="FILE", help="make such a file, and do nothing else")
    outputs.add_arguments(parser.add_argument_group("outputs"))
    parser.add_argument("--exit-zero", action="store_true", help="exit code 0 although somebody failed something")


def run(options: argparse.Namespace, console: Console) -> int:
    """Grades the batch and returns the exit code."""
    if options.draw_seed:
        return _draw(options.draw_seed, console)
    if options.folder is None or options.out is None:
        raise WrongUse("name the folder of submissions and the one for the results: grade.py batch DIR -o OUT")
    selections = catalog.select(options.names)
    if not selections:
        raise NothingGraded("there are no lessons here")
    grading.check_platform()
    wanted = {one.lesson.stem: one.exercises for one in selections}
    writing = outputs.options_of(options, {one.lesson.stem: one.lesson.exercises for one in selections})
    how = Settings(wanted, choose_isolation(options).name, options.level, options.timeout, options.wall)
    wishes = Wishes(
        jobs=options.jobs or len(os.sched_getaffinity(0)),
        shard=options.shard,
        seed=_seed(options),
        again=options.again,
        exit_zero=options.exit_zero,
        plain=options.plain,
        shown=str(options.out),
    )
    with stopping():
        return Batch(options.folder, Place(options.out), how, wishes, console).run(writing)


def choose_isolation(options: argparse.Namespace) -> isolation.Isolation:
    """The level asked for, or the strictest that there is; NoIsolation where that is none that keeps strangers in."""
    if options.isolation:
        probed = isolation.probe_one(options.isolation)
        if not probed.holds:
            why = f"isolation {options.isolation} does not hold here: {probed.reason}. {probed.advice}"
            raise NoIsolation(why.strip())
        chosen = isolation.Isolation.named(options.isolation)
    else:
        chosen = isolation.best()
    if not chosen.strong and not options.weak_isolation:
        raise NoIsolation(
            f"isolation {chosen.name} does not keep strangers' code from your files and the network: install "
            "bubblewrap (python grade.py doctor says what is missing), or add --weak-isolation"
        )
    return chosen


@contextlib.contextmanager
def stopping() -> Iterator[None]:
    """SIGTERM and SIGHUP stop a batch as Ctrl-C does: results stay, processes go."""

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _draw(path: Path, console: Console) -> int:
    drawn = seed.draw()
    try:
        seed.save(drawn, path)
    except FileExistsError:
        raise WrongUse(f"{path} is there already: a seed is drawn once") from None
    except OSError as error:
        raise WrongUse(f"{path} cannot be written: {error.strerror or error}") from None
    prose.say(console, f"{path} holds a new secret seed. Its hash, to publish: {drawn.sha256}")
    return PASSED


def _seed(options: argparse.Namespace) -> seed.Seed | None:
    if options.shard and options.seed_file is None:
        raise WrongUse(
            "all shards must draw the same hidden inputs: once the submissions are in, "
            "python grade.py batch --draw-seed FILE, then give each shard --seed-file FILE"
        )
    return seed.load(options.seed_file) if options.seed_file else None


def _jobs(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= 512):
        raise argparse.ArgumentTypeError(f"{text} is no number of workers")
    return int(text)


def _shard(text: str) -> tuple[int, int]:
    first, slash, last = text.partition("/")
    if not (slash and first.isascii() and first.isdigit() and last.isascii() and last.isdigit()):
        raise argparse.ArgumentTypeError(f"{text} is no shard: 2/8 is the second of eight")
    part, of = int(first), int(last)
    if not 1 <= part <= of:
        raise argparse.ArgumentTypeError(f"{text} is no shard: the first of {of} is 1/{of}")
    return part, of
