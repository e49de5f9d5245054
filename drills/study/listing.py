"""`grade.py list`: the lessons, their exercises and how far you are. Reads files only; nothing is run or graded.

What counts is the code that is in the file now. An exercise that passed and whose code is another now is shown as
"passed once" and not counted: what was learned is not lost by trying something else, but a grading may fail.
"""

from __future__ import annotations

import argparse

from rich.console import Console
from rich.text import Text

from drills import catalog, source
from drills.errors import PASSED
from drills.report import words
from drills.study import passed, progress
from drills.study.prose import say, wrapped

_SINCE = {"untouched": "the stub again", "missing": "missing now"}
"""What became of code that passed, by the function's state; anything else is a change."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.add_argument("lessons", nargs="*", metavar="LESSON", help="only these")


def run(options: argparse.Namespace, console: Console) -> int:
    """Prints a block a lesson, then how many exercises have passed."""
    done = progress.load()
    count = total = once = 0
    console.print()
    for selection in catalog.select(options.lessons):
        lesson = selection.lesson
        found = source.inspect(lesson.mine, lesson.exercises, lesson.stub)
        standing, changed = passed.standing(lesson, done), passed.changed(lesson, done)
        now = sum(name in standing for name in selection.exercises)
        count, total = count + now, total + len(selection.exercises)
        once += sum(name in changed for name in selection.exercises)
        _print_headline(console, lesson, now, len(selection.exercises), done)
        if found.problem:
            line = f":{found.problem.line}" if found.problem.line else ""
            says = f"mine/{lesson.stem}.py{line}  {words.clean(found.problem.says)}"
            console.print(wrapped(says, console.width, "  "), style="bold red", soft_wrap=True)
        width = max(len(name) for name in lesson.exercises)
        for name in selection.exercises:
            hints = done.hints.get(f"{lesson.short}.{name}", 0)
            _print_exercise(console, lesson, found, name, width, name in standing, name in changed, hints)
        console.print()
    before = f" · {once} more passed once and changed since" if once else ""
    say(console, f"{count} of {words.plural(total, 'exercise')} passed{before}", "bold")
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
    stands: bool,
    changed: bool,
    hints: int,
) -> None:
    state = {function.name: function for function in found.functions}.get(name)
    word, style = _state(state.state if state else "", stands, changed)
    place = f"mine/{lesson.stem}.py:{state.line}" if state and state.line else ""
    text = Text.assemble(f"  {name:<{width}}  ", (f"{word:<13}", style))
    seen = f"{words.plural(hints, 'hint')} seen" if hints else ""
    since = _SINCE.get(state.state if state else "", "changed since") if changed else ""
    notes = [note for note in (since, place, seen) if note]
    while notes and text.cell_len + len("  ".join(notes)) > console.width:
        notes.remove(place if place in notes else notes[0])
    text.append("  ".join(notes), "dim")
    text.rstrip()
    console.print(text, soft_wrap=True)


def _state(state: str, stands: bool, changed: bool) -> tuple[str, str]:
    if stands or changed:
        return ("passed once", "yellow") if changed else ("passed", "green")
    words_of = {"untouched": ("not started", "dim"), "written": ("begun", "yellow"), "missing": ("missing", "bold red")}
    return words_of.get(state, ("", ""))
