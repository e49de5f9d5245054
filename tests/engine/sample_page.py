"""A whole page in small, for tests of what reads and checks pages."""

from pathlib import Path

from drills.study.page import Page, parse

EXERCISES = ("merge_state", "merge_states")


def _hints(name: str) -> str:
    stages = (
        f"<details><summary>Hint {stage} of 3</summary>\n\nStage {stage} of `{name}`: $2^{{s_a - s}}$.\n\n</details>\n"
        for stage in (1, 2, 3)
    )
    return f"### {name}\n\n" + "\n".join(stages)


def question(number: int, asked: str, keys: str, why: str = "Because.") -> str:
    """One question of a self-check."""
    folded = f"<details><summary>Answer</summary>\n\n{why}\n\n</details>\n"
    return f"### Question {number}\n\n{asked}\n\n```quiz\n{keys}\n```\n\n{folded}"


NUMBER = "type: number\nanswer: 11\ntolerance: 0.01\nunit: base 2\nwrong 10.69: ln 2: the natural rule\ncheck: 10 + 1"
CHOICE = "type: choice\nanswer: b\nwrong a: that is NaN"
OUTPUT = "type: output\nanswer: 3 0.5\nwrong 3: the second line is missing"
PROGRAM = "What does it print?\n\n```python\nprint(3)\nprint(1 / 2)\n```"

QUESTIONS = [
    question(1, "What is s, when $s_a = s_b = 10$?", NUMBER, "It is $10 + 1$."),
    question(2, "Which?\n\n- a) NaN\n- b) zero and `-inf`", CHOICE),
    question(3, PROGRAM, OUTPUT),
    question(4, "How much?", "type: number\nanswer: 0.48\nunit: %\ncheck: 0.479"),
    question(5, "How many?", "type: number\nanswer: 43\ncheck: (2 * 5 + 4) * 3 + 1"),
    question(6, "How large?", "type: number\nanswer: -inf\ncheck: -math.inf"),
]

PARTS = {
    "The problem in one picture": "Two states, [one result](#the-first-pitfall).\n\n```mermaid\nflowchart LR\n```",
    "The maths, derived": "```math\n\\begin{aligned} v &= \\frac{a}{b} \\\\ s &= \\log_2 (w) \\end{aligned}\n```",
    "A worked example": "```python\n>>> x = 2\n>>> x * 21\n42\n```\n\n```python\n>>> math.log2(x)\n1.0\n```",
    "The kernel, address by address": "| n | reads |\n|---|---|\n| 0 | 7 |",
    "Edges": "Empty states.",
    "How FlashInfer, FlashAttention and vLLM do it": "In files.",
    "Pitfalls": "### The first pitfall\n\nAveraging.",
    "Interview questions": "<details><summary>Why?</summary>\n\nBecause.\n\n</details>",
    "Hints": "\n".join(_hints(name) for name in EXERCISES),
    "Self-check": "Six questions.\n\n" + "\n".join(QUESTIONS),
    "Sources": "- [A paper](https://arxiv.org/abs/2501.01005)",
}


def text(**changed: str) -> str:
    """The page as Markdown; a section can be changed: `text(Edges="…")`."""
    sections = (f"## {title}\n\n{body}\n" for title, body in (PARTS | changed).items())
    return "# Merging\n\nFour functions.\n\n" + "\n".join(sections)


def page(folder: Path, **changed: str) -> Page:
    """The page, parsed as if it were in `folder`."""
    return parse(text(**changed), folder / "l4_merge_states.md")


def replaced(old: str, new: str, folder: Path = Path(".")) -> Page:
    """The page with one text in it replaced, which must be there."""
    source = text()
    assert old in source
    return parse(source.replace(old, new, 1), folder / "l4_merge_states.md")
