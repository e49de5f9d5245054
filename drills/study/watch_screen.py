"""`watch` on a terminal: one calm screen with the current exercise, its first failure, and what to do next.

    Watching mine/l2_mlo_merge.py on the CPU interpreter · isolation landlock

    l2  FlashDecoding's triple                                          1 of 3
      partial_attention PASS  value edge memory traffic 1.02x compiles
    > merge_pair        FAIL  value EDGE ·      ·             ·
      merge_mlo         not started

    First failure: l2 · merge_pair · edge
      test      two empty parts stay empty …

    Next   fix merge_pair in mine/l2_mlo_merge.py:58 and save
    Stuck? h shows a hint

    n next   h hint   r run   l list   q quit
    18:05:12 · 1 of 3 passed · waiting for you to save

Only the last line moves while something runs. Knows results only; must never decide a verdict.
"""

from __future__ import annotations

from dataclasses import replace

from rich.console import Console
from rich.text import Text

from drills import catalog
from drills.report import first_failure, problems, rows, scorecard, words
from drills.report.model import Failure, Grade, LessonResult
from drills.report.rows import BAD, GOOD, QUIET, TITLE
from drills.study.watch_state import State

WIDEST = 88
KEYS = (("n", "next"), ("h", "hint"), ("r", "run"), ("l", "list"), ("q", "quit"))


def lines(state: State, console: Console) -> list[Text]:
    """The whole screen but for the keys and the last line."""
    middle = _failure(state, console)
    parts = [_head(state, console), _table(state, console), middle, _next(state)]
    found: list[Text] = []
    for part in parts:
        found += [*part, Text()] if part else []
    return [piece for line in found for piece in _fit(line, console)]


def keys_line(width: int) -> Text:
    """The keys and what they do."""
    gap = "   " if width >= 44 else "  "
    parts: list[tuple[str, str]] = []
    for key, does in KEYS:
        parts += [(gap if parts else " ", ""), (key, TITLE), (f" {does}", QUIET)]
    return Text.assemble(*parts)


def summary(state: State) -> str:
    """ "1 of 4 passed", of the lesson that the learner is at."""
    names = state.selection.exercises
    passed = sum(state.state_of(name) == "passed" and name != state.undecided for name in names)
    return f"{passed} of {len(names)} passed"


def file_of(state: State) -> str:
    """ "mine/l4_merge_states.py"."""
    return f"mine/{state.stem}.py"


def failure_of(state: State) -> tuple[Grade, Failure] | None:
    """What to put right first of the current exercise, as a grade of it alone; None if it does not fail."""
    problem = state.problems.get(state.stem)
    if state.file.source.problem:
        problem = problems.from_source(state.file.source.problem, file_of(state))
    result = state.results.get((state.stem, state.exercise))
    failing = state.state_of(state.exercise) in ("failed", "missing") and result is not None
    if not problem and not failing:
        return None
    exercises = [result] if failing else []
    lesson = LessonResult(state.stem, state.selection.lesson.title, file_of(state), "", exercises, problem)
    frame = state.facts or Grade("mine/", "cpu")
    alone = replace(frame, target="mine/", lessons=[lesson], seed=None, grader_error="")
    found = scorecard_failure(alone)
    return (alone, found) if found else None


def scorecard_failure(grade: Grade) -> Failure | None:
    """The failure that a scorecard of this grade would show."""
    from drills.report import verdict

    found = verdict.first_failure(grade)
    return found[3] if found else None


def _head(state: State, console: Console) -> list[Text]:
    facts = state.facts or Grade("mine/", "cpu")
    watched = replace(facts, target=file_of(state), versions={}, level=None, lessons=[])
    first, *more = scorecard.header_lines(watched, console)
    return [Text(first.plain.replace("Grading", "Watching", 1), TITLE), *more]


