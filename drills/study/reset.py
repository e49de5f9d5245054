"""`grade.py reset`: a lesson's stub again, or one function of it. What was there is kept; `undo` brings it back."""

from __future__ import annotations

import argparse

from rich.console import Console

from drills import catalog
from drills.errors import PASSED
from drills.study import shelf, surgery
from drills.study.prose import say


def arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.add_argument("lesson", metavar="LESSON[.EXERCISE]", help="l4, or l4.merge_states for one function of it")


def run(options: argparse.Namespace, console: Console) -> int:
    """Resets the file or the function, and says where the old text is."""
    selection = catalog.find(options.lesson)
    lesson = selection.lesson
    name = f"mine/{lesson.stem}.py"
    old = shelf.read(lesson.mine)
    single = "." in options.lesson.removesuffix(".py") or not selection.whole
    if old is None or not single:
        new, what = lesson.stub.encode("utf-8"), name
    else:
        exercise = selection.exercises[0]
        new, what = surgery.with_stub(old, exercise, lesson.stub, name), f"{exercise} in {name}"
    if old == new:
        say(console, f"{what} is the stub already. Nothing was changed.")
        return PASSED
    backup = shelf.replace(lesson.mine, new)
    say(console, f"{what} is the stub again." if backup else f"{name} is new.")
    if backup:
        say(console, f"Your text is kept in mine/{shelf.FOLDER}/{backup.name}")
        say(console, "python grade.py undo  brings it back.")
    return PASSED
