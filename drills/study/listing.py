"""`grade.py list`: the lessons, their exercises and how far you are. Reads files only; nothing is run or graded.

An exercise that has passed stays passed: what was learned is not lost by trying something else. That its code has
changed since is said beside it.
"""

from __future__ import annotations

import argparse

from rich.console import Console
from rich.text import Text

from drills import catalog, source
from drills.errors import PASSED
from drills.report import words
from drills.study import passed, progress


def arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.add_argument("lessons", nargs="*", metavar="LESSON", help="only these")


def run(options: argparse.Namespace, console: Console) -> int:
    """Prints a block a lesson, then how many exercises have passed."""
    done = progress.load()
    count = total = 0
    console.print()
    for selection in catalog.select(options.lessons):
        lesson = selection.lesson
        found = source.inspect(lesson.mine, lesson.exercises, lesson.stub)
        ticks = [f"{lesson.short}.{name}" in done.passed for name in selection.exercises]
        count, total = count + sum(ticks), total + len(ticks)
        _print_headline(console, lesson, sum(ticks), len(ticks), done)
        if found.problem:
            line = f":{found.problem.line}" if found.problem.line else ""
            says = f"  mine/{lesson.stem}.py{line}  {words.clean(found.problem.says)}"
            console.print(Text(says, "bold red"), soft_wrap=True)
        changed = passed.changed(lesson, done) if any(ticks) else frozenset()
        width = max(len(name) for name in lesson.exercises)
        for name, tick in zip(selection.exercises, ticks, strict=True):
            hints = done.hints.get(f"{lesson.short}.{name}", 0)
            _print_exercise(console, lesson, found, name, width, tick, name in changed, hints)
        console.print()
    console.print(Text(f" {count} of {words.plural(total, 'exercise')} passed", "bold"), soft_wrap=True)
    return PASSED


def _print_headline(console: Console, lesson: catalog.Entry, passed: int, total: int, done: progress.Progress) -> None:
    quiz = done.quiz.get(lesson.short)
    right = f"quiz {quiz['right']} of {quiz['of']} · " if quiz else ""
    right += f"{passed} of {total} passed"
    left = Text.assemble(" ", (lesson.short, "bold"), f"  {lesson.title}")
    gap = max(2, min(console.width, 80) - 1 - left.cell_len - len(right))
    console.print(Text.assemble(left, " " * gap, right), soft_wrap=True)


def _print_exercise(
    console: Console,
    lesson: catalog.Entry,
    found: source.Source,
    name: str,
    width: int,
    ticked: bool,
    changed: bool,
    hints: int,
) -> None:
    state = {function.name: function for function in found.functions}.get(name)
    word, style = _state(state.state if state else "", ticked)
    place = f"mine/{lesson.stem}.py:{state.line}" if state and state.line else ""
    text = Text.assemble(f"  {name:<{width}}  ", (f"{word:<13}", style))
    seen = f"{words.plural(hints, 'hint')} seen" if hints else ""
    since = "changed since" if ticked and changed and word == "passed" else ""
    notes = [note for note in (since, place, seen) if note]
    while notes and text.cell_len + len("  ".join(notes)) > console.width:
        notes.remove(place if place in notes else notes[0])
    text.append("  ".join(notes), "dim")
    text.rstrip()
    console.print(text, soft_wrap=True)


def _state(state: str, ticked: bool) -> tuple[str, str]:
    if ticked:
        return ("passed once" if state in ("untouched", "missing") else "passed"), "green"
    words_of = {"untouched": ("not started", "dim"), "written": ("begun", "yellow"), "missing": ("missing", "bold red")}
    return words_of.get(state, ("", ""))
