"""`grade.py hint`: the next hint for the exercise that a learner is at, one stage at a time.

The hints are the page's. Must never import torch, and never shows a later stage before it is asked for.
"""

from __future__ import annotations

import argparse

from rich.console import Console

from drills import catalog
from drills.errors import PASSED, WrongUse
from drills.study import open_page, passed, place, progress
from drills.study.page import STAGES, Page
from drills.study.prose import say
from drills.study.render import show


def arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.add_argument("lesson", nargs="?", metavar="LESSON[.EXERCISE]", help="left out: where you are")
    parser.add_argument("--all", action="store_true", help="all three hints of the exercise")
    parser.set_defaults(by_key=False)


def run(options: argparse.Namespace, console: Console) -> int:
    """Shows the next unseen hint of the first exercise whose code has not passed, or of the exercise named.

    options.by_key: the next one comes with a key, and no command is named for it.
    """
    done = progress.load()
    selection = catalog.find(options.lesson) if options.lesson else _where_you_are(done)
    lesson = selection.lesson
    page = open_page.load(lesson)
    standing = passed.standing(lesson, done)
    names = [name for name in selection.exercises if name not in standing]
    if not names and selection.whole:
        again = f"python grade.py hint {lesson.short}.{selection.exercises[0]} --all"
        say(console, f"{lesson.short}: every exercise has passed. Name one to see its hints again:  {again}")
        return PASSED
    name = (names or list(selection.exercises))[0]
    _show_hints(console, page, lesson.short, name, done.hints.get(f"{lesson.short}.{name}", 0), options)
    return PASSED


def _where_you_are(done: progress.Progress) -> catalog.Selection:
    selections = catalog.select([])
    if not selections:
        raise WrongUse("there are no lessons here")
    return place.of(selections, done)


def _show_hints(console: Console, page: Page, short: str, name: str, seen: int, options: argparse.Namespace) -> None:
    hints = page.hints.get(name)
    if not hints:
        raise WrongUse(f"content/{page.path.name} has no hints for {name}")
    seen = max(0, min(seen, STAGES))
    stages = range(1, STAGES + 1) if options.all else [min(seen + 1, STAGES)]
    for stage in stages:
        again = " (seen before)" if stage <= seen and not options.all else ""
        console.print(f" {short} · {name} · hint {stage} of {STAGES}{again}\n", style="bold")
        show(console, hints[stage - 1], indent=1)
        console.print()
    last = max(stages)
    trouble = progress.record_hint(f"{short}.{name}", last)
    if trouble:
        say(console, trouble)
    if last < STAGES and not options.by_key:
        say(console, f"Still stuck?  python grade.py hint {short}.{name}", "dim")
    elif last == STAGES and catalog.has_solutions():
        say(console, f"That was the last.  The solution: python grade.py show {short}.{name} --anyway", "dim")
