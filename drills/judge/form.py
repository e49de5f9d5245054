"""Is an answer of the right form: how many results, of which kind, shape and dtype. Looks at no value."""

from __future__ import annotations

from typing import Any

import torch

from drills.judge import words
from drills.judge.expected import right_results
from drills.judge.signature import parameters
from drills.lessons.base import Args, Exercise, Output
from drills.report.model import Failure


def form(
    exercise: Exercise,
    args: Args,
    returned: Any,
    level: str = "value",
    expected: tuple[torch.Tensor, ...] | None = None,
) -> Failure | None:
    """None if `returned` (what the function returned, as it came back) has the form that the contract states.

    expected: the oracle's results where they are at hand; their shapes are the right ones.
    """
    if expected is None:
        expected = right_results(exercise, args)
    wanted = [
        (output, value) for output, value in zip(exercise.outputs, expected, strict=True) if output.inplace is None
    ]
    problem = _problem(exercise, args, returned, wanted)
    if problem is None:
        return None
    got, likely = problem
    return Failure(
        kind="wrong_form",
        level=level,
        called=words.called(exercise, args),
        got=got,
        expected=_contract(exercise, args, wanted),
        likely=likely,
    )


def unpack(exercise: Exercise, returned: Any, after: Args = ()) -> tuple[torch.Tensor, ...]:
    """The results in the order of `exercise.outputs`, from a `returned` of the right form.

    after: the arguments as they are after the call; results that are written in place are taken from these.
    """
    items = iter(returned if isinstance(returned, (tuple, list)) else (returned,))
    return tuple(after[output.inplace] if output.inplace is not None else next(items) for output in exercise.outputs)


def result_dtype(exercise: Exercise, args: Args, output: Output) -> torch.dtype:
    """The dtype that the contract gives a result of this call."""
    return args[exercise.reads].dtype if output.dtype == "input" else getattr(torch, output.dtype)


def _problem(exercise: Exercise, args: Args, returned: Any, wanted: list) -> tuple[str, str] | None:
    """What was got and why, or None."""
    if not wanted:
        if returned is None:
            return None
        return f"{words.kind_of(returned)} returned", "This function writes its results in place and returns nothing."
    if returned is None:
        return "None", "The function ends without a return."
    if len(wanted) == 1:
        items = [returned]
    elif isinstance(returned, (tuple, list)):
        items = list(returned)
    else:
        number = "both" if len(wanted) == 2 else f"all {len(wanted)}"
        return f"{words.kind_of(returned)}, not a tuple", f"Return {number} results, separated by commas."
    if len(items) != len(wanted):
        return (
            f"{len(items)} result{'s' * (len(items) != 1)}",
            f"The contract names {len(wanted)} results, in this order.",
        )
    if _are_in_another_order(wanted, items):
        return (
            f"({', '.join(map(words.kind_of, items))})",
            "The results have each other's shapes: return them in the contract's order.",
        )
    for (output, value), item in zip(wanted, items, strict=True):
        problem = _problem_of_one(exercise, output, value, item, result_dtype(exercise, args, output))
        if problem is not None:
            return problem
    return None


def _are_in_another_order(wanted: list, items: list) -> bool:
    """Do the items have the right shapes, but not in the right order?"""
    right = [value.shape for _, value in wanted]
    shapes = [item.shape if isinstance(item, torch.Tensor) else None for item in items]
    return shapes != right and None not in shapes and sorted(shapes) == sorted(right)


def _problem_of_one(
    exercise: Exercise, output: Output, value: torch.Tensor, item: Any, dtype: torch.dtype
) -> tuple[str, str] | None:
    if not isinstance(item, torch.Tensor):
        return f"{output.name} is {words.kind_of(item)}", f"{output.name} must be a torch tensor."
    if item.shape != value.shape:
        return f"{output.name}{words.shape(item.shape)}", _about_shape(output, item, value)
    if item.dtype != dtype:
        return f"{output.name}{words.shape(item.shape)} {words.short(item.dtype)}", _about_dtype(exercise, output)
    return None


def _about_shape(output: Output, item: torch.Tensor, value: torch.Tensor) -> str:
    if sorted(item.shape) == sorted(value.shape):
        return f"The axes of {output.name} are in another order than the contract's."
    return f"Allocate {output.name} with the shape that the contract states."


def _about_dtype(exercise: Exercise, output: Output) -> str:
    if output.dtype == "input":
        source = parameters(exercise)[exercise.reads]
        given = f"the {source} given" if source == output.name else source
        return f"{output.name} has the dtype of {given}: allocate it with dtype={source}.dtype, cast where you store."
    return f"{output.name} is {output.dtype} always, whatever the dtype of the values."


def _contract(exercise: Exercise, args: Args, wanted: list) -> str:
    if not wanted:
        return "None"
    texts = [
        f"{output.name}{words.shape(value.shape)} {words.short(result_dtype(exercise, args, output))}"
        for output, value in wanted
    ]
    return texts[0] if len(texts) == 1 else f"({', '.join(texts)})"
