"""`grade.py release OUT [LESSON …]`: a copy for students, without the solutions and the known answers.

Copies only what is listed here, so that a file which is added to the repository is not given away by accident. Mine/
holds untouched stubs, and drills/lessons/stubs/ the same once more, from which `reset` makes a stub where there is no
solution. The oracles stay: formulas in float64 that the tests need, no Triton. Must never write into this repository.
"""

from __future__ import annotations

import argparse
import re
import shutil
from pathlib import Path

from rich.console import Console

from drills import catalog
from drills.catalog import ROOT, Entry
from drills.errors import PASSED, GraderFailed, NothingGraded, WrongUse
from drills.report import words
from drills.study import prose

FILES = (
    "LICENSE",
    "grade.py",
    "pyproject.toml",
    "requirements.txt",
    "tests/conftest.py",
    "content/figures/scorecard.svg",
    ".gitignore",
    ".devcontainer/devcontainer.json",
)
AUTHORS = ("author", "batch", "book", "lessons")
"""Folders of drills/ that are not copied as they are: tools of authors and instructors; lessons go one by one."""

BENCH = ("__init__", "command", "child", "cost", "measure", "peers", "plot", "processes", "rows", "table", "timing")
"""The modules of drills/bench that `bench` needs; the others measure the grader, with kernels like the solutions."""

CUTS = {
    (
        " Passed? `python grade.py show l1.softmax_stats` shows yours\n"
        "   and the solution, side by side where the screen has 120 columns or more."
    ): "",
    "`list`, `reset` and `show` work": "`list` and `reset` work",
    " `python -m drills.bench.watch_latency` measures the wait.": "",
    "`solutions/`, `tests/`, pages": "`tests/`, pages",
}
"""What the README says in passing of what is not in the copy, and what it says in the copy."""

_HIDDEN = re.compile(r"<!-- not for students -->\n(.*?)<!-- for all -->\n", re.DOTALL)
_LINK = re.compile(r"(?P<open>\s\()?\[(?P<text>[^\]]*)\]\((?P<file>[\w./-]+\.md)(?:#[^)]*)?\)(?(open)\))")
_BOOK = re.compile(r"^\|[^|\n]*\| [^|\n]*\bthe book\b.*\n", re.MULTILINE)
"""A line of the README's table of packages that is about the book, which is not in the copy."""

_FIRST = re.compile(r"^## Your first exercise.*?^### ", re.MULTILINE | re.DOTALL)
_SHOWN = re.compile(r"<!-- for students\n(.*?)-->\n", re.DOTALL)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.add_argument("out", type=Path, metavar="OUT", help="a new folder, or an empty one")
    parser.add_argument("names", nargs="*", default=[], metavar="LESSON", help="only these lessons (default: all)")


def run(options: argparse.Namespace, console: Console) -> int:
    """Writes the copy and says what is in it."""
    chosen = [one.lesson for one in catalog.select(options.names)]
    if not chosen:
        raise NothingGraded("there are no lessons here")
    if not catalog.has_solutions():
        raise WrongUse("this is a copy for students already")
    out = options.out.expanduser().absolute()
    if out.resolve() == ROOT or ROOT in out.resolve().parents:
        raise WrongUse(f"{options.out} lies in this repository: name a folder outside of it")
    try:
        if out.exists() and (not out.is_dir() or any(out.iterdir())):
            raise WrongUse(f"{options.out} is not empty: name a new folder")
        write(out, chosen)
    except OSError as error:
        raise GraderFailed(f"{error.filename or options.out}: {error.strerror or error}") from None
    prose.say(console, f"{words.plural(len(chosen), 'lesson')} in {options.out}: pages, tests, stubs, the grader.")
    prose.say(console, "Left out: solutions, known answers, the book, tools of authors and instructors.")
    console.print(f" Look at it:  cd {options.out} && python grade.py list", soft_wrap=True)
    return PASSED


def write(out: Path, lessons: list[Entry]) -> None:
    """The whole copy, into a folder that is not there or empty. OSError if it cannot be written."""
    for name in FILES:
        if (ROOT / name).is_file():
            _copy(ROOT / name, out / name)
    for path in sorted((ROOT / "drills").rglob("*")):
        inside = path.relative_to(ROOT / "drills")
        if inside.parts[0] in AUTHORS or (inside.parts[0] == "bench" and path.stem not in BENCH):
            continue
        if path.is_file() and "__pycache__" not in inside.parts:
            _copy(path, out / "drills" / inside)
    for path in sorted((ROOT / "drills" / "lessons").glob("*.py")):
        if not any(path == one.facts for one in catalog.lessons()):
            _copy(path, out / "drills" / "lessons" / path.name)
    there = frozenset(one.page.name for one in lessons)
    for lesson in lessons:
        write_lesson(out, lesson, there)
    readme = for_students((ROOT / "README.md").read_text(encoding="utf-8"))
    first = _FIRST.sub(lambda steps: of_a_lesson_there(steps[0], lessons), readme)
    (out / "README.md").write_text(without_broken_links(first, there), encoding="utf-8")
    notebook = (ROOT / "colab.ipynb").read_text(encoding="utf-8")
    (out / "colab.ipynb").write_text(of_a_lesson_there(notebook, lessons), encoding="utf-8")


def write_lesson(out: Path, lesson: Entry, there: frozenset[str]) -> None:
    """One lesson: its page with its figures, its tests, its facts, and the stub twice. there: the pages in the copy."""
    for path in (lesson.tests, lesson.facts):
        _copy(path, out / path.relative_to(lesson.root))
    page = out / lesson.page.relative_to(lesson.root)
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(without_broken_links(lesson.page.read_text(encoding="utf-8"), there), encoding="utf-8")
    for figure in sorted((lesson.root / "content" / "figures").glob(f"{lesson.short}_*")):
        _copy(figure, out / figure.relative_to(lesson.root))
    copy = Entry(lesson.stem, out)
    for path in (copy.mine, copy.kept_stub):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(lesson.stub, encoding="utf-8")


def for_students(readme: str) -> str:
    """The README as it is true in the copy: some parts are cut out, others, comments until then, are put in."""
    text = _SHOWN.sub(r"\1", _HIDDEN.sub("", readme))
    for old, new in CUTS.items():
        text = text.replace(old, new)
    return re.sub(r"\n{3,}", "\n\n", _BOOK.sub("", text))


def of_a_lesson_there(text: str, lessons: list[Entry]) -> str:
    """A text that leads through a first exercise: through that of the first lesson, where its own is left out."""
    new = lessons[0]
    for old in catalog.lessons():
        if old not in lessons:
            text = re.sub(rf"\b{old.short}\b", new.short, text.replace(old.stem, new.stem))
            text = re.sub(rf"(?<=[`. ]){old.exercises[0]}\b", new.exercises[0], text)
    return text


def without_broken_links(page: str, there: frozenset[str]) -> str:
    """The page with links to pages that are not in the copy as plain words; gone where they stand in parentheses."""

    def instead(match: re.Match[str]) -> str:
        return match[0] if match["file"].rsplit("/", 1)[-1] in there else "" if match["open"] else match["text"]

    return _LINK.sub(instead, page)


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(source, target)
