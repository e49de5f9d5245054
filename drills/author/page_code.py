"""Runs what a page claims: its doctests, its questions' checks, and the programs whose output it asks for.

A page is the project's own, so its code runs in this process. Must never be used on a learner's file.
"""

from __future__ import annotations

import ast
import contextlib
import doctest
import io
import math
import textwrap
from collections.abc import Iterator
from typing import Any

from drills.study.answers import close, judge
from drills.study.markdown import fences
from drills.study.page import Page
from drills.study.question import Question, as_number


def problems(page: Page) -> Iterator[str]:
    """Every number or program on the page that does not hold, as "file:line: what is wrong"."""
    yield from _doctests(page)
    yield from _syntax(page)
    for question in page.questions:
        where = f"{page.path.name}:{question.line}: question {question.number}"
        yield from (f"{where}: {what}" for what in _question(question))


def _names() -> dict[str, Any]:
    """What page code may use without importing it."""
    import torch

    return {"math": math, "torch": torch}


def _doctests(page: Page) -> Iterator[str]:
    """Runs the page's `>>>` examples from top to bottom in one namespace."""
    names = _names()
    parser, runner = doctest.DocTestParser(), _Runner(page.path.name)
    for fence in fences(page.source):
        if fence.info != "python" or ">>>" not in fence.text:
            continue
        try:
            test = parser.get_doctest(fence.text, names, page.path.name, page.path.name, fence.line)
        except ValueError as error:
            yield f"{page.path.name}:{fence.line}: {error}"
            continue
        test.globs = names  # get_doctest copies them, and later examples need what earlier ones define
        runner.run(test, clear_globs=False)
    yield from runner.problems


class _Runner(doctest.DocTestRunner):
    """Collects failures as one line each."""

    def __init__(self, name: str) -> None:
        super().__init__(verbose=False)
        self.name = name
        self.problems: list[str] = []

    def report_failure(self, out: Any, test: doctest.DocTest, example: doctest.Example, got: str) -> None:
        self._add(test, example, f"gives {got.strip()!r}, and the page says {example.want.strip()!r}")

    def report_unexpected_exception(
        self, out: Any, test: doctest.DocTest, example: doctest.Example, exc_info: Any
    ) -> None:
        self._add(test, example, f"raises {exc_info[0].__name__}: {exc_info[1]}")

    def _add(self, test: doctest.DocTest, example: doctest.Example, what: str) -> None:
        line = (test.lineno or 0) + example.lineno + 1
        self.problems.append(f"{self.name}:{line}: >>> {example.source.splitlines()[0]} {what}")


def _syntax(page: Page) -> Iterator[str]:
    """Python that is shown and not run must at least be Python."""
    for fence in fences(page.source):
        if fence.info == "python" and ">>>" not in fence.text:
            try:
                ast.parse(textwrap.dedent(fence.text))
            except SyntaxError as error:
                yield f"{page.path.name}:{fence.line + (error.lineno or 0)}: not Python: {error.msg}"


def _question(question: Question) -> Iterator[str]:
    if judge(question, question.answer).right is not True:
        yield f"its own answer '{question.answer}' is not accepted"
    for text in question.wrongs:
        if judge(question, text).right is not False:
            yield f"the wrong answer '{text}' is not taken for wrong"
    if question.kind == "number":
        yield from _check(question)
    if question.kind == "output":
        yield from _output(question)


def _check(question: Question) -> Iterator[str]:
    """The answer must be what its expression gives, to the last decimal that is written."""
    if not question.check:
        yield "has no 'check:' expression, so nobody recomputes its answer"
        return
    try:
        value = float(eval(question.check, _names()))
    except Exception as error:
        yield f"check fails: {type(error).__name__}: {error}"
        return
    answer = as_number(question.answer)
    decimals = question.answer.partition(".")[2]
    room = 0.5 * 10 ** -len(decimals) if decimals.isdigit() else question.tolerance
    if not close(value, answer, room):
        yield f"the answer is {question.answer}, and check gives {value:.10g}"


def _output(question: Question) -> Iterator[str]:
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            exec(compile(question.code, "<question>", "exec"), {"__name__": "__main__"})
    except Exception as error:
        yield f"its program fails: {type(error).__name__}: {error}"
        return
    if printed.getvalue().split() != question.answer.split():
        yield f"the answer is '{question.answer}', and the program prints '{' '.join(printed.getvalue().split())}'"
