"""The misconceptions of l1 about the parts of a row: lanes and chunks of their own, the last chunk, both results.

Each formula with what is said to the learner. Never used by graded code.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from drills.lessons import oracle
from drills.lessons.base import Mistake
from drills.lessons.oracle import finite_shift
from drills.lessons.softmax_draws import draw_far_apart, draw_long, draw_masked_row, draw_odd_tail, with_values
from drills.lessons.softmax_formulas import BLOCKS, Recurrence, never, stats, too_long, v_and_block

RESCALE = "the-old-sum-is-not-rescaled"
ROW = "the-row-and-its-address"
EMPTY = "a-row-with-no-score"
LANES = (2, 4, 8, *BLOCKS[1:])
"""Columns a step that code may use in place of the block it was given."""

Formula = Callable[..., tuple]


def of_any_width(write: Callable[[int | None], Formula]) -> dict:
    """`write(None)` for parts as wide as the call's block, and as variants for other widths: what a Mistake takes."""
    return {"formula": write(None), "variants": tuple(write(width) for width in LANES)}


def cut(x: Tensor, width: int) -> Tensor:
    """x[M, N] → [M, ceil(N / width), width], filled up with -inf."""
    more = torch.full((x.shape[0], -x.shape[1] % width), -math.inf, dtype=torch.float64)
    return torch.cat([x.double(), more], 1).reshape(x.shape[0], -(-x.shape[1] // width), width)


def lanes_not_rescaled(width: int | None) -> Formula:
    """Every lane has an m and an l of its own and does not rescale l; the lanes are merged rightly at the end."""

    def formula(x: Tensor, block: int = 1024):
        lanes = cut(x, width or block).transpose(1, 2)
        rows, count, steps = lanes.shape
        rule = Recurrence(rescale_l="none", rescale_o="none")
        m, l, _ = (one.reshape(rows, -1) for one in rule.run(lanes.reshape(rows * count, steps), 1))
        top = oracle.largest(m)
        return top, (l * torch.exp(m - finite_shift(top)[:, None])).sum(1)

    return formula


def parts_added(lanes: bool) -> Callable[[int | None], Formula]:
    """Every lane, or chunk, has its own m and l, and l is their plain sum."""

    def write(width: int | None) -> Formula:
        def formula(x: Tensor, block: int = 1024):
            parts = cut(x, width or block)
            return oracle.largest(x), oracle.softmax_stats(parts.transpose(1, 2) if lanes else parts)[1].sum(1)

        return formula

    return write


def whole_blocks(right: Formula, at_least: int) -> Callable[[int | None], Formula]:
    """N // block blocks, `at_least` that many, and the scores after them are not looked at."""

    def write(width: int | None) -> Formula:
        def formula(x: Tensor, *given):
            v, block = v_and_block(given)
            size = width or block
            kept = max(at_least, x.shape[1] // size) * size
            return right(x[:, :kept], *(one[:kept] for one in v), block)

        return formula

    return write


def one_further_a_step(right: Formula) -> Callable[[int | None], Formula]:
    """cdiv(N, block) steps, each of which begins one column after the one before: the blocks overlap."""

    def write(width: int | None) -> Formula:
        def formula(x: Tensor, *given):
            v, block = v_and_block(given)
            size, count = width or block, x.shape[1]
            steps = [range(start, min(start + size, count)) for start in range(-(-count // size))]
            columns = torch.tensor([one for step in steps for one in step], dtype=torch.int64)
            return right(x[:, columns], *(one[columns] for one in v), block)

        return formula

    return write


def whole_blocks_only(right: Formula) -> dict:
    none, one = (of_any_width(whole_blocks(right, at_least)) for at_least in (0, 1))
    return {"formula": none["formula"], "variants": (one["formula"], *none["variants"], *one["variants"])}


def new_part(how: str) -> Callable[[int | None], Formula]:
    """The block's terms under the max before it ("old", "old, l kept"), or scaled with the old sum ("scaled").

    Or one of the two in base 2: the terms ("terms of 2") or the factor ("factor of 2").
    """

    def write(width: int | None) -> Formula:
        def formula(x: Tensor, block: int = 1024):
            alone = width is not None and x.shape[1] <= width  # one part: l is 0, or all of it in base 2
            if (alone and not how.startswith("old")) or too_long(x, width or block):
                return never(x)[:2]
            m = torch.full(x.shape[:1], -math.inf, dtype=torch.float64)
            l = torch.zeros_like(m)
            for step in cut(x, width or block).unbind(1):
                m_new = torch.maximum(m, step.amax(1))
                keep = (torch.exp2 if how == "factor of 2" else torch.exp)(m - finite_shift(m_new))
                under = torch.where(m == -math.inf, m_new, m) if how.startswith("old") else m_new
                new = (torch.exp2 if how == "terms of 2" else torch.exp)(step - finite_shift(under)[:, None]).sum(1)
                l = {"scaled": (l + new) * keep, "old, l kept": l + new}.get(how, l * keep + new)
                m = m_new
            return m, l

        return formula

    return write


def put_back(start: float) -> Formula:
    """The running max starts at this number, and m is -inf after all where l is 0."""
    return stats(Recurrence(start=start), back=True)


def own_max_at_last(width: int | None) -> Formula:
    """softmax whose second loop subtracts each block's own max; l is right."""

    def formula(x: Tensor, block: int = 1024):
        _, l = oracle.softmax_stats(x)
        e = torch.exp(cut(x, width or block) - finite_shift(oracle.largest(cut(x, width or block)))[..., None])
        return (e.reshape(len(x), -1)[:, : x.shape[1]] / torch.where(l == 0, 1.0, l)[:, None],)

    return formula


def eps_added(eps: float) -> Formula:
    """softmax divided by l + eps."""

    def formula(x: Tensor, block: int = 1024):
        m, l = oracle.softmax_stats(x)
        return (torch.exp(x.double() - finite_shift(m)[:, None]) / (l + eps)[:, None],)

    return formula


def first_block_sums(width: int | None) -> Formula:
    """softmax whose m and l are the first block's."""

    def formula(x: Tensor, block: int = 1024):
        m, l = oracle.softmax_stats(x[:, : width or block])
        return (torch.exp(x.double() - finite_shift(m)[:, None]) / torch.where(l == 0, 1.0, l)[:, None],)

    return formula


def _scaled(scores: Tensor, v: Tensor, block: int = 64):
    return (oracle.attend(scores.double() * v.shape[1] ** -0.5, v),)


def _stats(x: Tensor, block: int = 1024):
    return oracle.softmax_stats(x)


def _attend(scores: Tensor, v: Tensor, block: int = 64):
    return (oracle.attend(scores, v),)


def _m_as_l(x: Tensor, block: int = 1024):
    """m itself is judged to the last bit, which the l in its place need not meet."""
    return None, oracle.largest(x)


def _masked_count(x: Tensor, block: int = 1024):
    m, l = oracle.softmax_stats(x)
    return m, torch.where(l == 0, float(x.shape[1]), l)


def _masked_uniform(x: Tensor, block: int = 1024):
    return (torch.where(oracle.softmax_stats(x)[1][:, None] == 0, 1 / max(1, x.shape[1]), oracle.softmax(x)),)


def _masked_mean(scores: Tensor, v: Tensor, block: int = 64):
    return (_masked_uniform(scores)[0] @ v.double(),)


def _every(*ways: dict) -> dict:
    first, *others = (one for way in ways for one in (way["formula"], *way["variants"]))
    return {"formula": first, "variants": tuple(others)}


MASKED = "In a row with no score (-inf) - (-inf) was taken for 0, so that every masked score weighs exp(0) = 1. "
TAIL = "Only whole blocks were looked at: N // block leaves out the last, shorter one. Take cdiv(N, block), and mask."
ONE_FURTHER = (
    "Every step begins one column after the last, so that blocks overlap. Step by step it is i * BLOCK, or "
    "range(0, N, BLOCK)."
)
SWAPPED = ("m and l are the other way round: m comes first.", ROW)

PARTS = (
    Mistake(
        "stats_lanes_not_rescaled", "softmax_stats", anchor=RESCALE, **of_any_width(lanes_not_rescaled),
        says="Each lane keeps its own m and l, and its l was not rescaled when its m moved. Multiply it by "
        "exp(m_old - m_new).",
    ),
    Mistake(
        "stats_parts_added", "softmax_stats", anchor=RESCALE,
        **_every(of_any_width(parts_added(False)), of_any_width(parts_added(True))),
        says="The l of several parts were added as they are. Each counts under its own max: multiply it by "
        "exp(m_part - m) first.",
    ),
    Mistake(
        "stats_new_part", "softmax_stats", anchor=RESCALE,
        **_every(*(of_any_width(new_part(how)) for how in ("old", "old, l kept"))),
        says="The block's terms were taken relative to the max before it. Both sums belong under the new max: "
        "exp(x - m_new), and the old l times exp(m_old - m_new).",
    ),
    Mistake(
        "stats_two_bases", "softmax_stats", anchor="exp2-where-exp-belongs",
        **_every(*(of_any_width(new_part(how)) for how in ("terms of 2", "factor of 2"))),
        says="One of the two is taken with exp2 and one with exp: the block's terms and the factor on the old sum. "
        "Both are powers of e.",
    ),
    Mistake(
        "stats_new_part_rescaled", "softmax_stats", anchor=RESCALE, **of_any_width(new_part("scaled")),
        says="The factor exp(m_old - m_new) was applied to the block's own terms too. It is for the old sum alone.",
    ),
    Mistake(
        "stats_stand_in_put_back", "softmax_stats", cases=draw_far_apart, anchor="no-stand-in-for-",
        formula=put_back(-1e30),
        variants=tuple(put_back(x) for x in (-1e4, -5e4, -65504.0, -1e5, -1e6, -1e9, -1e10, -1e20)),
        says="The running max starts at a finite number, and a row whose scores lie below it is taken for one with no "
        "score. Start at -inf and guard for it.",
    ),
    Mistake("stats_tail_dropped", "softmax_stats", cases=draw_odd_tail, anchor=ROW, says=TAIL,
            **whole_blocks_only(_stats)),
    Mistake("attend_tail_dropped", "attend", cases=with_values(draw_odd_tail), anchor=ROW, says=TAIL,
            **whole_blocks_only(_attend)),
    Mistake("stats_one_further", "softmax_stats", cases=draw_long, anchor=ROW, says=ONE_FURTHER,
            **of_any_width(one_further_a_step(_stats))),
    Mistake("attend_one_further", "attend", cases=with_values(draw_long), anchor=ROW, says=ONE_FURTHER,
            **of_any_width(one_further_a_step(_attend))),
    Mistake(
        "softmax_first_block_only", "softmax", cases=draw_long, anchor=ROW, **of_any_width(first_block_sums),
        says="m and l are those of the first block. Loop over all of them before the results are computed.",
    ),
    Mistake(
        "attend_scaled", "attend", anchor=ROW, formula=_scaled,
        says="The scores were divided by the square root of D. They are final here: whoever computed them scaled them.",
    ),
    Mistake("stats_swapped", "softmax_stats", _m_as_l, *SWAPPED),
    Mistake("stats_masked_row_counts", "softmax_stats", _masked_count, f"{MASKED}l is 0 there.", EMPTY,
            draw_masked_row),
    Mistake("softmax_masked_row_uniform", "softmax", _masked_uniform, f"{MASKED}Give zeros.", EMPTY, draw_masked_row),
    Mistake("attend_masked_row_mean", "attend", _masked_mean, f"{MASKED}Give zeros.", EMPTY,
            with_values(draw_masked_row)),
    Mistake(
        "softmax_own_max_at_last", "softmax", anchor="the-last-blocks-max", **of_any_width(own_max_at_last),
        says="The second loop subtracted each block's own max. l counts under the row's: exp(x - m) with the final m.",
    ),
    Mistake(
        "softmax_eps", "softmax", anchor=EMPTY, formula=eps_added(1e-3),
        variants=tuple(eps_added(eps) for eps in (1e-4, 1e-2, 1e-1)),
        says="A small number was added to l, which moves every result. Divide by l, and by 1 where l is 0.",
    ),
)  # fmt: skip
