"""The misconceptions about the loop of lse and lse2, the range of exp and strides that l3 recognizes.

The formulas stand in lse_loop_formulas.py. Never used by graded code.
"""

from __future__ import annotations

import torch

from drills.lessons import lse_draws as draws
from drills.lessons import lse_formulas as formulas
from drills.lessons import lse_loop_formulas as loops
from drills.lessons.base import Mistake
from drills.lessons.lse_formulas import on_states
from drills.lessons.oracle import LOG2_E
from drills.lessons.softmax_formulas import Recurrence
from drills.lessons.state_mistakes import ADDRESS, EPSILON, RANGE, STRIDES
from drills.lessons.strides import ignoring, with_strides

STAND_INS = (-5e4, -1e4, -2e4, -3e4, -65504.0, -1e5)
"""Numbers taken for minus infinity, above the scores of the cases."""

EPSILONS = tuple(10.0**-n for n in (12, 4, 5, 6, 7, 8, 9, 10, 15, 20, 30))
HALF = (torch.float16, torch.bfloat16, None)


def no_guard(factor: float) -> tuple:
    """(-inf) - (-inf) in a row that begins with masked blocks, with a guard at the end and without."""
    return tuple(loops.masked_beginning(block, factor, guarded) for block in loops.BLOCKS for guarded in (True, False))


def _of_blocks(id: str, exercise: str, write, factor: float, says: str) -> Mistake:
    """Blocks that have an LSE each, put together wrongly."""
    first, *others = (write(block, factor) for block in loops.BLOCKS)
    return Mistake(id, exercise, first, says, "lse-without-m", cases=draws.draw_rising, variants=tuple(others))


def _of_a_row(exercise: str, factor: float, old: str) -> tuple[Mistake, ...]:
    """The misconceptions that lse and lse2 share. old: the factor of an old sum."""
    first, *others = (loops.first_block(block, factor) for block in loops.BLOCKS)
    kept, *more_kept = (loops.zero_kept(block, factor, one) for one in (False, True) for block in loops.BLOCKS)
    return (
        Mistake(
            f"{exercise}_l_not_rescaled", exercise, anchor=RANGE, cases=draws.draw_rising,
            says=f"l was not rescaled when the max moved: multiply it by {old} before adding the block.",
            **loops.in_blocks(Recurrence(rescale_l="none"), factor),
        ),
        Mistake(
            f"{exercise}_factor_upside_down", exercise, anchor=RANGE, cases=draws.draw_rising,
            says=f"The factor of the old l is upside down: a larger max makes old terms smaller. It is {old}.",
            **loops.in_blocks(Recurrence(rescale_l="inverted"), factor),
        ),
        Mistake(
            f"{exercise}_tail_zero", exercise, anchor="the-row-and-its-end",
            says="Columns past the row's end were loaded as 0, and count. Load them as -inf, which weighs 0.",
            **loops.in_blocks(Recurrence(pad=0.0), factor),
        ),
        Mistake(
            f"{exercise}_first_block_only", exercise, first, anchor="the-row-and-its-end", cases=draws.draw_rising,
            says="Only the first block of the row was looked at. Loop over all of them, one block a step.",
            variants=tuple(others),
        ),
        _of_blocks(
            f"{exercise}_blocks_added", exercise, loops.blocks_added, factor,
            "The LSEs of the blocks were added, which multiplies their sums. The sums add, under one logarithm.",
        ),
        _of_blocks(
            f"{exercise}_largest_of_blocks", exercise, loops.largest_of_blocks, factor,
            "The largest of the blocks' LSEs was returned. The others' sums count too: add them, under one logarithm.",
        ),
        Mistake(
            f"{exercise}_start_zero", exercise, anchor=RANGE, cases=draws.draw_far_rows,
            says="The running max starts at 0: far below it, every term is 0. Start at -inf.",
            **loops.started((0.0,), factor),
        ),
        Mistake(
            f"{exercise}_zero_kept", exercise, kept, anchor=RANGE, cases=draws.draw_masked_then_low,
            says="The 0 that is subtracted while the max is -inf was kept as the max, which lower scores never "
            "replace. m stays -inf.",
            variants=tuple(more_kept),
        ),
        Mistake(
            f"{exercise}_stand_in", exercise, anchor=RANGE, cases=draws.draw_far_below,
            says="The running max starts at a finite number, and legal scores lie below it. Start at -inf.",
            **loops.started(STAND_INS, factor),
        ),
        Mistake(
            f"{exercise}_strides_ignored", exercise, says=f"x {STRIDES}", anchor=ADDRESS,
            cases=with_strides(draws.draw_rows), **ignoring(formulas.times(factor), (0,)),
        ),
    )  # fmt: skip


LOOPS = (
    *_of_a_row("lse", 1.0, "exp(m_old - m_new)"),
    *_of_a_row("lse2", LOG2_E, "exp2(m_old - m_new)"),
    Mistake(
        "lse2_in_half",
        "lse2",
        loops.scores_in_half(None, True),
        "The scores were rounded to half precision after they were scaled. Convert to float32 first, then scale.",
        "the-max-stays-natural",
        cases=draws.draw_half_rows,
        variants=tuple(loops.scores_in_half(dtype, too) for dtype in HALF for too in (True, False)),
    ),
    Mistake(
        "natural_epsilon", "merge_natural", on_states(loops.with_epsilon(EPSILONS[0])), *EPSILON,
        cases=draws.draw_two_empty, variants=tuple(on_states(loops.with_epsilon(one)) for one in EPSILONS[1:]),
    ),
    Mistake(
        "natural_shifted_by_first", "merge_natural", on_states(loops.shifted_by_side(0, False)),
        "lse_a was subtracted, not the larger of the two: exp(lse_b - lse_a) overflows where lse_a is far below.",
        RANGE, cases=draws.draw_uneven_pair, variants=(on_states(loops.shifted_by_side(0, True)),),
    ),
    Mistake(
        "natural_shifted_by_second", "merge_natural", on_states(loops.shifted_by_side(1, False)),
        "lse_b was subtracted, not the larger of the two: exp(lse_a - lse_b) overflows where lse_b is far below.",
        RANGE, cases=draws.draw_uneven_pair, variants=(on_states(loops.shifted_by_side(1, True)),),
    ),
    Mistake(
        "natural_sign_flipped", "merge_natural", on_states(loops.sign_flipped),
        "The merged LSE has exp(max - min) in it. It is max + ln(1 + exp(min - max)), with an exponent of at most 0.",
        "averaged-or-swapped",
    ),
    Mistake(
        "natural_strides_ignored", "merge_natural", says=f"An LSE or an output {STRIDES}", anchor=ADDRESS,
        cases=with_strides(draws.draw_pair),
        **ignoring(on_states(formulas.right), (1, 3), (0, 2), (0,), (1,), (2,), (3,)),
    ),
    Mistake(
        "to_strides_ignored", "to_flashinfer", says=f"lse {STRIDES}", anchor=ADDRESS,
        cases=with_strides(draws.draw_lse), **ignoring(lambda lse: (formulas.converted(lse),), (0,)),
    ),
)  # fmt: skip
