"""The end screen of a batch: how the class stands, what went wrong most, and where the outputs are."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from drills.report import standing, words
from drills.report.causes import Cause
from drills.report.rows import BAD, GOOD, QUIET, TITLE
from drills.report.statistics import Statistics

_MOST = 3
_LONGEST = 60
_STYLES = {standing.PASSED: GOOD, standing.NOT_GRADED: BAD}


def summary_lines(
    found: Statistics, out: str, console: Console, isolation: str = "", left_out: bool = False
) -> list[Text]:
    """Lines that fit the console. out: the folder of the outputs, as the user gave it. isolation: what was in force.

    left_out: something lay beside the submissions that is none.
    """
    shown = [(one, found.standings[one]) for one in standing.ALL]
    # Not started and could not be graded are worth a word only where they occur; the others always.
    facts = [
        Text(f"{name} {count}", _STYLES.get(name, "") if count else QUIET)
        for name, count in shown
        if count or name in (standing.PASSED, standing.PARTLY, standing.NOTHING)
    ]
    folder = out.rstrip("/") or out
    if found.standings[standing.NOT_GRADED]:
        facts[-1].append(f" (see {folder}/problems.txt)", QUIET)
    lines = _joined(" ", facts, console)
    if left_out:
        lines += _fit(Text(f" Files beside the submissions were left out: see {folder}/problems.txt"), console)
    causes = top_causes(found)
    several = len(found.begun) > 1
    if causes:
        lines += _joined(" Most common: ", [Text(_says(cause, count, several)) for cause, count in causes], console)
    places = [Text.assemble(("Gradebook", TITLE), f" {folder}/gradebook.csv"), Text(f"reports in {folder}/reports/")]
    places += [Text(f"isolation {isolation}", QUIET)] if isolation else []
    return [*lines, *_joined(" ", places, console)]


def top_causes(found: Statistics) -> list[tuple[Cause, int]]:
    """The most common causes that say what was misunderstood, or what was done; no others."""
    return [(cause, count) for cause, count in found.top() if cause.explained][:_MOST]


def _says(cause: Cause, count: int, several: bool) -> str:
    lesson = f"{cause.lesson.split('_', 1)[0]} " if several else ""
    return f"{lesson}{_brief(cause.says)} ({count})"


def _brief(says: str) -> str:
    """At most so many characters: cut at a comma where enough stands before it."""
    head = says[:_LONGEST].rpartition(", ")[0]
    return says if len(says) <= _LONGEST else head if len(head) >= _LONGEST // 3 else words.cap(says, _LONGEST)


def _joined(label: str, facts: list[Text], console: Console) -> list[Text]:
    """Facts on as many lines as they need, broken between facts where that is possible."""
    lines: list[Text] = []
    line = Text(label)
    empty = True
    for fact in facts:
        if not empty and line.cell_len + 3 + fact.cell_len > console.width:
            lines.append(line)
            line, empty = Text("   "), True
        line = line + (Text("" if empty else " · ")) + fact
        empty = False
    return [piece for one in [*lines, line] for piece in _fit(one, console)]


def _fit(line: Text, console: Console) -> list[Text]:
    pieces = [line] if line.cell_len <= console.width else list(line.wrap(console, console.width))
    for piece in pieces:
        piece.rstrip()
    return pieces
