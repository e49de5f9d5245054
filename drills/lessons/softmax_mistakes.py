"""The misconceptions about the online softmax that are recognized, with what is said to the learner.

The formulas stand in softmax_formulas.py. Never used by graded code.
"""

from __future__ import annotations

import functools

from drills.lessons import softmax_formulas as formulas
from drills.lessons.base import Mistake
from drills.lessons.softmax_divided import DIVIDED
from drills.lessons.softmax_draws import (
    draw_falling,
    draw_far_below,
    draw_half,
    draw_huge,
    draw_masked_first,
    draw_masked_row,
    draw_masked_then_low,
    draw_negative,
    draw_odd_tail,
    with_values,
)
from drills.lessons.softmax_formulas import BLOCKS, Recurrence, attended, in_blocks, normalized, stats
from drills.lessons.softmax_parts import PARTS
from drills.lessons.softmax_slips import SLIPS

UNSHIFTED = (
    "The max was not subtracted: exp overflows float32 from 88.8 on. Take exp(x - m).",
    "no-max-shift",
)
ZERO = ("The running max starts at 0, which is too high for a row of negative scores. Start at -inf.", "a-max-from-0")
NOT_RESCALED = (
    "The old sum was not rescaled when the max moved: multiply it by exp(m_old - m_new) before adding the block.",
    "the-old-sum-is-not-rescaled",
)
INVERTED = (
    "The old sum was multiplied by exp(m_new - m_old). A larger max makes old terms smaller: exp(m_old - m_new).",
    "the-factor-upside-down",
)
BLOCK_MAX = (
    "Each block's own max replaced the running max. Keep the larger of the two: m_new = max(m, max of the block).",
    "the-last-blocks-max",
)
STAYS = (
    "The running max did not move: every block began from -inf, and only the last one counts. End the step with "
    "m = m_new.",
    "the-last-blocks-max",
)
AS_IT_GOES = (
    "Results were written in the loop that still adds up l. They need the whole row's m and l: write them in a second.",
    "two-loops-for-softmax-one-for-attend",
)
TAIL = (
    "Columns past the row's end were loaded as 0, and exp(0 - m) counts. Load them as -inf, which weighs 0.",
    "the-tail-loaded-as-0",
)
HALF = (
    "The running sum was kept in half precision, where small terms are lost. Keep m, l and o in float32.",
    "sums-in-half-precision",
)
NAN = (
    "(-inf) - (-inf) is NaN. While the max is still -inf, subtract 0 in its place.",
    "minus-inf-minus-minus-inf",
)
KEPT = (
    "The 0 that is subtracted while the max is -inf was kept as the max, which lower scores never replace. m "
    "stays -inf.",
    "minus-inf-minus-minus-inf",
)
EMPTY = ("A row with no score gave 0 / 0. Divide by 1 where l is 0.", "a-row-with-no-score")
NOT_DIVIDED = ("The result was not divided by l, or l is NaN and a guard divided by 1.", "not-divided-by-l")


_variant = functools.partial(Recurrence, single=True)

FAULTS = {
    "no_rescale": (Recurrence(rescale_l="none", rescale_o="none"), NOT_RESCALED, None),
    "tail_zero": (Recurrence(pad=0.0), TAIL, draw_odd_tail),
    "half_sum": (Recurrence(half=True), HALF, draw_half),
    "nan": (Recurrence(guard=False), NAN, draw_masked_first),
    "stays": (Recurrence(moves=False), STAYS, None),
}
"""Faults that all three exercises share: id → rule, (what is said, anchor), cases."""


def shared(exercise: str, prefix: str, write, convert, **more) -> tuple[Mistake, ...]:
    """The shared faults as mistakes of one exercise. convert: cases of softmax → cases of the exercise."""
    found = []
    for name, (rule, (says, anchor), cases) in FAULTS.items():
        ways = in_blocks(write, rule, **more)
        if name == "nan" and write is normalized:  # where(l > 0, l, 1) makes 1 of NaN, where(l == 0, 1, l) does not
            for last in (False, True):
                positive = in_blocks(write, rule, positive=True, guarded_last=last)
                ways["variants"] += (positive["formula"], *positive["variants"])
        if name == "stays" and write is normalized:  # in one block as long as the row it is unshifted_over_l
            ways["variants"] = ()
        found.append(
            Mistake(f"{prefix}_{name}", exercise, says=says, anchor=anchor, cases=cases and convert(cases), **ways)
        )
    upside_down = Recurrence(rescale_l="inverted", rescale_o="inverted", first_step=False)
    ways = in_blocks(write, upside_down, **more)
    skipping = in_blocks(write, Recurrence(rescale_l="inverted", rescale_o="inverted"), **more)
    ways["variants"] += (skipping["formula"], *skipping["variants"])
    if write is attended:  # of the two sums, only one
        for one in ({"rescale_l": "inverted"}, {"rescale_o": "inverted"}):
            only = in_blocks(write, Recurrence(**one), **more)
            ways["variants"] += (only["formula"], *only["variants"])
    found.append(Mistake(f"{prefix}_inverted", exercise, says=INVERTED[0], anchor=INVERTED[1], **ways))
    return tuple(found)


