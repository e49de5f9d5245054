"""Which property of the input do the wrong rows share? "s_a = s_b = -inf", "mask is False".

Only states a property that holds in exactly the wrong rows, or in all of them and in at most half of the rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import torch

from drills.judge.compare import Comparison
from drills.judge.expected import right_results
from drills.judge.signature import axes_of_parameter, axes_of_result, parameters
from drills.lessons.base import Args, Exercise


def where(exercise: Exercise, args: Args, shown: Comparison) -> str:
    """The property in words, or ""."""
    wrong = shown.wrong_rows
    if wrong.dim() == 0 or bool(wrong.all()):
        return ""
    found = list(conditions(exercise, args, shown))
    for text, holds in found:
        if bool((holds == wrong).all()):
            return text
    for text, holds in found:
        if bool((wrong & ~holds).sum() == 0) and int(holds.sum()) * 2 <= holds.numel():
            return text
    return ""


def conditions(exercise: Exercise, args: Args, shown: Comparison) -> Iterator[tuple[str, torch.Tensor]]:
    """Pairs of words and a bool tensor over the rows of the result, the most telling first."""
    rows = shown.wrong_rows.shape
    axes = axes_of_result(exercise, shown.index)[: len(rows)]
    empty: list[tuple[str, torch.Tensor]] = []
    for name, value in zip(parameters(exercise), args, strict=False):
        if not isinstance(value, torch.Tensor):
            continue
        value_axes = axes_of_parameter(exercise, name)
        if value.dtype == torch.bool and value_axes == axes[: value.dim()]:
            yield f"{name} is False", _spread(~value, rows)
            yield f"{name} is True", _spread(value, rows)
        if value.dtype.is_floating_point and value.dim() == len(value_axes):
            empty += list(_empty(name, value.to("cpu") == -torch.inf, value_axes, axes, rows))
    for (first, holds), (second, also) in combinations(empty, 2):
        if first.endswith(" = -inf") and second.endswith(" = -inf"):
            yield f"{first.removesuffix(' = -inf')} = {second}", holds & also
    yield from empty
    for output, right in zip(exercise.outputs, right_results(exercise, args), strict=True):
        if output.kind in ("lse", "m") and right.shape == rows:
            yield f"{output.name} should be -inf", right == -torch.inf


def _empty(
    name: str, minus_inf: torch.Tensor, value_axes: list[str], axes: list[str], rows: torch.Size
) -> Iterator[tuple[str, torch.Tensor]]:
    """Conditions "name = -inf", or "every name is -inf" and "a name is -inf" where it has axes that the rows lack.

    Of several, as of scores, each is one: "every score".
    """
    if not bool(minus_inf.any()) or not set(axes) <= set(value_axes):
        return
    lacking = [i for i, axis in enumerate(value_axes) if axis not in axes]
    kept = [axis for axis in value_axes if axis in axes]
    order = [kept.index(axis) for axis in axes]
    reduced = [("", minus_inf)]
    if lacking:
        one = name.removesuffix("s") or name
        reduced = [
            (f"every {one} is -inf", minus_inf.all(dim=lacking)),
            (f"one {one} or more is -inf", minus_inf.any(dim=lacking)),
        ]
    for text, holds in reduced:
        if holds.permute(order).shape == rows:
            yield text or f"{name} = -inf", holds.permute(order)


def _spread(value: torch.Tensor, rows: torch.Size) -> torch.Tensor:
    value = value.to("cpu")
    return value.reshape(*value.shape, *([1] * (len(rows) - value.dim()))).expand(rows)
