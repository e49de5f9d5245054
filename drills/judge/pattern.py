"""The shape of an error: what can be said of a wrong answer that no listed mistake explains.

Each function returns one sentence, or "" where its pattern is not there. States what is seen, and asks where it points.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import permutations

import torch

from drills.judge import words
from drills.judge.compare import Comparison
from drills.judge.factors import offset, ratio, short_constant
from drills.judge.misread import misread
from drills.judge.signature import axes_of_result, axis_word, parameters
from drills.judge.where import where
from drills.lessons.base import Args, Exercise

FEW = 3
"""Elements that must be alike before that says something."""

ROUNDING = 64.0
"""An error of at most this many tolerances looks like rounding."""

SMALL = 0.15
"""And if it is at most this part of the largest result."""

LAST_DIGIT = 2.0**-8
"""So does an error of this part of it: the step of a bfloat16."""


BY_HAND = 512
"""Elements of an input of which one result can be computed by hand."""

AT_SIGHT = 6
"""And of one whose elements are written out."""


def shape_of_error(exercise: Exercise, args: Args, compared: list[Comparison]) -> str:
    """One sentence on the first wrong result: the first pattern that fits, "" if none does."""
    shown = next(one for one in compared if not one.right)
    for pattern in PATTERNS:
        sentence = pattern(exercise, args, shown)
        if sentence:
            return sentence
    return ""


def not_finite(exercise: Exercise, args: Args, shown: Comparison) -> str:
    """NaN or infinities, and which rows have them."""
    name = shown.output.name
    bad = shown.wrong & ~shown.got.isfinite()
    if not bool(bad.any()):
        return ""
    what = "NaN" if bool(shown.got[bad].isnan().all()) else "not finite"
    reason = where(exercise, args, shown)
    if reason:
        return f"{name} is {what} where {reason}: (-inf) - (-inf) and 0 * NaN are NaN, so handle that case before them."
    if bool(bad.all()) and bool((shown.got == -torch.inf).all()):
        return f"{name} is -inf everywhere: is something with scores taken for empty, or read before it is written?"
    if bool(bad.all()):
        return f"{name} is {what} everywhere: is it written, and is what the exponent is shifted by finite?"
    if bool((shown.got[bad] == -torch.inf).all()):
        place = f"{int(bad.sum())} of {bad.numel()} elements"
        ask = "taken for empty, or is the maximum that is subtracted that of other rows?"
        return f"{name} is -inf in {place}, where there is something: is it {ask}"
    rest = "right" if bool((bad == shown.wrong).all()) else "wrong"
    return f"{name} is {what} in {int(bad.sum())} of {bad.numel()} elements and {rest} elsewhere."


def constant(exercise: Exercise, args: Args, shown: Comparison) -> str:
    """One value everywhere, and for the most part a wrong one."""
    if shown.got.numel() < FEW or 2 * int(shown.wrong.sum()) < shown.wrong.numel():
        return ""
    if bool((shown.expected == shown.expected.flatten()[0]).all()):
        return ""
    first = shown.got.flatten()[0]
    if bool((shown.got == first).all()):
        kept = "what the loop adds kept, and " if not first else ""
        return f"{shown.output.name} is {words.number(float(first))} everywhere: is {kept}the result stored?"
    return ""


def rows_of_zeros(exercise: Exercise, args: Args, shown: Comparison) -> str:
    """Rows that hold nothing but 0, where they should, beside others that are right: all of their weights vanished."""
    if shown.output.kind != "value" or shown.wrong.dim() < 2:
        return ""
    wrong = shown.wrong_rows
    if not bool(wrong.any()) or bool(wrong.all()) or bool((shown.got[wrong] != 0).any()):
        return ""
    if where(exercise, args, shown):
        return ""  # an empty state, of which some_rows says more
    place = words.rows(wrong, axes_of_result(exercise, shown.index))
    return (
        f"{shown.output.name} is 0 in {place}, though something weighs there: is it taken for empty, or is the maximum "
        "that is subtracted that of other rows?"
    )


def copy_of_input(exercise: Exercise, args: Args, shown: Comparison) -> str:
    """An argument handed back."""
    for position, (name, value) in enumerate(zip(parameters(exercise), args, strict=False)):
        if isinstance(value, torch.Tensor) and value.shape == shown.got.shape:
            same = value.to("cpu", torch.float64)
            if bool(((same == shown.got) | (same.isnan() & shown.got.isnan())).all()):
                own = position == shown.output.inplace
                return f"{shown.output.name} is as it was." if own else f"{shown.output.name} is a copy of {name}."
    return ""


def permuted(exercise: Exercise, args: Args, shown: Comparison) -> str:
    """Right numbers at the wrong places: another order of the axes, or of one axis."""
    axes = axes_of_result(exercise, shown.index)
    for order in permutations(range(shown.expected.dim())):
        if order == tuple(range(len(order))):
            continue
        moved = shown.expected.permute(order).reshape(shown.got.shape)
        if _close(shown, moved) and not _alike(shown, moved):
            names = ", ".join(axes[i] if i < len(axes) else str(i) for i in order)
            return f"{shown.output.name} holds the right numbers in the order [{names}]: check the offset of each axis."
    for axis in range(shown.expected.dim()):
        moved = shown.expected.flip(axis)
        if _close(shown, moved) and not _alike(shown, moved):
            columns = shown.output.kind == "value" and axis == shown.expected.dim() - 1
            word = "column" if columns else axis_word(axes[axis] if axis < len(axes) else "")
            return f"{shown.output.name} is reversed along the {word}s."
    return ""


def _close(shown: Comparison, other: torch.Tensor) -> bool:
    return _same(shown, shown.got, other)


def _alike(shown: Comparison, other: torch.Tensor) -> bool:
    """Can the expected result not be told from this one? With axes of one element, another order is no other result."""
    return _same(shown, shown.expected, other)


def _same(shown: Comparison, one: torch.Tensor, other: torch.Tensor) -> bool:
    return bool((((one - other).abs() <= 2 * shown.limit.max()) | (one == other)).all())


def other_strides(exercise: Exercise, args: Args, shown: Comparison) -> str:
    """Written as if it were contiguous, into memory that is not: torch.empty_like keeps its argument's strides."""
    got = shown.got
    if got.is_contiguous() or got.numel() != got.untyped_storage().nbytes() // got.element_size():
        return ""
    if not _same(shown, shown.expected, got.as_strided(got.shape, torch.empty(got.shape, device="meta").stride(), 0)):
        return ""
    return (
        f"{shown.output.name} holds the right numbers as if it were contiguous, but has strides {tuple(got.stride())}: "
        "torch.empty_like keeps those of its argument, torch.empty does not."
    )


