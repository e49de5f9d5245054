"""Puts calls, tensors, indices and numbers into words. Decides nothing."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from typing import Any

import torch

from drills.judge.signature import axis_word, parameters
from drills.lessons.base import Args, Exercise
from drills.sandbox.wire import Opaque

MOST_NAMED = 3
"""How many rows a message names before it only counts."""


def called(exercise: Exercise, args: Args) -> str:
    """The call in words: "merge_state(v_a[5, 3, 80] float16, s_a[5, 3], …)". float32 is not mentioned."""
    shown = list(args)
    while shown and shown[-1] is None:
        shown.pop()
    names = parameters(exercise)
    names += [f"argument {position}" for position in range(len(names), len(shown))]
    return f"{exercise.name}({', '.join(argument(name, value) for name, value in zip(names, shown, strict=False))})"


def results_named(exercise: Exercise, text: str) -> str:
    """The text with "result 1" called by its own name, "the result l", as far as the exercise has so many."""
    returned = [output.name for output in exercise.outputs if output.inplace is None]

    def name(found: re.Match) -> str:
        index = int(found[1])
        return f"the result {returned[index]}" if index < len(returned) else found[0]

    return re.sub(r"\bresult (\d+)\b", name, text)


def argument(name: str, value: Any) -> str:
    """One argument: a tensor by shape, dtype and unusual strides, a number by value, a list by length."""
    if isinstance(value, torch.Tensor):
        text = name + shape(value.shape)
        if value.dtype != torch.float32:
            text += f" {short(value.dtype)}"
        if not value.is_contiguous():
            text += f" strides {tuple(value.stride())}"
        return text
    if isinstance(value, (list, tuple)):
        return f"{name}=[{len(value)} item{'s' * (len(value) != 1)}]"
    return f"{name}={value}"


def shape(size: Sequence[int]) -> str:
    """A shape or an index: "[5, 3, 80]"."""
    return f"[{', '.join(str(int(n)) for n in size)}]"


def short(dtype: torch.dtype) -> str:
    """A dtype without its module: "float16"."""
    return str(dtype).removeprefix("torch.")


def kind_of(value: Any) -> str:
    """What a returned object is: "a tensor[5, 3] float16", "None", "a tuple of 3"."""
    if value is None:
        return "None"
    if isinstance(value, torch.Tensor):
        return f"a tensor{shape(value.shape)} {short(value.dtype)}"
    if isinstance(value, (tuple, list)):
        return f"a {type(value).__name__} of {len(value)}"
    if isinstance(value, (bool, int, float)):
        return f"the number {value}" if not isinstance(value, bool) else str(value)
    return f"an object of type {value.type if isinstance(value, Opaque) else type(value).__name__}"


def number(value: float) -> str:
    """Six significant digits; "nan", "inf" and "-inf" as words of their own."""
    return f"{value:.6g}"


def two_numbers(first: float, second: float) -> tuple[str, str]:
    """Two unequal numbers with as many digits as it takes to tell them apart."""
    for digits in (6, 8, 10, 17):
        texts = f"{first:.{digits}g}", f"{second:.{digits}g}"
        if texts[0] != texts[1]:
            break
    return texts


def listed(items: Sequence[Any]) -> str:
    """ "1", "1 and 3", "1, 2 and 5", or a range "2 to 9" where they follow each other."""
    texts = [str(item) for item in items]
    if len(texts) > 2 and all(isinstance(item, int) for item in items) and items[-1] - items[0] == len(items) - 1:
        return f"{texts[0]} to {texts[-1]}"
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"


def rows(wrong: torch.Tensor, axes: Sequence[str]) -> str:
    """Where `wrong` (a bool tensor over the rows of a result) is True, in words.

    "every row", "positions 3 and 4", "head 1", "position 1 head 0", or only how many of how many.
    """
    if wrong.dim() == 0 or bool(wrong.all()):
        return "everywhere"
    along_one_axis = _along_axes(wrong, axes)
    if along_one_axis:
        return along_one_axis
    indices = wrong.nonzero().tolist()
    if len(indices) <= MOST_NAMED:
        return "; ".join(
            " ".join(f"{axis_word(axis)} {i}" for axis, i in zip(axes, index, strict=False)) for index in indices
        )
    return f"{len(indices)} of {wrong.numel()} rows"


def _along_axes(wrong: torch.Tensor, axes: Sequence[str]) -> str:
    """The words if `wrong` is a product of one set an axis ("positions 1 and 2, head 0"), else ""."""
    picked = []
    for axis in range(wrong.dim()):
        others = [other for other in range(wrong.dim()) if other != axis]
        picked.append((wrong.any(dim=others) if others else wrong).nonzero().flatten().tolist())
    if len(list(itertools.product(*picked))) != int(wrong.sum()):
        return ""
    parts = []
    for axis, chosen in enumerate(picked):
        follow_each_other = chosen and chosen[-1] - chosen[0] == len(chosen) - 1
        if len(chosen) == wrong.shape[axis]:
            continue
        if len(chosen) > MOST_NAMED and not follow_each_other:
            return ""
        name = axes[axis] if axis < len(axes) else ""
        parts.append(f"{axis_word(name, len(chosen))} {listed(chosen)}")
    return ", ".join(parts)
