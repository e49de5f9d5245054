"""Why is a value wrong? Runs the graded code again: with the instruments' poison off, and on fresh cases.

A wrong answer that comes right when a poison is taken away leans on what it must not lean on; one that matches a
known mistake gets that mistake's name. Never turns a failure into a pass.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from drills import judge
from drills.calls import call_of, results_of
from drills.instruments.notes import CallOptions
from drills.lessons.base import Args, Exercise
from drills.report.model import Failure

if TYPE_CHECKING:
    from drills.lesson_run import LessonRun
    from drills.sandbox.client import Call

MASKED = (
    "the result depends on lanes that a load masked off",
    "A masked-off lane without other= holds anything on a GPU. Give an other= that leaves the result alone.",
)

COUNTERFACTUALS = (
    ("masked_lane", {"masked_fill": "zero"}, *MASKED),
    ("masked_lane", {"masked_fill": "low"}, *MASKED),
    (
        "order_dependent",
        {"order_seed": None},
        "the result depends on the order in which the programs run",
        "Programs of one launch run in any order, and at once: none may use what another wrote.",
    ),
    (
        "unwritten",
        {"empty_fill": "zero"},
        "the result holds memory from torch.empty that no kernel wrote",
        "torch.empty holds anything. Store every element of a result, or start from zeros where zero is meant.",
    ),
)
"""Kind, the options that differ from the call that failed, what was found, what to do."""


def explain(run: LessonRun, exercise: Exercise, call: Call, results: tuple, failure: Failure) -> Failure:
    """The failure, with its cause if one is found."""
    run.failed.setdefault(exercise.name, []).append((call.args, tuple(results)))
    with run.explaining(exercise.name) as may:
        if may:
            return _leaning(run, exercise, call, results, failure) or _mistaken(run, exercise, failure)
    known = run.leaned.get(exercise.name)  # one call more, so that the same cause does not show as two
    return (_leaning(run, exercise, call, results, failure, known) if known else None) or failure


def _leaning(
    run: LessonRun, exercise: Exercise, call: Call, results: tuple, failure: Failure, only: str = ""
) -> Failure | None:
    """The failure as what it leans on, if a call without that comes right. only: the one kind to try.

    What masked-off lanes hold may show in no result at all, so there another result will do, right or wrong.
    Takes half of the time at most where calls are slow: known mistakes need some of it too.
    """
    if not run.instruments_on or run.given_up(exercise.name):
        return None
    half = run.ask_until - run.explaining_seconds / 2
    for kind, change, got, likely in COUNTERFACTUALS:
        if only not in ("", kind) or time.monotonic() > half:
            continue
        again = ask(run, exercise, call.args, replace(call.options, **change))
        if again is None:
            continue
        moved = kind == "masked_lane" and judge.agree(exercise, call.args, results, again) is not None
        if moved or judge.values(exercise, call.args, again, None, failure.level) is None:
            run.leaned[exercise.name] = kind
            return replace(failure, kind=kind, level="memory", got=f"{got}: {failure.got}", likely=likely)
    return None


def _mistaken(run: LessonRun, exercise: Exercise, failure: Failure) -> Failure:
    """All failing cases so far must have one cause; if they have not, this case may still have one of its own."""
    *earlier, here = run.failed[exercise.name]
    rng = run.generator("diagnosis", exercise.name)
    for cases in ([here, *earlier], [here]) if earlier else ([here],):
        if time.monotonic() > run.ask_until:
            break
        mistake = judge.diagnose(run.lesson, exercise, cases, lambda fresh: ask(run, exercise, fresh), rng)
        if mistake is not None:
            return judge.named(failure, run.lesson, mistake)
    return failure


def ask(run: LessonRun, exercise: Exercise, args: Args, options: CallOptions | None = None) -> tuple | None:
    """The graded code's results on these arguments; None if it gave none of the right form, or has cost enough."""
    if time.monotonic() > run.ask_until or (options is None and exercise.name in run.unaskable):
        return None
    reply = run.call(call_of(exercise, args, options or CallOptions()))
    if reply.death:
        run.count_death(exercise.name, reply.death)
        run.ask_until = 0.0
        run.unaskable.add(exercise.name)  # a fresh case that ends the process would cost a test that is graded
    if reply.death or reply.raised:
        return None
    failure, results = results_of(exercise, args, reply, "value")
    return None if failure else results
