"""A call of an exercise: how it is put to the worker, and what of the reply counts as its results."""

from __future__ import annotations

from typing import Any

import torch

from drills import judge
from drills.instruments.notes import CallOptions, Finding
from drills.judge.signature import parameters
from drills.lessons.base import Args, Exercise
from drills.report.model import Failure
from drills.sandbox.client import Call
from drills.sandbox.outcome import Reply


def call_of(exercise: Exercise, args: Args, options: CallOptions) -> Call:
    """The call as it goes to the worker."""
    inplace = tuple(output.inplace for output in exercise.outputs if output.inplace is not None)
    return Call(exercise.name, tuple(args), tuple(parameters(exercise)), inplace, options)


def judged(exercise: Exercise, args: Args, reply: Reply, level: str) -> tuple[Failure | None, tuple]:
    """The results of a call, or what must be put right before its values are worth a look: the gravest first."""
    called = judge.called(exercise, args)
    if reply.death:
        end = reply.death
        return judge.death(end.kind, end.words, level, called, end.line, end.source), ()
    faults = [one for one in reply.notes.findings if is_fault(one)]
    if faults:
        return judge.finding(faults[0], level, called, exercise), ()
    if reply.raised:
        one = reply.raised
        return judge.raised(one.type, one.message, level, called, one.line, one.source), ()
    failure, results = results_of(exercise, args, reply, level)
    if failure is None and reply.notes.findings:
        failure = judge.finding(reply.notes.findings[0], level, called, exercise)
    return failure, results


def is_fault(finding: Finding) -> bool:
    """Whether it happened while the kernels ran; the others are about results, and a result's form comes first."""
    return judge.level_of(finding.kind, "") == "memory" and finding.kind not in ("shares_memory", "unwritten")


def results_of(exercise: Exercise, args: Args, reply: Reply, level: str) -> tuple[Failure | None, tuple]:
    """The results of an answered call, one tensor an output; or the failure, if they have not the right form."""
    failure = judge.form(exercise, args, reply.results, level)
    if failure is not None:
        return failure, ()
    for output in exercise.outputs:
        if output.inplace is not None and not _still_fits(args[output.inplace], reply.after.get(output.inplace)):
            name = parameters(exercise)[output.inplace]
            got = f"{name} is another tensor after the call"
            likely = f"Write into {name}'s own memory; leave its shape and dtype alone."
            return Failure("wrong_form", level, judge.called(exercise, args), got, likely=likely), ()
    return None, judge.unpack(exercise, reply.results, reply.after)


def _still_fits(before: torch.Tensor, after: Any) -> bool:
    return isinstance(after, torch.Tensor) and after.shape == before.shape and after.dtype == before.dtype