def zero_kept(exercise: str, prefix: str, write, convert, *ways: dict) -> Mistake:
    """The shift's 0 as the running max; ways: what else `write` takes, the usual first."""
    each = [in_blocks(write, _variant(kept=True), **more) for more in ways]
    first, *others = (one for way in each for one in (way["formula"], *way["variants"]))
    cases = convert(draw_masked_then_low)
    return Mistake(f"{prefix}_zero_kept", exercise, first, *KEPT, cases=cases, variants=tuple(others))


STATS = (
    Mistake("stats_no_shift", "softmax_stats", formulas.stats_unshifted, *UNSHIFTED),
    Mistake(
        "stats_start_zero", "softmax_stats", says=ZERO[0], anchor=ZERO[1], cases=draw_negative,
        **in_blocks(stats, Recurrence(start=0.0)),
    ),
    Mistake(
        "stats_block_max", "softmax_stats", says=BLOCK_MAX[0], anchor=BLOCK_MAX[1],
        **in_blocks(stats, Recurrence(running=False)),
    ),
    *shared("softmax_stats", "stats", stats, lambda draw: draw),
    zero_kept("softmax_stats", "stats", stats, lambda draw: draw, {}, {"back": True}),
)  # fmt: skip

SOFTMAX = (
    Mistake(
        "softmax_no_shift", "softmax", normalized(_variant(shift=False)), *UNSHIFTED, cases=draw_huge,
        variants=(normalized(_variant(shift=False), guarded=True),),
    ),
    Mistake(
        "softmax_start_zero", "softmax", normalized(_variant(start=0.0)), *ZERO, cases=draw_far_below,
        variants=(normalized(_variant(start=0.0), guarded=True),),
    ),
    Mistake(
        "softmax_block_max", "softmax", says=BLOCK_MAX[0], anchor=BLOCK_MAX[1], cases=draw_falling,
        **in_blocks(normalized, _variant(running=False)),
    ),
    *shared("softmax", "softmax", normalized, lambda draw: draw, guarded=True),
    zero_kept("softmax", "softmax", normalized, lambda draw: draw, {"guarded": True}, {}),
    Mistake("softmax_empty_row", "softmax", formulas.empty_rows_nan, *EMPTY, cases=draw_masked_row),
    Mistake("softmax_not_divided", "softmax", formulas.not_normalized, *NOT_DIVIDED),
    Mistake(
        "softmax_as_it_goes", "softmax", formulas.as_it_goes(), *AS_IT_GOES,
        variants=tuple(formulas.as_it_goes(block, guarded) for block in (None, *BLOCKS) for guarded in (True, False)),
    ),
    Mistake(
        "softmax_block_by_block",
        "softmax",
        formulas.block_by_block,
        "Each block was normalized by itself. The sum l runs over the whole row: finish it before the second read.",
        "not-divided-by-l",
    ),
)  # fmt: skip

ATTEND = (
    Mistake(
        "attend_no_shift", "attend", attended(_variant(shift=False), guarded=False), *UNSHIFTED,
        cases=with_values(draw_huge), variants=(attended(_variant(shift=False)),),
    ),
    Mistake(
        "attend_start_zero", "attend", attended(_variant(start=0.0), guarded=False), *ZERO,
        cases=with_values(draw_far_below), variants=(attended(_variant(start=0.0)),),
    ),
    Mistake(
        "attend_block_max", "attend", says=BLOCK_MAX[0], anchor=BLOCK_MAX[1], cases=with_values(draw_falling),
        **in_blocks(attended, _variant(running=False)),
    ),
    Mistake(
        "attend_l_not_rescaled",
        "attend",
        says="l was not rescaled when the max moved, though o was: both carry the factor exp(m_old - m_new).",
        anchor=NOT_RESCALED[1],
        **in_blocks(attended, Recurrence(rescale_l="none")),
    ),
    Mistake(
        "attend_o_not_rescaled",
        "attend",
        says="o was not rescaled when the max moved, though l was: both carry the factor exp(m_old - m_new).",
        anchor="o-is-not-rescaled",
        **in_blocks(attended, Recurrence(rescale_o="none")),
    ),
    *shared("attend", "attend", attended, with_values),
    zero_kept("attend", "attend", attended, with_values, {}, {"guarded": False}),
    Mistake(
        "attend_empty_row", "attend", attended(Recurrence(), guarded=False), *EMPTY, cases=with_values(draw_masked_row)
    ),
    Mistake("attend_not_divided", "attend", formulas.attend_not_normalized, *NOT_DIVIDED),
    Mistake(
        "attend_averaged",
        "attend",
        formulas.attend_averaged,
        "Each block's output was normalized by itself and the outputs were averaged. A block weighs its share of l.",
        "not-divided-by-l",
    ),
)  # fmt: skip

MISTAKES = (*STATS, *SOFTMAX, *ATTEND, *PARTS, *SLIPS, *DIVIDED)
