"""The misconceptions of l1 about the division: by the logarithm of the sum, by N, twice; or a logarithm in its place.

Each formula with what is said to the learner. Never used by graded code.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from drills.lessons import oracle
from drills.lessons.base import Mistake
from drills.lessons.oracle import finite_shift
from drills.lessons.softmax_formulas import Recurrence

Divisor = Callable[[Tensor, Tensor, int], Tensor]
"""m[M] (0 where it is -inf), l[M] (1 where it is 0), N → what a row is divided by."""

LOGARITHMS: tuple[Divisor, ...] = (
    lambda m, l, n: m + torch.log(l),
    lambda m, l, n: torch.log(l),
    lambda m, l, n: m + torch.log2(l),
    lambda m, l, n: torch.log2(l),
    lambda m, l, n: m / math.log(2) + torch.log2(l),
)
"""The LSE or a part of it, in either base."""


def _count(m: Tensor, l: Tensor, n: int) -> Tensor:
    return torch.full_like(l, max(n, 1))


def _twice(m: Tensor, l: Tensor, n: int) -> Tensor:
    return l * l


def _rows(x: Tensor, by: Divisor) -> Tensor:
    m, l = oracle.softmax_stats(x)
    return by(finite_shift(m), torch.where(l == 0, 1.0, l), x.shape[1])[:, None]


def softmax_by(by: Divisor):
    def formula(x: Tensor, block: int = 1024):
        m, _ = oracle.softmax_stats(x)
        return (torch.exp(x.double() - finite_shift(m)[:, None]) / _rows(x, by),)

    return formula


def attend_by(by: Divisor):
    def formula(scores: Tensor, v: Tensor, block: int = 64):
        return (Recurrence().run(scores, block, v)[2] / _rows(scores, by),)

    return formula


def log_softmax(base: float, empty: float):
    """x - m - ln l; where a row has no score, `empty`."""

    def formula(x: Tensor, block: int = 1024):
        y = (x.double() - oracle.lse(x)[:, None]) / math.log(base)
        return (torch.where(oracle.softmax_stats(x)[1][:, None] == 0, empty, y),)

    return formula


def unshifted_over_l(x: Tensor, block: int = 1024):
    """exp(x) in float32, over an l that is relative to m."""
    _, l = oracle.softmax_stats(x)
    return (torch.exp(x.float()).double() / torch.where(l == 0, 1.0, l)[:, None],)


def _two(name: str, ways: tuple[Divisor, ...], says: str) -> tuple[Mistake, ...]:
    """The same of softmax and of attend."""
    made = (("softmax", softmax_by), ("attend", attend_by))
    return tuple(
        Mistake(
            f"{exercise}_{name}",
            exercise,
            write(ways[0]),
            says,
            "not-divided-by-l",
            variants=tuple(map(write, ways[1:])),
        )
        for exercise, write in made
    )


_log_softmaxes = tuple(partial(log_softmax, base) for base in (math.e, 2.0))

DIVIDED = (
    *_two(
        "by_lse", LOGARITHMS,
        "The division was by the LSE, m + ln l, or by a part of it. Divide by l itself, the sum of exp(x - m).",
    ),
    *_two("by_count", (_count,), "The division was by N, the number of scores. Divide by l, the sum of the weights."),
    *_two(
        "divided_twice", (_twice,),
        "The division by l was made twice: exp(x - m - ln l) is divided by it already. Once is enough.",
    ),
    Mistake(
        "softmax_log", "softmax", log_softmax(math.e, -math.inf),
        "This is the logarithm of softmax, x - m - ln l. Its exp is wanted: exp(x - m) / l.", "not-divided-by-l",
        variants=tuple(write(empty) for write in _log_softmaxes for empty in (math.nan, 0.0, -math.inf)),
    ),
    Mistake(
        "softmax_unshifted_over_l", "softmax", unshifted_over_l,
        "The max is missing in the second loop: exp(x) was divided by an l that is relative to m. Take exp(x - m).",
        "no-max-shift",
    ),
)  # fmt: skip
