"""The scorecard's lower end: what to do next, and last of all how many exercises passed."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from drills import errors
from drills.report import verdict, words
from drills.report.first_failure import target_flag
from drills.report.model import ExerciseResult, Grade, LessonResult
from drills.report.rows import BAD, GOOD, QUIET, TITLE

_WIDTH = 7
UNCONFINED = "none"
"""The isolation of a grade that ran in the grader's own process: with --debug."""


def next_lines(grade: Grade, console: Console, commands: frozenset[str]) -> list[Text]:
    """What to do next: the file, the line and the command. commands: the subcommands that may be suggested."""
    if grade.grader_error:
        return []
    own = grade.target.rstrip("/") == "mine"
    failure = verdict.first_failure(grade)
    if failure:
        lesson, exercise, _, what = failure
        if what.kind == "missing_file":
            put = f"put {lesson.stem}.py into {words.clean(grade.target)}"
            put = f"put it back, or  python grade.py reset {_short(lesson)}  makes a new stub" if own else put
            return _step("Next", put, console)
        lines = _after_failure(grade, lesson, exercise, what.line, own and "hint" in commands, console)
        if own and all(one.state == "missing" for one in lesson.exercises) and lesson.exercises:
            lines += _step("", f"python grade.py reset {_short(lesson)}  brings the stub back", console)
        return lines
    if not own:
        return []
    for lesson, exercise in verdict.exercises(grade):
        if exercise.state == "not started":
            return _to_write(lesson, exercise, console)
    if grade.lessons and grade.isolation == UNCONFINED:
        lesson = grade.lessons[-1]
        return _step("Next", f"python grade.py {_short(lesson)}  (with --debug nothing counts as passed)", console)
    if grade.lessons and not grade.level:
        lesson = grade.lessons[-1]
        if "show" in commands:
            lines = _step("Next", f"compare yours with solutions/{lesson.stem}.py", console)
            alone = f".{lesson.exercises[0].name}" if len(lesson.exercises) == 1 else ""
            return lines + _step("", f"python grade.py show {_short(lesson)}{alone}", console)
        if "list" in commands:
            return _step("Next", "python grade.py list  shows what is left", console)
    return []


def count_line(grade: Grade) -> Text:
    """The last line: how many exercises passed, and in which time."""
    if grade.grader_error:
        return Text.assemble(" ", (f"The grader failed: {words.clean(grade.grader_error)}", BAD))
    passed, all_of_them = verdict.passed(grade), words.plural(verdict.total(grade), "exercise")
    at_level = f" at level {grade.level}" if grade.level else ""
    seconds = f" in {grade.seconds:.1f} s" if grade.seconds else ""
    code = verdict.exit_code(grade)
    if code == errors.PASSED:
        who = f"All {all_of_them}" if passed > 1 else "The exercise"
        return Text.assemble(" ", (f"{who} passed{at_level}", f"bold {GOOD}"), (seconds, QUIET))
    if code == errors.NOTHING_GRADED:
        begun = "" if verdict.first_failure(grade) else "; one counts once its raise is gone"
        return Text.assemble(" ", (f"Nothing was graded: 0 of {all_of_them} begun{begun}", TITLE))
    return Text.assemble(" ", (f"{passed} of {all_of_them} passed{at_level}", TITLE), (seconds, QUIET))


def _after_failure(
    grade: Grade, lesson: LessonResult, exercise: ExerciseResult | None, line: int | None, hints: bool, console: Console
) -> list[Text]:
    what = "put right " if not exercise else f"write {exercise.name} in "
    if exercise and exercise.state != "missing":
        what = f"fix {exercise.name} in "
        line = line or exercise.line
    file = words.shorten_path(words.clean(lesson.file), max(20, console.width - 40))
    lines = _step("Next", what + file + (f":{line}" if line else ""), console)
    lines += _step("", f"python grade.py {_short(lesson)}{target_flag(grade)}", console)
    if hints and exercise:
        lines += _step("Stuck?", f"python grade.py hint {_short(lesson)}.{exercise.name}", console)
    return lines


def _to_write(lesson: LessonResult, exercise: ExerciseResult, console: Console) -> list[Text]:
    begun = any(one.state != "not started" for one in lesson.exercises)
    lines = [] if begun else _step("Read", f"content/{lesson.stem}.md", console)
    place = f":{exercise.line}" if exercise.line else ""
    lines += _step("Write", f"{exercise.name} in {lesson.file}{place}", console)
    return lines + _step("Grade", f"python grade.py {_short(lesson)}", console)


def _short(lesson: LessonResult) -> str:
    return lesson.stem.split("_", 1)[0]


def _step(label: str, text: str, console: Console) -> list[Text]:
    wrapped = Text(text).wrap(console, max(20, console.width - _WIDTH - 1)) or [Text()]
    labels = [f" {label:<{_WIDTH}}"] + [" " * (_WIDTH + 1)] * len(wrapped)
    return [Text.assemble((head, TITLE), line) for head, line in zip(labels, wrapped, strict=False)]
