"""One submission's report in Markdown: for the student to read, and for the instructor to send on.

Says what was graded, what it earned, how far each exercise came, what failed first in each, and what to do next. Text
by strangers passes through `markdown` without exception. Shows no seed but the grade's: that of the public messages.
"""

from __future__ import annotations

from collections.abc import Iterator

from drills.report import standing, verdict
from drills.report.formats.markdown import block, code, text
from drills.report.model import LEVELS, ExerciseResult, Failure, Grade, LessonResult, LevelResult
from drills.report.points import Points, earned, shown, total
from drills.report.standing import is_graded
from drills.report.submission import GRADER, RENAME, Submission
from drills.report.words import plural

_FIGURES = {"traffic"}
_STATES = {"passed": "passed", "failed": "**FAILED**", "blocked": "undecided", "off": "off", "none": "–"}
_DEVICES = {"cpu": "Triton's interpreter on a CPU", "cuda": "a GPU"}


def report(submission: Submission, points: Points) -> str:
    """The whole report."""
    lines = [f"# {text(submission.name) or code(submission.id)}", ""]
    grade = submission.grade
    if submission.problem or grade is None or grade.grader_error:
        lines += ["This submission **could not be graded**:", ""]
        lines += [f"- {text(one)}" for one in standing.problems(submission)] + [""]
        lines += ["## What to do next", "", f"1. {_after_problem(submission)}", ""]
    else:
        lines += [*_summary(grade, points), *_tables(grade, points), *_failures(grade), *_next(grade)]
    lines += _graded(submission)
    return "\n".join(lines).rstrip("\n") + "\n"


def _after_problem(submission: Submission) -> str:
    if submission.problem == GRADER or not submission.problem:
        return "Nothing is yours to do: whoever grades has to grade it again."
    if submission.problem.endswith(RENAME):
        return "Hand it in again in a folder whose name is made of letters, digits, - and _."
    if not submission.files:
        return (
            f"Hand in the lesson's file itself, under its own name: no link, no archive. "
            f"It is in {code('mine/')}; {code('python grade.py list')} names the lessons."
        )
    return f"Put that right and hand it in again. To grade it on your own machine: {code('python grade.py')}"


def _summary(grade: Grade, points: Points) -> list[str]:
    got, most = total(points, grade)
    passed = f"{verdict.passed(grade)} of {plural(verdict.total(grade), 'exercise')} passed"
    return [f"**{passed}, {shown(got)} of {shown(most)} points.**", ""]


def _tables(grade: Grade, points: Points) -> Iterator[str]:
    for lesson in grade.lessons:
        yield from (f"## {_short(lesson)} · {text(lesson.title)}", "")
        if lesson.problem:
            yield from (f"Not graded: {text(standing.says(lesson.problem))}", "")
            yield from [*block(lesson.problem.source, language="python"), ""] if lesson.problem.source else []
            if not is_graded(lesson):
                continue
        yield f"| exercise | result | points | {' | '.join(LEVELS)} |"
        yield f"|---|---|---|{'---|' * len(LEVELS)}"
        for exercise in lesson.exercises:
            found = earned(points, lesson.stem, exercise)
            cells = [code(exercise.name), _result(exercise), f"{shown(found.earned)} of {shown(found.most)}"]
            cells += [_level(level, exercise.levels.get(level)) for level in LEVELS]
            yield f"| {' | '.join(cells)} |"
        yield ""
        yield from _remarks(lesson, points)


def _remarks(lesson: LessonResult, points: Points) -> list[str]:
    lines = []
    for exercise in lesson.exercises:
        void = earned(points, lesson.stem, exercise).why_void
        if void:
            lines.append(f"- {code(exercise.name)}: {void}, so no level of it counts.")
        if exercise.state == "passed":
            lines += [f"- {code(exercise.name)}: {text(advice)}" for advice in exercise.advice]
    levels = [pair for exercise in lesson.exercises for pair in exercise.levels.items()]
    off = {(level, one.note) for level, one in levels if one.state == "off"}
    for level, note in sorted(off):
        why = f" ({text(note)})" if note else ""
        lines.append(f"- {level} was off{why}: its points go to the other levels.")
    return [*lines, ""] if lines else []


def _result(exercise: ExerciseResult) -> str:
    return {"passed": "PASS", "failed": "**FAIL**", "missing": "**FAIL** (no such function)"}.get(
        exercise.state, text(exercise.state)
    )


