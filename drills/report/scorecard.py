"""The screen: one grade as a scorecard. Knows results only, not how they came about; must never decide a verdict."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from drills.report import rows, words
from drills.report.first_failure import failure_lines
from drills.report.kernels import kernel_lines
from drills.report.model import LEVELS, Grade, LessonResult
from drills.report.next_step import count_line, next_lines
from drills.report.rows import QUIET, TITLE

_MOST_SMALL_LINES = 3
_DEVICES = {"cpu": "the CPU interpreter", "cuda": "the GPU"}


def print_scorecard(grade: Grade, console: Console, commands: frozenset[str] = frozenset()) -> None:
    """Prints the whole scorecard. commands: the subcommands that it may suggest ("hint", "show")."""
    for line in scorecard(grade, console, commands):
        console.print(line, soft_wrap=True)


def scorecard(grade: Grade, console: Console, commands: frozenset[str] = frozenset()) -> list[Text]:
    """The scorecard's lines, made for the console's width."""
    parts = [header_lines(grade, console), _lesson_part(grade, console), failure_lines(grade, console)]
    parts += [next_lines(grade, console, commands), [count_line(grade)]]
    lines = [Text()]
    for part in parts[:3]:
        lines += [*part, Text()] if part else []
    return [one for line in lines + parts[3] + parts[4] + [Text()] for one in _fit(line, console)]


def _fit(line: Text, console: Console) -> list[Text]:
    """The line itself, or pieces of it on a screen so narrow that it does not fit."""
    pieces = [line] if line.cell_len <= console.width else list(line.wrap(console, console.width))
    for piece in pieces:
        piece.rstrip()
    return pieces


def header_lines(grade: Grade, console: Console) -> list[Text]:
    """What is graded and by what, broken between facts where they do not fit one line."""
    device = _DEVICES.get(grade.device, words.clean(grade.device, 60))
    target = words.shorten_path(words.clean(grade.target), max(20, console.width - 40))
    facts = [f"Grading {target} on {device}"]
    facts += [f"{name} {words.clean(version, 30).partition('+')[0]}" for name, version in grade.versions.items()]
    facts += [f"isolation {grade.isolation}"] if grade.isolation else []
    facts += [f"level {grade.level} only"] if grade.level else []
    lines, line = [], ""
    for fact in facts:
        joined = f"{line} · {fact}" if line else f" {fact}"
        if line and len(joined) > console.width:
            lines.append(line)
            joined = f"   {fact}"
        line = joined
    texts = [Text(one, TITLE if not index else QUIET) for index, one in enumerate([*lines, line])]
    if grade.instruments not in ("", "on"):
        says = words.clean(grade.instruments)
        texts += [Text(f" instruments {says if says.startswith('off') else 'off: ' + says}", "yellow")]
    return texts


def _lesson_part(grade: Grade, console: Console) -> list[Text]:
    width = min(console.width, 88)
    levels = (grade.level,) if grade.level else LEVELS
    one_lesson = len(grade.lessons) == 1
    lines: list[Text] = []
    for lesson in grade.lessons:
        if grade.grader_error and not _decided(lesson):
            continue
        lines += rows.lesson_lines(lesson, rows.name_width(grade), width, levels)
        for exercise in lesson.exercises:
            if exercise.state == "passed":
                lines += _small_lines("advice", [f"{exercise.name}: {text}" for text in exercise.advice], console)
                lines += _small_lines("gpu", kernel_lines(exercise.kernels), console) if one_lesson else []
    reasons = [] if grade.level or grade.grader_error else rows.off_lines(grade)
    return lines + [Text(f"  {reason}", QUIET) for reason in reasons]


def _decided(lesson: LessonResult) -> bool:
    """Whether any test of the lesson came to an end: where the grader failed, FAIL would be said of nothing."""
    return any(test.outcome != "not run" for exercise in lesson.exercises for test in exercise.tests)


def _small_lines(label: str, texts: list[str], console: Console) -> list[Text]:
    """A line or two below an exercise: advice, and the figures of its kernels if only one lesson is shown."""
    lines: list[Text] = []
    style = "yellow" if label == "advice" else QUIET
    for text in texts[:_MOST_SMALL_LINES]:
        wrapped = Text(words.clean(text), style).wrap(console, max(20, console.width - 14))
        heads = [f"    {label:<8}"] + [" " * 12] * len(wrapped)
        lines += [Text.assemble((head, QUIET), one) for head, one in zip(heads, wrapped, strict=False)]
    for line in lines:
        line.rstrip()
    return lines