def columns(exercise: Exercise, args: Args, shown: Comparison) -> str:
    """Only some columns of every wrong row: a tail, or a head."""
    if shown.output.kind != "value" or shown.wrong.shape[-1] < FEW:
        return ""
    wrong = shown.wrong.reshape(-1, shown.wrong.shape[-1]).any(dim=0)
    last = len(wrong) - 1
    chosen = wrong.nonzero().flatten().tolist()
    if len(chosen) == len(wrong) or chosen[-1] - chosen[0] != len(chosen) - 1:
        return ""
    place = f"columns {chosen[0]} to {chosen[-1]}" if len(chosen) > 1 else f"column {chosen[0]}"
    if chosen[-1] == last:
        return f"Only the last columns are wrong ({place} of {len(wrong)}): is the whole row covered, tail included?"
    return f"Only {place} of {len(wrong)} {'are' if len(chosen) > 1 else 'is'} wrong."


def some_rows(exercise: Exercise, args: Args, shown: Comparison) -> str:
    """Only some rows, by a property of the input or by their place.

    A loop or an offset along an axis is asked about only if it alone tells the wrong rows from the right ones.
    """
    wrong = shown.wrong_rows
    if wrong.dim() == 0 or bool(wrong.all()):
        return ""
    reason = where(exercise, args, shown)
    if reason:
        return f"Wrong only where {reason}."
    axes = axes_of_result(exercise, shown.index)
    runs = any(isinstance(x, torch.Tensor) and x.dtype in (torch.int32, torch.int64) for x in args)
    for axis, size in enumerate(() if _small(shown) else wrong.shape):
        others = [other for other in range(wrong.dim()) if other != axis]
        chosen = (wrong.any(dim=others) if others else wrong).nonzero().flatten().tolist()
        name = axis_word(axes[axis] if axis < len(axes) else "")
        if size > 2 and chosen == [size - 1] and bool(wrong.select(axis, -1).all()):
            return f"Only the last {name} is wrong: does the grid, or the loop, reach the end?"
        if size > 2 and chosen == [0] and bool(wrong.select(axis, 0).all()):
            return f"Only the first {name} is wrong: does an offset or a loop start one too late?"
        uneven = runs and axis == 0  # the first run may differ from the others by its length
        if size > 2 and chosen == list(range(1, size)) and bool(wrong.narrow(axis, 1, size - 1).all()) and not uneven:
            return f"Only the first {name} is right: check the offset from one {name} to the next."
    place = words.rows(wrong, axes)
    return f"Wrong only in {place}." if "rows" not in place and not _small(shown) else ""


