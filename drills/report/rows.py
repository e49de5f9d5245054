"""The scorecard's upper half: a line a lesson, a row an exercise with how far each level has come."""

from __future__ import annotations

from rich.text import Text

from drills.report import words
from drills.report.model import LEVELS, ExerciseResult, Grade, LessonResult, LevelResult

GOOD, BAD, QUIET, TITLE = "green", "bold red", "dim", "bold"
_WIDTHS = {"value": 5, "edge": 4, "memory": 6, "traffic": 13, "compile": 8}
_PASSED = {"compile": "compiles"}
_UNDECIDED = {"off": "off", "none": "-"}
_INDENT = "  "
_STATE_WIDTH = 4


def lesson_lines(lesson: LessonResult, name_width: int, width: int, levels: tuple[str, ...] = LEVELS) -> list[Text]:
    """A lesson as lines of at most `width` columns, with these levels; one line only if nothing of it was begun."""
    if lesson.problem:
        state = Text("NOT GRADED", BAD)
        return [_headline(lesson, state, width)]
    states = {exercise.state for exercise in lesson.exercises}
    if states <= {"not started"}:
        return [_headline(lesson, Text("not started", QUIET), width)]
    passed = sum(exercise.state == "passed" for exercise in lesson.exercises)
    lines = [_headline(lesson, Text(f"{passed} of {len(lesson.exercises)}"), width)]
    for exercise in lesson.exercises:
        lines += _exercise_lines(exercise, name_width, width, levels)
    return lines


def name_width(grade: Grade) -> int:
    """The columns that the names of the exercises take."""
    return max([16, *(len(exercise.name) for lesson in grade.lessons for exercise in lesson.exercises)])


def off_lines(grade: Grade) -> list[str]:
    """Why levels were not judged at all in this run, each reason once: "traffic: there is no recorder on a GPU"."""
    reasons = {
        f"{level}: {words.clean(result.note)}"
        for lesson in grade.lessons
        for exercise in lesson.exercises
        for level, result in exercise.levels.items()
        if result.state == "off" and result.note
    }
    return sorted(reasons)


def _headline(lesson: LessonResult, state: Text, width: int) -> Text:
    short = lesson.stem.split("_", 1)[0]
    right = Text.assemble((f"file {lesson.sha256[:8]}  ", QUIET) if lesson.sha256 else "", state)
    room = width - len(short) - 3 - right.cell_len
    title = words.cap(words.clean(lesson.title), max(room - 2, 8))
    left = Text.assemble((short, TITLE), "  ", title)
    return Text.assemble(" ", left, " " * max(1, width - 1 - left.cell_len - right.cell_len), right)


def _exercise_lines(exercise: ExerciseResult, name_width: int, width: int, levels: tuple[str, ...]) -> list[Text]:
    name = Text(f"{_INDENT}{exercise.name:<{name_width}}  ")
    if exercise.state == "not started":
        return [name + Text("not started", QUIET)]
    if exercise.state == "missing":
        return [name + Text("FAIL", BAD) + Text("  no such function in the file")]
    passed = exercise.state == "passed"
    state = Text(f"{'PASS' if passed else 'FAIL':<{_STATE_WIDTH}}", GOOD if passed else BAD)
    cells = _levels(exercise, levels)
    if name.cell_len + _STATE_WIDTH + 2 + cells.cell_len <= width:
        lines = [Text.assemble(name, state, "  ", cells)]
    else:
        lines = [name + state, Text(_INDENT * 2) + cells]
    for line in lines:
        line.rstrip()
    return lines


def _levels(exercise: ExerciseResult, levels: tuple[str, ...]) -> Text:
    line = Text()
    for level in levels:
        text, style = _level(level, exercise.levels.get(level, LevelResult("none")))
        line.append(f"{text:<{_WIDTHS[level]}} ", style)
    line.rstrip()
    return line


def _level(level: str, result: LevelResult) -> tuple[str, str]:
    """A level's word and style. Without colour the word tells too: small passed, CAPITALS failed, "·" undecided."""
    figure = f" {words.clean(result.note, 5)}" if level == "traffic" and result.note else ""
    if result.state == "passed":
        return _PASSED.get(level, level) + figure, GOOD
    if result.state == "failed":
        return level.upper() + figure, BAD
    return _UNDECIDED.get(result.state, "·"), QUIET
