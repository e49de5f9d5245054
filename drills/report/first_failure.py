"""The scorecard's middle: the first failure only, in the parts test, called, got, expected, likely, read."""

from __future__ import annotations

import textwrap

from rich.console import Console
from rich.text import Text

from drills.report import kinds, verdict, words
from drills.report.model import ExerciseResult, Failure, Grade, LessonResult, TestResult
from drills.report.rows import BAD, QUIET, TITLE

LABEL_WIDTH = 10
_INDENT = " " * 3
_MOST_LINES = 8


def failure_lines(grade: Grade, console: Console) -> list[Text]:
    """The first failure as lines that fit the console; none if nothing failed."""
    found = verdict.first_failure(grade)
    if not found or grade.grader_error:
        return []
    lesson, exercise, test, failure = found
    where = [lesson.stem.split("_", 1)[0]]
    where += [exercise.name, failure.level] if exercise else [failure.kind.replace("_", " ")]
    lines = [Text.assemble(" ", ("First failure: ", BAD), (" · ".join(where), TITLE))]
    if test:
        lines += field("test", test.title, console)
    lines += field("called", failure.called, console)
    lines += field("got", failure.got, console)
    lines += _source_lines(lesson, exercise, failure.line, failure.source, console)
    lines += field("expected", failure.expected, console)
    lines += field("likely", failure.likely, console, style="bold")
    lines += field("compile", _on_a_gpu(exercise, failure), console, style="bold")
    lines += field("read", failure.read, console)
    lines += field("printed", test.printed if test else "", console)
    lines += field("also", _others(exercise, test, failure), console, style=QUIET)
    if test and grade.seed is not None:
        again = f"python grade.py {where[0]}.{where[1]}{target_flag(grade)} --seed {grade.seed}"
        lines += field("repeat", again, console, style=QUIET)
    return lines


def field(label: str, text: str, console: Console, style: str = "") -> list[Text]:
    """A label and its text, wrapped with a hanging indent; nothing for an empty text."""
    cleaned = words.clean_lines(text).strip("\n")
    if not cleaned.strip():
        return []
    room = max(20, console.width - len(_INDENT) - LABEL_WIDTH)
    wrapped = [line for part in cleaned.split("\n") for line in (Text(part, style).wrap(console, room) or [Text()])]
    labels = [f"{label:<{LABEL_WIDTH}}"] + [" " * LABEL_WIDTH] * len(wrapped)
    heads = zip(labels, wrapped[:_MOST_LINES], strict=False)
    lines = [Text.assemble(_INDENT, (head, QUIET), line) for head, line in heads]
    for line in lines:
        line.rstrip()
    return lines


def target_flag(grade: Grade) -> str:
    """The flags that grade the same target again: "" for the learner's own folder."""
    folder = grade.target.rstrip("/")
    return {"mine": "", "solutions": " --solutions"}.get(folder, f" --target {words.clean(folder)}")


def _source_lines(
    lesson: LessonResult, exercise: ExerciseResult | None, line: int | None, source: str, console: Console
) -> list[Text]:
    if not line:
        return []
    room = max(20, console.width - len(_INDENT) - LABEL_WIDTH)
    place = f":{line}"
    lines = field("at", words.shorten_path(words.clean(lesson.file), room - len(place)) + place, console)
    for one in textwrap.dedent(words.clean_lines(source)).strip("\n").split("\n")[:2] if source else []:
        code = Text(one.rstrip(), "cyan")
        code.truncate(room, overflow="ellipsis")
        lines.append(Text.assemble(_INDENT, " " * LABEL_WIDTH, code))
    return lines


def _on_a_gpu(exercise: ExerciseResult | None, shown: Failure) -> str:
    """What the compiler refuses, where nothing else says why the exercise fails."""
    explained = shown.read or (shown.likely and shown.kind not in kinds.UNEXPLAINED)
    if not exercise or explained or shown.level == "compile":
        return ""
    found = next((one.failure for one in exercise.tests if one.failure and one.failure.level == "compile"), None)
    if not found or shown.kind == "exception" and not found.likely and found.line in (None, shown.line):
        return ""  # the same again, in the compiler's words; or an exception came before any launch
    place = f"line {found.line}: " if found.line else ""
    return place + (found.likely or found.got)


def _others(exercise: ExerciseResult | None, test: TestResult | None, shown: Failure) -> str:
    """How many more of the exercise's tests failed, and at which other levels."""
    if not exercise:
        return ""
    failed = sum(one.outcome == "failed" and one is not test for one in exercise.tests)
    left = sum(one.outcome == "not run" for one in exercise.tests) if test else 0
    elsewhere = [name for name, one in exercise.levels.items() if one.state == "failed" and name != shown.level]
    at = f" (levels too: {', '.join(elsewhere)})" if elsewhere else ""
    parts = [f"{words.plural(failed, 'more test')} of {exercise.name} failed{at}"] if failed else []
    parts += [f"{words.plural(left, 'test')} of it not run"] if left else []
    return ", ".join(parts)
