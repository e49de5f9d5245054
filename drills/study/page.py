"""A lesson's page (`content/X.md`) as data: sections, anchors, hints, questions.

The page is the only source of `read`, `hint` and `quiz`. This module must never import torch or a lesson, and must
never guess: what is malformed is reported with its file and line. Whether a page is complete and its numbers are true
is checked by `drills/author/pages.py`.

The format, all of it plain Markdown that renders on GitHub:

    # Title                              one, before anything else
    ## Section                           any number; `drills/author/pages.py` checks names and order
    ### Heading                          its GitHub slug is an anchor

    ## Hints
    ### merge_state                      the exercise's name, backquotes allowed
    <details><summary>Hint 1 of 3</summary>
                                         (an empty line, so that GitHub reads what follows as Markdown)
    Markdown, code fences included.

    </details>                           on a line of its own; exactly three hints an exercise

    ## Self-check
    ### Question 1                       numbered from 1 in order
    Markdown: the question.
    ```quiz
    type: number                         number | choice | output
    answer: 11
    tolerance: 0.01                      number; absolute; left out: half the answer's last decimal, 0 for an integer
    unit: base 2                         number; "base 2" and "natural" are converted into each other, others are words
    wrong 10.69: that is the natural-log rule       any number of these; shown to who gives that answer
    check: math.log2(2 ** 10 + 2 ** 10)  number; one Python expression (math, torch), recomputed in CI
    ```
    <details><summary>Answer</summary>

    Markdown: the explanation.

    </details>

A `choice` has its options in the question's text as one list, `- a) …`, and `answer: b`, `wrong a: …`. An `output` has
one ```python fence in its text; what it prints, white space squeezed, is `answer: 3 0.5` (CI runs it).
Display maths stands in ```math fences (or `$$…$$`), inline maths in `$…$`. Doctests are ```python fences with `>>>`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from drills.study.markdown import Block, blocks, folded, join, split
from drills.study.question import Question, read_question

HINTS = "Hints"
SELF_CHECK = "Self-check"
STAGES = 3


class PageError(ValueError):
    """A page that breaks the format. `problems` holds every finding as "file:line: what is wrong"."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


@dataclass(frozen=True)
class Section:
    """A `##` section: its title, anchor, first line, and its Markdown without the heading."""

    title: str
    anchor: str
    line: int
    text: str


@dataclass(frozen=True)
class Page:
    """A parsed page. anchors: GitHub slug → line. hints: exercise → three Markdown texts, in the page's order."""

    path: Path
    source: str
    title: str
    sections: tuple[Section, ...]
    anchors: dict[str, int]
    hints: dict[str, list[str]]
    questions: tuple[Question, ...]

    def section(self, title: str) -> Section | None:
        """The section of that title, None if the page has none."""
        return next((s for s in self.sections if s.title == title), None)


def load(path: Path) -> Page:
    """Read and parse the page at `path`. PageError if it breaks the format or is not UTF-8."""
    try:
        source = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise PageError([f"{path.name}:1: not UTF-8 text ({error.reason} at byte {error.start})"]) from error
    return parse(source, path)


def parse(source: str, path: Path) -> Page:
    """Parse a page's text; `path` is for messages and for resolving links. PageError lists everything malformed."""
    return _Reader(source, path).page()


@dataclass
class _Reader:
    source: str
    path: Path
    problems: list[str] = field(default_factory=list)

    def wrong(self, line: int, what: str) -> None:
        self.problems.append(f"{self.path.name}:{line}: {what}")

    def page(self) -> Page:
        found = blocks(self.source)
        title = found[0].text if found and found[0].kind == "heading" and found[0].level == 1 else ""
        if not title:
            self.wrong(1, "the page must begin with its title, '# …'")
        sections, hints, questions = [], {}, ()
        for heading, body in split(found, 2):
            sections.append(Section(heading.text, heading.slug, heading.line, join(body, self.source)))
            if heading.text == HINTS:
                hints = self.hints(body)
            elif heading.text == SELF_CHECK:
                questions = self.questions(body)
        if self.problems:
            raise PageError(self.problems)
        anchors = {block.slug: block.line for block in found if block.kind == "heading"}
        return Page(self.path, self.source, title, tuple(sections), anchors, hints, questions)

    def hints(self, body: list[Block]) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for heading, inside in split(body, 3):
            stages = []
            for opening, summary, content in folded(inside, self.wrong):
                wanted = f"Hint {len(stages) + 1} of {STAGES}"
                if summary != wanted:
                    self.wrong(opening.line, f"the summary is '{summary}' and must be '{wanted}'")
                if not content:
                    self.wrong(opening.line, f"{wanted} of {heading.text} is empty")
                stages.append(join(content, self.source))
            if len(stages) != STAGES:
                self.wrong(heading.line, f"{heading.text} has {len(stages)} hints and must have {STAGES}")
            if heading.text in found:
                self.wrong(heading.line, f"the hints for {heading.text} stand twice")
            found[heading.text] = stages
        return found

    def questions(self, body: list[Block]) -> tuple[Question, ...]:
        found = []
        for number, (heading, inside) in enumerate(split(body, 3), start=1):
            if heading.text != f"Question {number}":
                self.wrong(heading.line, f"'{heading.text}' must be 'Question {number}'")
            question = read_question(number, heading, inside, self.source, self.wrong)
            if question is not None:
                found.append(question)
        return tuple(found)
