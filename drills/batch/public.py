"""What a student may see of a grade that was decided on hidden inputs.

A text that came about while graded code held a hidden input may repeat it: what the code printed or raised, the name
of a kernel, a byte count, even the number of a line; code can also spend its time as a value bids it, so of times only
that of the whole submission is told, in whole seconds. So no such text is taken over. The verdicts are those of the
hidden run; the messages are those of a second run of what failed, on public inputs that the student can draw too. Where
only the hidden run failed, the message is one of a few fixed sentences. Must never copy a string from the hidden run
that is not the grader's own.
"""

from __future__ import annotations

import math
from dataclasses import replace

from drills.batch.settings import PUBLIC_SEED, versions
from drills.report import kinds, problems
from drills.report.model import ExerciseResult, Failure, Grade, LessonResult, LevelResult, TestResult
from drills.report.submission import GRADER

NOT_RUN = "not run"


def unexplained(exercises: LessonResult) -> tuple[str, ...]:
    """The exercises of a hidden run that a public one must explain: those that failed otherwise than by time."""
    return tuple(
        one.name
        for one in exercises.exercises
        if one.state == "failed" and not any(test.failure and test.failure.kind == "timeout" for test in one.tests)
    )


def view(hidden: Grade, explained: Grade | None, name: str) -> Grade:
    """The public grade: verdicts of `hidden`, messages of `explained`, the same exercises or fewer on public inputs.

    name: the submission as shown.
    """
    others = {one.stem: one for one in explained.lessons} if explained else {}
    return Grade(
        target=f"{name}/",
        device=hidden.device,
        versions=versions(),  # what a worker says of its own is left aside: graded code may have had a hand in it
        isolation=hidden.isolation,
        instruments="on" if hidden.instruments == "on" else "off",
        seed=PUBLIC_SEED if explained else None,
        seconds=float(math.ceil(hidden.seconds)),
        level=hidden.level,
        lessons=[_lesson(one, others.get(one.stem), name) for one in hidden.lessons],
        grader_error=GRADER if hidden.grader_error or (explained and explained.grader_error) else "",
    )


def _lesson(hidden: LessonResult, explained: LessonResult | None, name: str) -> LessonResult:
    others = {one.name: one for one in explained.exercises} if explained else {}
    exercises = [_exercise(one, others.get(one.name), hidden.stem) for one in hidden.exercises]
    problem = hidden.problem
    if problem is not None and problem.kind not in problems.KINDS.values():
        problem = explained.problem if explained and explained.problem else _said(problem, "")
    if problem is not None:  # by the name that the student gave it, not by where the worker has it
        problem = replace(problem, got=problem.got.replace(hidden.file, f"{hidden.stem}.py"))
    return LessonResult(hidden.stem, hidden.title, f"{name}/{hidden.stem}.py", hidden.sha256, exercises, problem)


def _exercise(hidden: ExerciseResult, explained: ExerciseResult | None, stem: str) -> ExerciseResult:
    where = f"{stem.split('_', 1)[0]}.{hidden.name}"
    shown = {one.id: one for one in explained.tests} if explained else {}
    tests = [_test(one, shown.get(one.id), where) for one in hidden.tests]
    failed = {test.failure.level for test in tests if test.outcome == "failed" and test.failure}
    levels = {}
    for name, one in hidden.levels.items():
        state = explained.levels[name].state if explained and name in explained.levels else one.state
        # An explanation can move a failure to another level: the first is then undecided.
        levels[name] = LevelResult("failed" if name in failed else "blocked" if state == "failed" else state)
    return ExerciseResult(hidden.name, hidden.state, levels, tests, line=hidden.line)


def _test(hidden: TestResult, explained: TestResult | None, where: str) -> TestResult:
    if explained and explained.outcome == "failed" and hidden.outcome != "not run":
        return replace(explained, seconds=0.0)
    failure = None
    if hidden.failure is not None:
        failure = _not_run(hidden.failure) if hidden.outcome == NOT_RUN else _said(hidden.failure, where)
    return TestResult(hidden.id, hidden.title, hidden.exercise, hidden.level, hidden.outcome, failure)


def _not_run(failure: Failure) -> Failure:
    return Failure("not_run", failure.level, got="not run: too many tests of this exercise got no answer in time")


def _said(failure: Failure, where: str) -> Failure:
    """A failure that only hidden inputs showed, in fixed words."""
    kind = failure.kind if failure.kind in kinds.PHRASES else "compile_error" if failure.level == "compile" else "other"
    likely = ""
    if kind == "timeout":
        likely = "An endless loop, or far too many programs: does every loop's variable move towards its bound?"
        likely += f" At home the grader names the loop's line:  python grade.py {where}" if where else ""
    elif where:
        likely = (
            f"Only inputs that are kept back show it. Try others:  python grade.py {where} --seed {PUBLIC_SEED + 1}  "
            "(3, 4 …). Does the code rely on particular values, or remember something from call to call?"
        )
    got = "not as it should be" if kind == "other" else kinds.phrase(kind).removesuffix(", no known cause")
    return Failure(kind, failure.level, got=got, likely=likely)
