"""`grade.py undo`: swaps a file with the text that the last reset, or the last undo, replaced.

It goes one step back and, the next time, forward again; nothing is lost by it, and older texts stay in mine/.backup/.
"""

from __future__ import annotations

import argparse

from rich.console import Console

from drills import catalog
from drills.catalog import ROOT
from drills.errors import PASSED, WrongUse
from drills.study import shelf
from drills.study.prose import say


def arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.epilog = f"Swaps the last two texts: a second undo takes the first back. Older ones: mine/{shelf.FOLDER}/"
    parser.add_argument("lesson", nargs="?", metavar="LESSON", help="this lesson's file; else the last one changed")


def run(options: argparse.Namespace, console: Console) -> int:
    """Swaps the file with the newest backup that differs from it."""
    stem = catalog.find_lesson(options.lesson).stem if options.lesson else None
    for backup in shelf.backups(ROOT / "mine", stem):
        path, data = shelf.original(backup), shelf.read(backup)
        if data is None or data == shelf.read(path):
            continue
        kept = shelf.replace(path, data)
        say(console, f"mine/{path.name} is again what it was before (from {backup.name}).")
        if kept:
            say(console, f"What it replaced is kept in mine/{shelf.FOLDER}/{kept.name}")
            say(console, f"python grade.py undo  brings that back. Older texts are in mine/{shelf.FOLDER}/")
        return PASSED
    raise WrongUse(f"there is nothing to undo{f' for {options.lesson}' if options.lesson else ''}")
