"""`grade.py undo`: brings back what the last reset, or the last undo, replaced. Nothing is lost by it either."""

from __future__ import annotations

import argparse

from rich.console import Console

from drills import catalog
from drills.catalog import ROOT
from drills.errors import PASSED, WrongUse
from drills.study import shelf


def arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.add_argument("lesson", nargs="?", metavar="LESSON", help="this lesson's file; else the last one changed")


def run(options: argparse.Namespace, console: Console) -> int:
    """Swaps the file with the newest backup that differs from it."""
    stem = catalog.find_lesson(options.lesson).stem if options.lesson else None
    for backup in shelf.backups(ROOT / "mine", stem):
        path, data = shelf.original(backup), shelf.read(backup)
        if data is None or data == shelf.read(path):
            continue
        kept = shelf.replace(path, data)
        console.print(f" mine/{path.name} is again what it was before (from {backup.name}).", soft_wrap=True)
        if kept:
            console.print(f" What it replaced is kept in mine/{shelf.FOLDER}/{kept.name}", soft_wrap=True)
            console.print(" python grade.py undo  brings that back.", soft_wrap=True)
        return PASSED
    raise WrongUse(f"there is nothing to undo{f' for {options.lesson}' if options.lesson else ''}")
