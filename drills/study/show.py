"""`grade.py show`: the solution and yours, once yours passes. Reads files only; must never change one."""

from __future__ import annotations

import argparse
import ast
from itertools import zip_longest
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from drills import catalog, source, stubs
from drills.errors import PASSED, WrongUse
from drills.report import words
from drills.study import code_lines, progress, surgery
from drills.study.prose import say

BESIDE = 120
"""Columns from which the two stand side by side; on a narrower screen one follows the other."""

NUMBER = 5
"""Columns of a line's number and the blank after it."""

Line = tuple[str, str]
"""A line's number, "" for none, and its code."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.epilog = f"The two stand side by side from {BESIDE} columns on, and below each other on a narrower screen."
    parser.add_argument("lesson", metavar="LESSON[.EXERCISE]", help="l4, or l4.merge_states for one function")
    parser.add_argument("--anyway", action="store_true", help="although yours does not pass yet")


def run(options: argparse.Namespace, console: Console) -> int:
    """Prints yours and the solution; WrongUse as long as yours does not pass and --anyway is not given."""
    selection = catalog.find(options.lesson)
    lesson = selection.lesson
    if not lesson.solution.is_file():
        raise WrongUse(f"{catalog.NOT_HERE}; ask whoever gave it to you")
    done = progress.load()
    waiting = [name for name in selection.exercises if f"{lesson.short}.{name}" not in done.passed]
    if waiting and not options.anyway:
        raise WrongUse(
            f"{', '.join(waiting)} {'has' if len(waiting) == 1 else 'have'} not passed yet: "
            f"grade with  python grade.py {options.lesson}  or add --anyway"
        )
    names = None if selection.whole else selection.exercises
    yours = _lines(lesson.mine, names)
    ours = _lines(lesson.solution, names)
    titles = f"mine/{lesson.stem}.py", f"solutions/{lesson.stem}.py"
    if console.width >= BESIDE:
        _side_by_side(console, titles, (yours, ours))
        return PASSED
    for title, lines in zip(titles, (yours, ours), strict=True):
        console.print(Text(f"── {title} ".ljust(min(console.width, 80), "─"), "bold"))
        for line in lines:
            console.print(_fitted(line, console.width), soft_wrap=True)
        console.print()
    say(console, f"Side by side from {BESIDE} columns on.", "dim")
    return PASSED


def _side_by_side(console: Console, titles: tuple[str, str], sides: tuple[list[Line], list[Line]]) -> None:
    room = console.width // 2 - 2
    table = Table(box=None, padding=(0, 1), header_style="bold")
    for title in titles:
        table.add_column(title, width=room, no_wrap=True)
    for pair in zip_longest(*sides, fillvalue=("", "")):
        table.add_row(*(_fitted(line, room) for line in pair))
    console.print(table)


def _fitted(line: Line, width: int) -> Text:
    """A numbered line in as many lines as it takes."""
    number, code = line
    pieces = code_lines.broken(code, max(20, width - NUMBER))
    margins = [f"{number:>4} " if number else "", *[" " * NUMBER] * len(pieces)]
    text = Text("\n").join(Text.assemble((m, "dim"), piece) for m, piece in zip(margins, pieces, strict=False))
    text.rstrip()
    return text


def _lines(path: Path, names: tuple[str, ...] | None) -> list[Line]:
    """A file's lines with their numbers; only the named functions and what they use of the file, if names are given."""
    try:
        data = path.read_bytes()
    except OSError as error:
        return [("", f"{error.strerror or error}")]
    text = data.decode("utf-8-sig", errors="replace").replace("\r\n", "\n").replace("\r", "\n")
    lines = text.rstrip("\n").split("\n")
    tree = source.parse(data)
    wanted: list[int] = list(range(1, len(lines) + 1))
    if names and isinstance(tree, ast.Module):
        wanted = sorted(surgery.needed_lines(tree, names))
    shown: list[Line] = []
    for before, number in zip([0, *wanted], wanted, strict=False):
        text = lines[number - 1] if number <= len(lines) else ""
        if shown and number > before + 1:
            shown.append(("", ""))
        if text.strip() not in (stubs.BEGIN, stubs.END):
            shown.append((str(number), words.clean_lines(text, 2000)))
    return shown
