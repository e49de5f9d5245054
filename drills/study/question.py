"""One self-check question: what it holds and how it is read from its blocks on the page.

The format is written down in `page.py`. Must never judge an answer (`quiz.py` does that).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from drills.study.markdown import Block, folded, join

KINDS = ("number", "choice", "output")
KEYS = ("type", "answer", "tolerance", "unit", "check")
LETTERS = "abcdefgh"

Tell = Callable[[int, str], None]
"""Called with a line of the page and what is wrong there."""


@dataclass(frozen=True)
class Question:
    """One question; `page.py` says what each key means.

    text, explanation: Markdown. options: a choice's letter → its text. code: the program whose output is asked for.
    wrongs: a natural wrong answer → why it is wrong. line: the line of its heading.
    """

    number: int
    kind: str
    text: str
    answer: str
    explanation: str
    line: int
    tolerance: float = 0.0
    unit: str = ""
    check: str = ""
    code: str = ""
    wrongs: dict[str, str] = field(default_factory=dict)
    options: dict[str, str] = field(default_factory=dict)


def as_number(text: str) -> float | None:
    """A number as people write it (`1,024`, `−inf`, `2e-3`); None if it is none."""
    try:
        return float(text.replace("\u2212", "-").replace("\u221e", "inf").replace(",", ""))
    except ValueError:
        return None


def read_question(number: int, heading: Block, body: list[Block], source: str, tell: Tell) -> Question | None:
    """The question under `heading`; None if it is malformed, which `tell` has then been told."""
    told: list[int] = []

    def wrong(line: int, what: str) -> None:
        told.append(line)
        tell(line, f"question {number}: {what}")

    keys = [block for block in body if block.kind == "fence" and block.info == "quiz"]
    if len(keys) != 1:
        wrong(heading.line, f"has {len(keys)} ```quiz fences and must have one")
        return None
    at = body.index(keys[0])
    asked, answers = body[:at], folded(body[at + 1 :], wrong)
    if not asked:
        wrong(heading.line, "asks nothing before its ```quiz fence")
    if len(answers) != 1 or not answers[0][2]:
        wrong(heading.line, "needs one <details> with the explanation after its ```quiz fence")
    values, wrongs = _keys(keys[0], wrong)
    kind, answer = values.get("type", ""), values.get("answer", "")
    if kind not in KINDS:
        wrong(keys[0].line, f"type is '{kind}' and must be one of {', '.join(KINDS)}")
    if not answer:
        wrong(keys[0].line, "has no answer")
    options = _options(asked, keys[0], (answer, *wrongs), wrong) if kind == "choice" else {}
    code = _code(asked, keys[0], wrong) if kind == "output" else ""
    tolerance = _tolerance(values, wrongs, keys[0], wrong) if kind == "number" else 0.0
    if told:
        return None
    return Question(
        number=number,
        kind=kind,
        text=join(asked, source),
        answer=answer,
        explanation=join(answers[0][2], source),
        line=heading.line,
        tolerance=tolerance,
        unit=values.get("unit", ""),
        check=values.get("check", ""),
        code=code,
        wrongs=wrongs,
        options=options,
    )


def _keys(fence: Block, wrong: Tell) -> tuple[dict[str, str], dict[str, str]]:
    """The fence's keys, and its `wrong …` lines apart."""
    values: dict[str, str] = {}
    wrongs: dict[str, str] = {}
    for line, text in enumerate(fence.text.splitlines(), start=fence.line + 1):
        if not text.strip():
            continue
        key, colon, value = (part.strip() for part in text.partition(":"))
        if not colon or not value:
            wrong(line, f"'{text.strip()}' is not 'key: value'")
        elif key.startswith("wrong "):
            wrongs[key.removeprefix("wrong ").strip()] = value
        elif key not in KEYS:
            wrong(line, f"unknown key '{key}' (known: {', '.join(KEYS)}, wrong …)")
        elif key in values:
            wrong(line, f"'{key}' stands twice")
        else:
            values[key] = value
    return values, wrongs


def _tolerance(values: dict[str, str], wrongs: dict[str, str], fence: Block, wrong: Tell) -> float:
    """The stated tolerance, else half of the answer's last decimal, 0 for an integer."""
    given = {f"wrong {value}": value for value in wrongs}
    given.update({key: values[key] for key in ("answer", "tolerance") if key in values})
    for name, text in given.items():
        if as_number(text) is None:
            wrong(fence.line, f"{name} must be a number, not '{text}'")
    if "tolerance" in values:
        return as_number(values["tolerance"]) or 0.0
    decimals = values.get("answer", "").partition(".")[2]
    return 0.5 * 10 ** -len(decimals) if decimals.isdigit() else 0.0


def _options(asked: list[Block], fence: Block, used: tuple[str, ...], wrong: Tell) -> dict[str, str]:
    """The options of a choice: the question's last list, `- a) …`, lettered in order."""
    lists = [block for block in asked if block.kind == "list"]
    items = lists[-1].items if lists else ()
    found: dict[str, str] = {}
    for letter, item in zip(LETTERS, items, strict=False):
        if not item.startswith(f"{letter}) "):
            wrong(lists[-1].line, f"option '{item}' must begin with '{letter}) '")
            return {}
        found[letter] = item[3:].strip()
    if len(found) < 2:
        wrong(fence.line, "is a choice and needs a list of options, '- a) …'")
    for letter in used:
        if found and letter and letter not in found:
            wrong(fence.line, f"'{letter}' is none of the options {', '.join(found)}")
    return found


def _code(asked: list[Block], fence: Block, wrong: Tell) -> str:
    """The program whose output is asked for."""
    programs = [block.text for block in asked if block.kind == "fence" and block.info == "python"]
    if len(programs) != 1:
        wrong(fence.line, f"is about an output: it needs one ```python fence and has {len(programs)}")
        return ""
    return programs[0]
