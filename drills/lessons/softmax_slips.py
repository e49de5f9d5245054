"""The misconceptions of l1 that leave the recurrence as it is: the base, the axis, the address, a stand-in for -inf.

Formulas of one line stand beside what is said to the learner; all others in softmax_formulas.py. Never used by graded
code.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from drills.lessons import oracle
from drills.lessons.base import Mistake
from drills.lessons.softmax_draws import (
    draw_attend,
    draw_far_apart,
    draw_long,
    draw_rows,
    with_values,
)
from drills.lessons.softmax_formulas import BLOCKS, Recurrence, attended, in_blocks, normalized, stats, v_and_block
from drills.lessons.strides import ignoring, reading, swapped, with_strides

STAND_INS = (-5e4, -1e4, -2e4, -3e4, -65504.0, -1e5, -1e6, -1e9, -1e10, -1e30, -1e38, torch.finfo(torch.float32).min)
"""Numbers that are taken for minus infinity."""

BASE_2 = (
    "exp2 stands where exp belongs: 2^x is not e^x. Use exp, or multiply the scores by log2(e) first.",
    "exp2-where-exp-belongs",
)
ROW = "the-row-and-its-address"
COLUMNS = ("The weights were normalized down the columns. A row of scores is one softmax; its weights sum to 1.", ROW)
FIRST = ("Only the first block of the row was looked at. Loop over all of them, one block a step.", ROW)
STAND_IN = (
    "A finite number stands in for -inf, and legal scores lie below it. Start m at -inf, load with other=-inf, guard.",
    "no-stand-in-for-",
)
DIVIDED = (
    "o was divided by l after every block, and then carried on as if it were not. Divide once, after the last one."
)
STRIDES = "was read as if it were contiguous: use its strides, or copy it with contiguous() first."


def _stats(x: Tensor, block: int = 1024):
    return oracle.softmax_stats(x)


def _softmax(x: Tensor, block: int = 1024):
    return (oracle.softmax(x),)


def _attend(scores: Tensor, v: Tensor, block: int = 64):
    return (oracle.attend(scores, v),)


def _stats_base_2(x: Tensor, block: int = 1024):
    return oracle.largest(x), oracle.softmax_stats(x.double() * math.log(2))[1]


def _log_of_l(x: Tensor, block: int = 1024):
    m, l = oracle.softmax_stats(x)
    return m, torch.log(l)


def _in_base_2(right: Callable[..., tuple]) -> Callable[..., tuple]:
    return lambda x, *more: right(x.double() * math.log(2), *more)


def _down_the_columns(x: Tensor, *given):
    """Of the weights themselves, or of weights that v is then taken with."""
    weights = oracle.softmax(x.t()).t()
    v, _ = v_and_block(given)
    return (weights @ v[0].double() if v else weights,)


def _first_rows_of_v(block: int | None):
    """Every block of scores with the first rows of v: the rows are numbered within the block."""

    def formula(scores: Tensor, v: Tensor, of_call: int = 64):
        row = torch.arange(len(v)) % (block or of_call)
        return (oracle.attend(scores, v[row]),)

    return formula


def _first_block(right: Callable[..., tuple], fixed: int | None = None) -> Callable[..., tuple]:
    """One block of the row, and of v, of the call's size or of a fixed one."""

    def formula(x: Tensor, *given):
        v, block = v_and_block(given)
        size = fixed or block
        return right(x[:, :size], *(one[:size] for one in v), block)

    return formula


def _first_blocks(right: Callable[..., tuple]) -> dict:
    return {"formula": _first_block(right), "variants": tuple(_first_block(right, block) for block in BLOCKS[1:])}


def _stand_ins(write: Callable, single: bool, **more) -> dict:
    first, *others = (write(Recurrence(start=start, single=single), **more) for start in STAND_INS)
    return {"formula": first, "variants": tuple(others)}


SLIPS = (
    Mistake("stats_base_2", "softmax_stats", _stats_base_2, *BASE_2),
    Mistake("softmax_base_2", "softmax", _in_base_2(_softmax), *BASE_2),
    Mistake("attend_base_2", "attend", _in_base_2(_attend), *BASE_2),
    Mistake(
        "stats_log_l",
        "softmax_stats",
        _log_of_l,
        "The logarithm of l was returned. l itself is wanted here: the sum of exp(x - m).",
        ROW,
    ),
    Mistake("softmax_down_the_columns", "softmax", _down_the_columns, *COLUMNS),
    Mistake("attend_down_the_columns", "attend", _down_the_columns, *COLUMNS),
    Mistake("attend_v_turned", "attend", reading(_attend, [1], swapped),
            "The strides of v are swapped: v[n, d] lies at n * v.stride(0) + d * v.stride(1).", ROW),
    Mistake("attend_first_rows_of_v", "attend", _first_rows_of_v(None),
            "Every block of scores met the first rows of v. Score n goes with row n of v, start + tl.arange(...).", ROW,
            cases=with_values(draw_long), variants=tuple(_first_rows_of_v(block) for block in BLOCKS if block != 1)),
    Mistake("attend_divided_every_step", "attend", says=DIVIDED, anchor="not-divided-by-l",
            **in_blocks(attended, Recurrence(divide=True))),
    Mistake("stats_first_block_only", "softmax_stats", says=FIRST[0], anchor=FIRST[1], cases=draw_long,
            **_first_blocks(_stats)),
    Mistake("attend_first_block_only", "attend", says=FIRST[0], anchor=FIRST[1], cases=with_values(draw_long),
            **_first_blocks(_attend)),
    Mistake("stats_stand_in", "softmax_stats", says=STAND_IN[0], anchor=STAND_IN[1], cases=draw_far_apart,
            **_stand_ins(stats, False)),
    Mistake("softmax_stand_in", "softmax", says=STAND_IN[0], anchor=STAND_IN[1], cases=draw_far_apart,
            **_stand_ins(normalized, True, guarded=True)),
    Mistake("attend_stand_in", "attend", says=STAND_IN[0], anchor=STAND_IN[1], cases=with_values(draw_far_apart),
            **_stand_ins(attended, True)),
    Mistake("stats_strides_ignored", "softmax_stats", says=f"x {STRIDES}", anchor=ROW,
            cases=with_strides(draw_rows), **ignoring(_stats, (0,))),
    Mistake("softmax_strides_ignored", "softmax", says=f"x {STRIDES}", anchor=ROW,
            cases=with_strides(draw_rows), **ignoring(_softmax, (0,))),
    Mistake("attend_strides_ignored", "attend", says=f"scores or v {STRIDES}", anchor=ROW,
            cases=with_strides(draw_attend), **ignoring(_attend, (0,), (1,))),
)  # fmt: skip
