"""A lesson's exercises on the site: what to write, the tests, the hints, what the real kernels are called.

The stub and the tests become pages of the book, so that these links work from a folder and in every clone. Must never
show the solution, nor what a learner wrote in `mine/`.
"""

from __future__ import annotations

import ast
import html

from drills.book import render
from drills.catalog import Entry
from drills.study.markdown import blocks
from drills.study.page import Page

KERNELS = "How FlashInfer, FlashAttention and vLLM do it"
COLUMNS = ("exercise", "write", "tests", "hints", "grade")


def section(lesson: Entry, page: Page) -> str:
    """The section that links every exercise, as Markdown."""
    stub, tests = ast.parse(lesson.stub), ast.parse(_tests(lesson))
    anchors = {block.text: block.slug for block in blocks(page.source) if block.kind == "heading" and block.level == 3}
    kernels = next((one.anchor for one in page.sections if one.title == KERNELS), "")
    rows = []
    for name in lesson.exercises:
        line = next(node.lineno for node in stub.body if isinstance(node, ast.FunctionDef) and node.name == name)
        graded = _graded(tests, name)
        count = f"{len(graded)} test" + "s" * (len(graded) != 1)
        cells = (
            f"<code>{name}</code>",
            f'<a href="{lesson.stem}_stub.html#L{line}">the stub, line {line}</a>',
            f'<a href="{lesson.stem}_tests.html#L{min(graded, default=1)}">{count}</a>',
            f'<a href="#{anchors[name]}">three, folded</a>',
            f"<code>python grade.py {lesson.short}.{name}</code>",
        )
        rows.append(_row("td", cells))
    return (
        f'## Exercises {{#exercises}}\n\n<div class="part">\n'
        f"<p>Write the body of each in <code>mine/{lesson.stem}.py</code>. "
        f'What the real kernels call them stands <a href="#{kernels}">above</a>.</p>\n'
        f'<div class="scroll exercises"><table>\n<thead>{_row("th", COLUMNS)}</thead>\n'
        f"<tbody>{''.join(rows)}</tbody>\n</table></div>\n</div>"
    )


def code_pages(lesson: Entry, title: str, repository: str) -> dict[str, str]:
    """A lesson's stub and tests as pages: name → Markdown. title: the lesson's page's."""
    kinds = {
        "stub": (f"mine/{lesson.stem}.py", lesson.stub, "The stub, as <code>python grade.py reset</code> makes it."),
        "tests": (
            f"tests/test_{lesson.stem}.py",
            _tests(lesson),
            "The tests that <code>python grade.py</code> runs on your answers.",
        ),
    }
    found = {}
    for kind, (path, text, says) in kinds.items():
        there = f' <a href="{repository}/blob/main/{path}">In the repository.</a>' if repository else ""
        back = f'<a href="{lesson.stem}.html#exercises">Back to {html.escape(title)}.</a>'
        found[f"{lesson.stem}_{kind}"] = (
            render.front_matter(search={"exclude": True}, hide=["toc"], title=path, description=f"{path}, for reading")
            + f'# `{path}`\n\n<div class="part source">\n<p>{says}{there} {back}</p>\n'
            + render.code(text, "python", anchors=True)
            + "</div>\n"
        )
    return found


def _graded(tests: ast.Module, exercise: str) -> list[int]:
    """The lines of the tests that count towards an exercise."""
    return [
        node.lineno
        for node in ast.walk(tests)
        if isinstance(node, ast.FunctionDef) and any(_counts(mark, exercise) for mark in node.decorator_list)
    ]


def _counts(mark: ast.expr, exercise: str) -> bool:
    """Whether a decorator is `pytest.mark.graded(exercise, …)`."""
    return (
        isinstance(mark, ast.Call)
        and ast.unparse(mark.func) == "pytest.mark.graded"
        and bool(mark.args)
        and isinstance(mark.args[0], ast.Constant)
        and mark.args[0].value == exercise
    )


def _row(tag: str, cells: tuple[str, ...]) -> str:
    return "<tr>" + "".join(f"<{tag}>{cell}</{tag}>" for cell in cells) + "</tr>"


def _tests(lesson: Entry) -> str:
    return lesson.tests.read_text(encoding="utf-8")
