"""Checks that every page keeps the format, answers to its lesson, and says nothing that does not hold.

For authors and CI: `python -m drills.author.pages`. Must never change a file.
"""

from __future__ import annotations

import ast
import importlib
import re
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Iterator
from pathlib import Path

from drills import catalog
from drills.author import page_code
from drills.errors import DrillError
from drills.study import maths
from drills.study.markdown import formulas, links, prose
from drills.study.page import HINTS, SELF_CHECK, Page, PageError, load
from drills.study.question import KINDS

SECTIONS = (
    "The problem in one picture",
    "The maths, derived",
    "A worked example",
    "The kernel, address by address",
    "Edges",
    "How FlashInfer, FlashAttention and vLLM do it",
    "Pitfalls",
    "Interview questions",
    HINTS,
    SELF_CHECK,
    "Sources",
)
"""A page's sections, in order."""

LEAST_QUESTIONS = 6

EASE = ("easy", "easily", "simply", "trivial", "trivially", "obvious", "obviously", "straightforward")
"""Words that tell a reader how hard a thing ought to be. Pages do without them."""


def page_problems(page: Page, exercises: Iterable[str]) -> Iterator[str]:
    """Everything wrong with one page, given the names of its lesson's exercises."""
    for check in (_sections, _questions, _links, _maths, _words, page_code.problems):
        yield from check(page)
    yield from _hints(page, tuple(exercises))


def anchor_problems(page: Page, anchors: Iterable[tuple[str, str]]) -> Iterator[str]:
    """The anchors that others point to and the page lacks; `anchors` holds (who points, anchor)."""
    lacking: dict[str, list[str]] = {}
    for who, anchor in anchors:
        if anchor not in page.anchors:
            lacking.setdefault(anchor, []).append(who)
    for anchor, pointing in lacking.items():
        yield f"{page.path.name}: has no heading '#{anchor}', to which {', '.join(pointing)} points"


def _sections(page: Page) -> Iterator[str]:
    found = tuple(section.title for section in page.sections)
    if found == SECTIONS:
        return
    for title in SECTIONS:
        if title not in found:
            yield f"{page.path.name}: section '{title}' is missing"
    for section in page.sections:
        if section.title not in SECTIONS:
            yield f"{page.path.name}:{section.line}: section '{section.title}' is none of those that a page has"
    if sorted(found) == sorted(SECTIONS):
        yield f"{page.path.name}: the sections are not in order: {', '.join(found)}"
    for section in page.sections:
        if not section.text:
            yield f"{page.path.name}:{section.line}: section '{section.title}' is empty"


def _hints(page: Page, exercises: tuple[str, ...]) -> Iterator[str]:
    if tuple(page.hints) != exercises:
        yield f"{page.path.name}: hints are for {_listed(page.hints)}, and the exercises are {_listed(exercises)}"


def _questions(page: Page) -> Iterator[str]:
    if len(page.questions) < LEAST_QUESTIONS:
        yield f"{page.path.name}: {len(page.questions)} questions, and a page has at least {LEAST_QUESTIONS}"
    for kind in KINDS:
        if not any(question.kind == kind for question in page.questions):
            yield f"{page.path.name}: no question of type {kind}"


def _links(page: Page) -> Iterator[str]:
    """Links to files and headings that are not there; pictures that are not well-formed."""
    for link in links(page.source):
        where = f"{page.path.name}:{link.line}: link {link.target}"
        if re.match(r"[a-z]+:", link.target):
            if not link.target.startswith("https://"):
                yield f"{where} is not https"
            continue
        name, _, anchor = link.target.partition("#")
        target = page.path.parent / name if name else page.path
        if name and not target.exists():
            yield f"{where}: there is no such file"
        elif target.suffix == ".svg":
            try:
                ElementTree.parse(target)
            except ElementTree.ParseError as error:
                yield f"{where}: the picture is not well-formed: {error}"
        elif anchor and target.suffix == ".md" and anchor not in _anchors(page, target):
            yield f"{where}: there is no such heading"


def _anchors(page: Page, target: Path) -> Iterable[str]:
    try:
        return page.anchors if target == page.path else load(target).anchors
    except PageError:
        return ()


def _maths(page: Page) -> Iterator[str]:
    for formula in formulas(page.source):
        for command in maths.unknown(formula.text):
            yield f"{page.path.name}:{formula.line}: \\{command} cannot be shown in a terminal (drills/study/maths.py)"


def _words(page: Page) -> Iterator[str]:
    for paragraph in prose(page.source):
        for word in re.findall(r"[a-z]+", paragraph.text.lower()):
            if word in EASE:
                yield f"{page.path.name}:{paragraph.line}: '{word}' tells the reader how hard it ought to be"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"


def pointers(root: Path, stem: str) -> Iterator[tuple[str, str]]:
    """Who points to which anchor of a lesson's page: its mistakes, and any text in drills/ that names the page."""
    lesson = importlib.import_module(f"drills.lessons.{stem}").LESSON
    for mistake in lesson.mistakes:
        yield f"the mistake {mistake.id}", mistake.anchor
    for key, anchor in lesson.reads.items():
        yield f"the failure {key}", anchor
    for path in sorted(root.glob("drills/**/*.py")):
        tree = ast.parse(path.read_bytes())
        docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
                for anchor in re.findall(rf"{stem}\.md#([\w-]+)", node.value):
                    yield f"{path.relative_to(root)}:{node.lineno}", anchor


def lesson_problems(lesson: catalog.Entry) -> list[str]:
    """Everything wrong with one lesson's page."""
    try:
        page = load(lesson.page)
        return [
            *page_problems(page, lesson.exercises),
            *anchor_problems(page, pointers(lesson.root, lesson.stem)),
        ]
    except PageError as error:
        return error.problems
    except (OSError, ImportError, AttributeError, DrillError) as error:
        return [f"{lesson.page.name}: {error}"]


def problems(root: Path = catalog.ROOT) -> list[str]:
    """Everything wrong with the pages under `root`, lesson by lesson."""
    return [problem for lesson in catalog.lessons(root) for problem in lesson_problems(lesson)]


def main() -> int:
    """Prints what is wrong with the pages; 0 if nothing is."""
    found = problems()
    for problem in found:
        print(f"content/{problem}")
    print(f"{len(found)} problems" if found else f"{len(catalog.lessons())} pages hold")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
