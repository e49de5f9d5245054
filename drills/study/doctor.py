"""`grade.py doctor`: is this machine fit? A line for each thing that grading needs: ok, problem, and what to do.

Works on a machine that lacks almost everything; must never import torch, Triton or numpy, and changes nothing.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable

from rich.console import Console
from rich.text import Text

from drills.errors import FAILED, PASSED
from drills.report import words
from drills.study import doctor_checks as checks
from drills.study.doctor_checks import Finding

STYLES = {"ok": "green", "problem": "bold red", "note": "dim"}
WORDS = {"ok": "ok", "problem": "PROBLEM", "note": "-"}
COLUMN = 10


def arguments(parser: argparse.ArgumentParser) -> None:
    """There are none."""


def run(options: argparse.Namespace, console: Console) -> int:
    """Prints a line a finding as soon as it is known; 0 if there is no problem, else 1."""
    whole = not checks.missing()
    tried = [checks.interpreter, checks.compile_gate, checks.gpu] if whole else []  # else they only fail again
    others = [checks.isolation_levels, lambda: checks.terminal(console), checks.own_files]
    return examine(console, [checks.python, checks.packages, *tried, *others])


def examine(console: Console, every: Iterable[Callable[[], list[Finding]]]) -> int:
    """Carries out the checks in turn and counts the problems."""
    console.print()
    problems = 0
    for check in every:
        for finding in _found(check):
            problems += finding.state == "problem"
            for line in lines(finding, console):
                console.print(line, soft_wrap=True)
    console.print()
    if problems:
        says = f" {words.plural(problems, 'problem')}: put the first right, then run doctor again."
        for line in Text(says, "bold red").wrap(console, console.width):
            line.rstrip()
            console.print(line, soft_wrap=True)
        return FAILED
    console.print(Text(" This machine is fit.", "bold green"), soft_wrap=True)
    return PASSED


def _found(check: Callable[[], list[Finding]]) -> list[Finding]:
    """What a check finds; if it breaks, that is a problem too, and the others still run."""
    try:
        return check()
    except Exception as error:
        name = getattr(check, "__name__", "a check").replace("_", " ")
        return [Finding("problem", f"{name} could not be looked at: {type(error).__name__}: {error}")]


def lines(finding: Finding, console: Console) -> list[Text]:
    """A finding, and below it what to do."""
    style = STYLES[finding.state]
    texts = [(WORDS[finding.state], words.clean(finding.says), "dim" if finding.state == "note" else "")]
    texts += [("", f"→ {words.clean(finding.todo)}", "")] if finding.todo else []
    found: list[Text] = []
    for word, says, own in texts:
        wrapped = Text(says, own).wrap(console, max(20, console.width - COLUMN))
        for index, line in enumerate(wrapped):
            line.rstrip()
            found.append(Text.assemble((f" {word if not index else '':<{COLUMN - 1}}", style), line))
    return found
