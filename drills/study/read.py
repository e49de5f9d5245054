"""`grade.py read`: a lesson's page in the terminal, through a pager where there is one.

Hints and answers stay folded, as on the page: they are one command away. Must never import torch.
"""

from __future__ import annotations

import argparse
import io
import os
import shlex
import shutil
import subprocess
import sys

from rich.console import Console

from drills import catalog
from drills.errors import PASSED, WrongUse
from drills.study import open_page
from drills.study.markdown import blocks, join
from drills.study.page import HINTS, SELF_CHECK, Page
from drills.study.render import show


def arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.add_argument("lesson", metavar="LESSON[#HEADING]", help="l4, or l4#edges for one part of the page")
    parser.add_argument("--all", action="store_true", help="hints and answers too")
    parser.add_argument("--no-pager", action="store_true", help="print the page without stopping")


def run(options: argparse.Namespace, console: Console) -> int:
    """Shows the page, or the part of it under one heading."""
    name, _, anchor = options.lesson.partition("#")
    lesson = catalog.find_lesson(name)
    page = open_page.load(lesson)
    source = _part(page, anchor, lesson.short) if anchor else page.source
    if not options.all and not anchor:
        source = _folded(page, source, lesson.short)
    pager = None if options.no_pager or not console.is_terminal or not sys.stdin.isatty() else _pager()
    if pager is None:
        show(console, source, indent=1)
    else:
        _through(pager, _rendered(console, source))
    return PASSED


def _part(page: Page, anchor: str, short: str) -> str:
    """The page from the heading with that anchor to the next one as high."""
    found = blocks(page.source)
    at = next((i for i, block in enumerate(found) if block.kind == "heading" and block.slug == anchor), None)
    if at is None:
        sections = ", ".join(section.anchor for section in page.sections)
        raise WrongUse(f'{short} has no heading "{anchor}"; its sections are {sections}')
    level = found[at].level
    after = (i for i in range(at + 1, len(found)) if found[i].kind == "heading" and found[i].level <= level)
    return join(found[at : next(after, len(found))], page.source)


def _folded(page: Page, source: str, short: str) -> str:
    """The page with the hints and the questions' answers replaced by the commands that show them."""
    instead = {
        HINTS: f"Folded. One at a time: `python grade.py hint {short}`",
        SELF_CHECK: f"{len(page.questions)} questions, one by one: `python grade.py quiz {short}`",
    }
    for title, words in instead.items():
        section = page.section(title)
        if section is not None and section.text:
            source = source.replace(section.text, words, 1)
    return source


def _rendered(console: Console, source: str) -> str:
    """The page as the console would print it, colors included."""
    file = io.StringIO()
    twin = type(console)(
        file=file,
        width=console.width,
        color_system=console.color_system,
        force_terminal=console.color_system is not None,
        markup=False,
        highlight=False,
        emoji=False,
    )
    show(twin, source, indent=1)
    return file.getvalue()


def _pager() -> list[str] | None:
    """The user's pager, else less, else none."""
    words = shlex.split(os.environ.get("PAGER") or "less")
    return words if words and shutil.which(words[0]) else None


def _through(pager: list[str], text: str) -> None:
    """Shows text in the pager; quitting it early, or Ctrl-C in it, is no error."""
    environment = {"LESS": "-FRX", "LESSCHARSET": "utf-8", **os.environ}
    with subprocess.Popen(pager, stdin=subprocess.PIPE, env=environment) as process:
        try:
            process.communicate(text.encode("utf-8", "replace"))
        except BrokenPipeError:
            process.wait()
        except KeyboardInterrupt:
            process.wait()
