"""A call of an exercise: how it is put to the worker, and what of the reply counts as its results."""

from __future__ import annotations

from typing import Any

import torch

from drills import judge
from drills.instruments.notes import CallOptions
from drills.judge.signature import parameters
from drills.lessons.base import Args, Exercise
from drills.report.model import Failure
from drills.sandbox.client import Call
from drills.sandbox.outcome import Reply


def call_of(exercise: Exercise, args: Args, options: CallOptions) -> Call:
    """The call as it goes to the worker."""
    inplace = tuple(output.inplace for output in exercise.outputs if output.inplace is not None)
    return Call(exercise.name, tuple(args), tuple(parameters(exercise)), inplace, options)


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