def _table(state: State, console: Console) -> list[Text]:
    lesson, names = state.selection.lesson, state.selection.exercises
    width = min(console.width, WIDEST)
    right = "NOT GRADED" if state.file.source.problem else summary(state).removesuffix(" passed")
    title = words.cap(lesson.title, width - len(lesson.short) - len(right) - 6)
    left = Text.assemble(" ", (lesson.short, TITLE), f"  {title}")
    found = [left + Text(right.rjust(width - 1 - left.cell_len), BAD if state.file.source.problem else "")]
    if state.file.source.problem:
        return found
    wide = max(16, *(len(name) for name in names))
    for name in names:
        row = _row(state, name, wide, width)
        row[0] = Text.assemble((" > " if name == state.exercise else "   ", TITLE), row[0][2:])
        found += row
    return found


def _row(state: State, name: str, wide: int, width: int) -> list[Text]:
    known = state.state_of(name)
    if known in ("passed", "failed"):
        alone = LessonResult(state.stem, "", "", "", [state.results[state.stem, name]])
        _, *row = rows.lesson_lines(alone, wide, width - 1)
        if name == state.undecided:
            at = row[0].plain.index("PASS")
            row[0] = Text.assemble(row[0][:at], ("... ", "yellow"), row[0][at + 4 :])
        return row
    says = {"missing": ("FAIL  no such function in the file", BAD), "": ("...", "yellow")}
    return [Text.assemble(f"  {name:<{wide}}  ", says.get(known, (known, QUIET)))]


def _failure(state: State, console: Console) -> list[Text]:
    if state.trouble:
        return [Text.assemble(" ", (words.clean(state.trouble), BAD))]
    found = failure_of(state)
    return first_failure.failure_lines(found[0], console) if found else []


def _next(state: State) -> list[Text]:
    short, file = state.selection.lesson.short, file_of(state)
    problem = state.file.source.problem
    if problem:
        return _after_problem(problem.kind, short, file, problem.line)
    known, result = state.state_of(state.exercise), state.results.get((state.stem, state.exercise))
    function = next((one for one in state.file.source.functions if one.name == state.exercise), None)
    line = function.line if function else None
    if known == "failed" and result:
        found = failure_of(state)
        line = (found[1].line if found else None) or result.line or line
        return [_step("Next", f"fix {state.exercise} in {_at(file, line)} and save"), _step("Stuck?", "h shows a hint")]
    if known == "missing":
        return [_step("Next", f"write {state.exercise} in {file} and save"), _step("Stuck?", "h shows a hint")]
    if known == "not started":
        write = _step("Write", f"{state.exercise} in {_at(file, line)} and save")
        return [_step("Read", f"content/{state.stem}.md"), write, _step("Stuck?", "h shows a hint")]
    if known != "passed" or state.undecided == state.exercise:
        return []
    if not catalog.has_solutions():
        return [_onward(state)]
    solution = _step("Look", f"python grade.py show {short}.{state.exercise}  shows the solution")
    return [_onward(state), solution]


def _after_problem(kind: str, short: str, file: str, line: int | None) -> list[Text]:
    if kind == "missing":
        return [_step("Next", "put it back, or  python grade.py reset " + short + "  makes a new stub")]
    if kind == "unreadable":
        return [_step("Next", f"make {file} a file that can be read")]
    return [_step("Next", f"put right {_at(file, line)} and save")]


def _onward(state: State) -> Text:
    here, there = (state.stem, state.exercise), replace(state)
    if not there.go_on():
        return Text.assemble(" ", (f"Every exercise passed: all {_count(state)} of them are done.", f"bold {GOOD}"))
    name = there.exercise if there.stem == here[0] else f"{there.selection.lesson.short}.{there.exercise}"
    return _step("Next", f"n goes on to {name}")


def _count(state: State) -> int:
    return sum(len(one.exercises) for one in state.selections)


def _at(file: str, line: int | None) -> str:
    return f"{file}:{line}" if line else file


def _step(label: str, text: str) -> Text:
    return Text.assemble((f" {label:<7}", TITLE), text)


def _fit(line: Text, console: Console) -> list[Text]:
    pieces = [line] if line.cell_len <= console.width else list(line.wrap(console, console.width))
    for piece in pieces:
        piece.rstrip()
    return pieces