def rounding(exercise: Exercise, args: Args, shown: Comparison) -> str:
    """An error just above the tolerance, all over, and small beside what was expected."""
    if not _small(shown):
        return ""
    most = float(((shown.got - shown.expected).abs()[shown.wrong] / shown.limit[shown.wrong]).max())
    if math.isfinite(most):
        error = f"The error is {words.number(round(most, 1))} times the tolerance, as rounding would make it"
    else:
        error = "The error is as rounding would make it, and there must be none here"
    if any(isinstance(x, torch.Tensor) and x.is_floating_point() and x.dtype != torch.float32 for x in args):
        return f"{error}: keep weights, sums and s in float32 and cast only where you store."
    return (
        f"{error}. No input is in half precision: is anything cast to it, a constant such as log2(e) cut short, "
        "or a term of little weight left out?"
    )


def _small(shown: Comparison) -> bool:
    """Is every error as rounding may make it: few tolerances and a small part, or no more than a half's last digit?"""
    error = (shown.got - shown.expected).abs()[shown.wrong]
    if not bool(error.isfinite().all()):
        return False
    largest = float(shown.expected[shown.expected.isfinite()].abs().max())
    few = bool((error <= ROUNDING * shown.limit[shown.wrong]).all())
    return float(error.max()) <= (SMALL if few else LAST_DIGIT) * largest


def all_of_it(exercise: Exercise, args: Args, shown: Comparison) -> str:
    """Nothing more can be said."""
    name = shown.output.name
    if shown.wrong.numel() > 1 and not bool(shown.wrong.all()):
        return ""
    what = f"{name} is wrong" if shown.wrong.numel() == 1 else f"All of {name} is wrong"
    if max((x.numel() for x in args if isinstance(x, torch.Tensor)), default=0) > BY_HAND:
        return f"{what}: call it with less, and see from which size on. What does the code do otherwise for more?"
    if shown.wrong.numel() == 1 and float(shown.got) == 0:
        return f"{name} is 0: is what the loop adds kept, and the result stored?"
    return f"{what}: compute {'it' if shown.wrong.numel() == 1 else 'one element'} by hand and compare{_given(args)}."


def _given(args: Args) -> str:
    """ ", from x = 1, 2, 3 and 0" where the only input of floats holds a few that are short to say; else ""."""
    floats = [position for position, one in enumerate(args) if isinstance(one, torch.Tensor)]
    if len(floats) != 1:
        return ""
    numbers = [words.number(one) for one in args[floats[0]].flatten().tolist()[: AT_SIGHT + 1]]
    short = 0 < len(numbers) <= AT_SIGHT and all(len(one) <= len("-60000") for one in numbers)
    return f", from {words.listed(numbers)}" if short else ""


PATTERNS: tuple[Callable[[Exercise, Args, Comparison], str], ...] = (
    misread,
    not_finite,
    constant,
    rows_of_zeros,
    copy_of_input,
    ratio,
    short_constant,
    offset,
    other_strides,
    permuted,
    columns,
    some_rows,
    rounding,
    all_of_it,
)
