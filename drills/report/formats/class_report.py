"""The statistics of a class in Markdown, in words: "31 of 180: exp was used where s is in base 2"."""

from __future__ import annotations

from collections import Counter

from drills.report import standing
from drills.report.causes import Cause
from drills.report.formats.markdown import code, text
from drills.report.model import LEVELS
from drills.report.points import Points, shown
from drills.report.statistics import Column, Statistics, Tally
from drills.report.words import plural

_HARDEST = 10


def report(found: Statistics, points: Points) -> str:
    """The whole report."""
    lines = ["# The class", "", *_head(found, points)]
    if found.submissions:
        lines += [*_causes(found), *_exercises(found), *_levels(found), *_tests(found)]
    return "\n".join(lines).rstrip("\n") + "\n"


def _head(found: Statistics, points: Points) -> list[str]:
    if not found.submissions:
        return ["There is no submission."]
    lines = [f"{plural(found.submissions, 'submission')}:", ""]
    says = {
        standing.PASSED: "passed every exercise",
        standing.PARTLY: f"{'has' if found.standings[standing.PARTLY] == 1 else 'have'} right values in some exercises",
        standing.NOTHING: "begun, with no right values yet",
        standing.NOT_STARTED: "not started",
        standing.NOT_GRADED: "could not be graded: see problems.txt",
    }
    lines += [f"- {found.standings[one]} {says[one]}" for one in standing.ALL if found.standings[one]]
    tree = found.tree(points)
    lines += [""]
    if tree["median_points"] is not None:
        possible = sum(points.most(*column) for column in found.columns)
        median = f"- Median {shown(round(tree['median_points'] * 100))} of {shown(possible)} points"
        lines.append(f"{median}, of the {len(found.scores)} that could be graded")
    if tree["median_seconds"] is not None:
        lines.append(f"- Median time to grade one: {tree['median_seconds']:.1f} s")
    if found.refused:
        lines.append(f"- {plural(found.refused, 'submission')} with files that were not taken: their reports say which")
    return [*lines, ""]


def _causes(found: Statistics) -> list[str]:
    """Misconceptions first: they are what a lecture can mend."""
    lines = []
    for title, wanted in (("What was misunderstood", True), ("What else went wrong", False)):
        ranked = [(cause, count) for cause, count in found.top() if cause.mistake == wanted]
        if ranked:
            lines += [f"## {title}", ""]
            lines += [f"- {_of(cause, count, found)}" for cause, count in ranked] + [""]
    return lines


def _of(cause: Cause, count: int, found: Statistics) -> str:
    begun = max(found.begun[cause.lesson], count)
    return f"{count} of {begun} in {_short(cause.lesson)}: {text(cause.says)}"


def _exercises(found: Statistics) -> list[str]:
    lines = ["## Exercises", "", "| exercise | passed | failed | not started | not graded |", "|---|---|---|---|---|"]
    for column in found.columns:
        states = found.exercises[column].states
        failed = states["failed"] + states["missing"]
        cells = [_name(column), states["passed"], failed, states["not started"], found.not_graded(column)]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return [*lines, ""]


def _levels(found: Statistics) -> list[str]:
    lines = ["## Levels", "", "Passed, of those that were decided.", ""]
    lines += [f"| exercise | {' | '.join(LEVELS)} |", f"|---|{'---|' * len(LEVELS)}"]
    rows = [(column, found.exercises[column]) for column in found.columns]
    cells = [(column, [_rate(tally.levels[level], "passed", "failed") for level in LEVELS]) for column, tally in rows]
    return [*lines, *(f"| {_name(column)} | {' | '.join(rates)} |" for column, rates in cells), ""]


def _tests(found: Statistics) -> list[str]:
    """The tests that fewest pass, of all exercises together; statistics.json has every test."""
    rows = [
        (_share(counts), column, tally, id_)
        for column, tally in found.exercises.items()
        for id_, counts in tally.tests.items()
        if counts["failed"]
    ]
    rows.sort(key=lambda row: (row[0], row[1], row[3]))
    if not rows:
        return []
    lines = ["## The hardest tests", "", "| test | level | exercise | passed |", "|---|---|---|---|"]
    lines += [_test(column, tally, id_) for _, column, tally, id_ in rows[:_HARDEST]]
    more = len(rows) - _HARDEST
    rest = [f"{plural(more, 'more test')} failed for someone: see statistics.json."] if more > 0 else []
    return [*lines, "", *rest]


def _test(column: Column, tally: Tally, id_: str) -> str:
    title, level = tally.titles[id_]
    rate = _rate(tally.tests[id_], "passed", "failed", "not run")
    return f"| {text(title)} | {text(level)} | {_name(column)} | {rate} |"


def _rate(counts: Counter, good: str, *others: str) -> str:
    decided = sum(counts[one] for one in (good, *others))
    return f"{counts[good]} of {decided} ({100 * counts[good] / decided:.0f} %)" if decided else "–"


def _share(counts: Counter) -> float:
    return counts["passed"] / max(1, sum(counts.values()))


def _name(column: Column) -> str:
    return code(f"{_short(column[0])}.{column[1]}")


def _short(stem: str) -> str:
    return stem.split("_", 1)[0]
