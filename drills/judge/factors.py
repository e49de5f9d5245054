"""Errors that are one number: a factor or a difference that explains every element of a result.

Each function returns one sentence, or "" where it is not so. See `pattern`, which asks them in their turn.
"""

from __future__ import annotations

import math

import torch

from drills.judge import words
from drills.judge.compare import Comparison
from drills.lessons.base import Args, Exercise

RATIOS = {
    math.log(2): "ln 2",
    1 / math.log(2): "1 / ln 2",
    2.0: "2",
    0.5: "1/2",
    -1.0: "-1",
    math.e / 2: "e / 2",
}
"""Factors that have a name."""

NOISE = 0.3
"""What remains of a small error once its cause is taken out, in tolerances: more than that is no cause."""


def ratio(exercise: Exercise, args: Args, shown: Comparison) -> str:
    """A constant factor, over all or by row."""
    big = shown.expected.isfinite() & shown.got.isfinite() & (shown.expected.abs() > 20 * shown.limit)
    big &= shown.expected.abs() > 0
    if int(big.sum()) < 2 or _elsewhere(shown):
        return ""
    factor = shown.got / torch.where(big, shown.expected, 1.0)
    slack = 3 * shown.limit / torch.where(big, shown.expected.abs(), 1.0)
    middle = float(factor[big].median())
    if abs(middle - 1) < 1e-3:
        return ""
    if bool(((factor - middle).abs() <= slack * max(1.0, abs(middle)))[big].all()):
        if middle == 0:
            return f"{shown.output.name} is 0 everywhere: is the result stored?"
        name = next((text for value, text in RATIOS.items() if abs(value - middle) < 2e-3 * abs(value)), "")
        if not name and offset(exercise, args, shown):
            return ""  # the elements are alike, and of a logarithm a difference says more
        text = words.number(round(middle, 4)) + (f" ({name})" if name else "")
        return f"{shown.output.name} is {text} times what it should be, everywhere."
    if shown.output.kind != "value" or shown.expected.shape[-1] < 4:
        return ""
    if bool((big.sum(-1)[shown.wrong.any(-1)] < 2).any()):
        return ""  # one element alone is always off by a factor
    by_row = torch.where(big, factor, torch.nan).nanmedian(dim=-1, keepdim=True).values
    if bool(((factor - by_row).abs() <= slack * by_row.abs().clamp(min=1.0))[big].all()):
        return f"Each row of {shown.output.name} is off by a factor of its own: is the sum of weights divided out once?"
    return ""


def _elsewhere(shown: Comparison) -> bool:
    """Is an infinity or NaN wrong as well? No number explains that."""
    return bool((shown.wrong & ~(shown.expected.isfinite() & shown.got.isfinite())).any())


def short_constant(exercise: Exercise, args: Args, shown: Comparison) -> str:
    """A factor that is almost 1, in an LSE: taken where |LSE| is largest, it explains all the others too."""
    if shown.output.kind != "lse":
        return ""
    finite = shown.expected.isfinite() & shown.got.isfinite()
    got, right, limit = shown.got[finite], shown.expected[finite], shown.limit[finite]
    if len(got) < 3 or _elsewhere(shown):
        return ""
    largest = int(right.abs().argmax())
    factor = float(got[largest] / right[largest])
    if not 1e-7 < abs(factor - 1) < 1e-3 or bool(((got - factor * right).abs() > NOISE * limit).any()):
        return ""
    return (
        f"{shown.output.name} is {factor:.7g} times what it should be, everywhere: "
        "is a constant such as log2(e) written with too few digits?"
    )


def offset(exercise: Exercise, args: Args, shown: Comparison) -> str:
    """A constant difference of an LSE."""
    if shown.output.kind != "lse":
        return ""
    finite = shown.expected.isfinite() & shown.got.isfinite()
    if int(finite.sum()) < 2 or _elsewhere(shown):
        return ""
    difference = (shown.got - shown.expected)[finite]
    middle = float(difference.median())
    slack = 3 * shown.limit[finite]
    slack = torch.where(abs(middle) > 3 * slack, slack, NOISE * shown.limit[finite])
    if bool(((difference - middle).abs() <= slack).all()):
        much = f"{words.number(round(abs(middle), 5))} {'more' if middle > 0 else 'less'}"
        return f"{shown.output.name} is {much} than it should be, everywhere."
    return ""
