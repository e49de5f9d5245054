"""`grade.py watch`: grades the lesson whose file was saved, the exercise being worked on first.

This process holds the keyboard, the screen and the files' events; the one that grades is a child of it. Must never
import torch, and leaves no process and no terminal setting behind, however it ends.
"""

from __future__ import annotations

import argparse
import contextlib
import os

from rich.console import Console

from drills import catalog, grading
from drills.catalog import ROOT, Selection
from drills.errors import NothingGraded, WrongUse
from drills.sandbox import isolation


def arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.add_argument("lesson", nargs="?", metavar="LESSON[.EXERCISE]", help="this lesson's file only (default: all)")
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto", help="default: a GPU if any")
    parser.add_argument("--timeout", type=grading.seconds, default=10.0, metavar="S", help="seconds for one call (10)")


def run(options: argparse.Namespace, console: Console) -> int:
    """Watches until q or a signal. Exit code 0 after q, 128 and the signal's number after a signal."""
    selections = catalog.select([options.lesson] if options.lesson else [])
    if not selections:
        raise NothingGraded("there are no lessons here")
    if not (ROOT / "mine").is_dir():
        raise WrongUse("there is no folder mine/: python grade.py reset l1  makes a lesson's stub in it")
    grading.check_platform()
    import watchfiles  # noqa: F401  missing: that is said now, not in a thread

    from drills.study.watch_files import Files
    from drills.study.watch_loop import exit_code
    from drills.study.watch_terminal import Terminal

    with Terminal() as terminal, contextlib.ExitStack() as ending:
        files = Files(selections)
        ending.callback(files.close)
        _watch(selections, options, console, terminal, files, ending)
    return exit_code(terminal)


def _watch(selections, options, console, terminal, files, ending) -> None:
    from drills.study import hint, listing, progress
    from drills.study.page import STAGES
    from drills.study.watch_engine import Engine
    from drills.study.watch_loop import Loop, hung_up
    from drills.study.watch_state import State
    from drills.study.watch_view import open_view

    engine = Engine(str(ROOT / "mine"), options.device, options.timeout, isolation.best_for_learner())
    ending.callback(engine.close)
    state = State(selections, dict(files.now), _passed(selections))
    view = open_view(console, options.plain, terminal.keyed)

    def show_list() -> None:
        listing.run(argparse.Namespace(lessons=_names(selections)), console)

    def show_hint(lesson: str, exercise: str) -> bool:
        hint.run(argparse.Namespace(lesson=f"{lesson}.{exercise}", all=False, by_key=True), console)
        return progress.load().hints.get(f"{lesson}.{exercise}", 0) < STAGES

    try:
        Loop(state, view, files, engine, terminal, show_hint, show_list).run()
        view.end(state)
    except OSError as error:
        if not hung_up(error):
            raise
        with contextlib.suppress(OSError):  # nobody reads any more; nothing that is left may be written there
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _passed(selections: list[Selection]) -> set[str]:
    """ "l4.merge_state" of every exercise whose code, as it is now, has passed."""
    from drills.study import passed, progress

    done = progress.load()
    return {f"{one.lesson.short}.{name}" for one in selections for name in passed.standing(one.lesson, done)}


def _names(selections: list[Selection]) -> list[str]:
    return [one.lesson.short for one in selections]