def _level(level: str, result: LevelResult | None) -> str:
    if result is None:
        return ""
    measured = level in _FIGURES and result.note and result.state in ("passed", "failed")
    figure = f" {text(result.note, 8)}" if measured else ""
    return _STATES.get(result.state, text(result.state)) + figure


def _failures(grade: Grade) -> Iterator[str]:
    found = [
        (lesson, exercise)
        for lesson, exercise in verdict.exercises(grade)
        if exercise.state == "failed" and is_graded(lesson)
    ]
    if not found:
        return
    yield from ("## What failed first", "")
    for lesson, exercise in found:
        test = verdict.first_failed_test(exercise)
        failure = test.failure if test else None
        yield from (f"### {_short(lesson)} · {code(exercise.name)}{f' · {text(failure.level)}' if failure else ''}", "")
        if failure is None:
            left = sum(one.outcome == "not run" for one in exercise.tests)
            yield from (f"{plural(left, 'test')} could not be run, which is never a pass.", "")
            continue
        yield f"- **test**: {text(test.title)}"
        yield from _parts(lesson, failure)
        more = sum(one.outcome == "failed" for one in exercise.tests) - 1
        yield from [f"- **also**: {plural(more, 'more test')} of {code(exercise.name)} failed"] if more else []
        yield ""


def _parts(lesson: LessonResult, failure: Failure) -> Iterator[str]:
    for label in ("called", "got"):
        value = getattr(failure, label)
        yield from [f"- **{label}**: {code(value)}"] if value else []
    if failure.line:
        yield f"- **at**: {code(f'{lesson.stem}.py:{failure.line}')}"
        yield from block(failure.source.strip(), "  ", "python")
    yield from [f"- **expected**: {code(failure.expected)}"] if failure.expected else []
    yield from [f"- **likely**: {text(failure.likely)}"] if failure.likely else []
    yield from [f"- **read**: {code(failure.read)}"] if failure.read else []


def _next(grade: Grade) -> Iterator[str]:
    steps = list(_steps(grade))
    if steps:
        yield from ("## What to do next", "")
        yield from (f"{number}. {step}" for number, step in enumerate(steps, 1))
        yield ""


def _steps(grade: Grade) -> Iterator[str]:
    for lesson in grade.lessons:
        short = _short(lesson)
        if lesson.problem and lesson.problem.kind == "missing_file":
            yield f"Hand in {code(lesson.stem + '.py')}: {code(f'python grade.py reset {short}')} makes its stub."
        elif lesson.problem:
            yield f"Put {code(lesson.stem + '.py')} right, so that it can be loaded: {code(f'python grade.py {short}')}"
        if lesson.problem:
            continue
        failed = [one for one in lesson.exercises if one.state in ("failed", "missing")]
        for exercise in failed[:1]:
            todo = "Write" if exercise.state == "missing" else "Fix"
            seed = "" if grade.seed is None else f" --seed {grade.seed}"
            again = code(f"python grade.py {short}.{exercise.name}{seed}")
            yield f"{todo} {code(exercise.name)} first. To grade it on your own machine: {again}"
        waiting = [one.name for one in lesson.exercises if one.state == "not started"]
        if waiting:
            yield f"Not started: {', '.join(map(code, waiting))}. Read {code(f'content/{lesson.stem}.md')}."


def _graded(submission: Submission) -> list[str]:
    lines = ["## What was graded", ""]
    if submission.files:
        lines += ["| file | SHA-256 |", "|---|---|"]
        lines += [f"| {code(name)} | {code(digest)} |" for name, digest in sorted(submission.files.items())] + [""]
    else:
        lines += ["No file.", ""]
    if submission.refused:
        lines += ["Not taken:", "", *(f"- {text(one)}" for one in submission.refused), ""]
    grade = submission.grade
    if grade is not None:
        versions = ", ".join(f"{text(name)} {text(version, 40)}" for name, version in grade.versions.items())
        lines += [f"- On {_DEVICES.get(grade.device, text(grade.device))}, {versions}"] if versions else []
        lines += [f"- Isolation {text(grade.isolation or 'none')}, instruments {text(grade.instruments)}"]
        lines += [f"- Level {text(grade.level)} only"] if grade.level else []
    hidden = submission.made_with.get("seed_sha256")
    lines += (
        [f"- Verdicts come from inputs that are kept back; the hash of their seed: {code(hidden)}"] if hidden else []
    )
    return lines


def _short(lesson: LessonResult) -> str:
    return lesson.stem.split("_", 1)[0]
