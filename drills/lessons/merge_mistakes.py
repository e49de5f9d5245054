"""The misconceptions about merging states that are recognized, and what is said to the learner.

`CAUSES` lists them, `MISTAKES` spells them out, one for each exercise in which they can happen; merge_loop_mistakes.py
lists those of a walk over many states. The mistakes of one exercise alone are in merge_own_mistakes.py and
merge_run_mistakes.py.
"""

from __future__ import annotations

from drills.lessons import merge_cases as draws
from drills.lessons import merge_rules as rules
from drills.lessons import merge_s_rules as s_rules
from drills.lessons.base import Mistake
from drills.lessons.merge_causes import MANY, TWO, Cause
from drills.lessons.merge_loop_mistakes import LOOP_CAUSES

CAUSES = (
    Cause(
        "exp_for_exp2",
        (rules.exp_for_exp2, rules.exp_for_exp2_in_v),
        "exp-where-exp2-belongs",
        "The weights are e^(s - m), which pushes them apart: s is base 2, so a weight is 2^(s - m). Use tl.exp2.",
    ),
    Cause(
        "exp_in_one_weight",
        (rules.exp_in_one_weight(0), rules.exp_in_one_weight(-1)),
        "exp-where-exp2-belongs",
        "One of the two weights is e^(s - m), the other is 2^(s - m). s is base 2: use tl.exp2 for both.",
        exercises=TWO,
    ),
    Cause(
        "ln_for_log2",
        (rules.ln_for_log2,),
        "ln-where-log2-belongs",
        "v is right, but s adds a natural logarithm to a base-2 maximum. Use tl.log2: two equal states raise s by 1.",
    ),
    Cause(
        "exp_in_s",
        (s_rules.s_by_exp, s_rules.s_natural),
        "exp-where-exp2-belongs",
        "v is right, but the sum in s is of e^(s - m). s is base 2 as well: m + log2 of the sum of 2^(s - m).",
    ),
    Cause(
        "natural_throughout",
        (rules.natural,),
        "exp-where-exp2-belongs",
        "s is treated as a natural log-sum-exp throughout. Here it is base 2: tl.exp2 for the weights, tl.log2 for s.",
    ),
    Cause(
        "converted_again",
        (rules.converted,),
        "exp-where-exp2-belongs",
        "s is multiplied by log2 e first, but it is base 2 already. Use it as it comes.",
    ),
    Cause(
        "constant_cut_short",
        rules.SHORT_CONSTANTS,
        "exp-where-exp2-belongs",
        "ln 2 or log2 e has too few digits. Take all of them, 0.6931471805599453 and 1.4426950408889634, or tl.exp2.",
    ),
    Cause(
        "plain_average",
        (rules.averaged,),
        "averaging-the-states",
        "The states are averaged. A state counts as much as its keys weigh: 2^s, over the sum of all 2^s.",
    ),
    Cause(
        "weights_swapped",
        (rules.swapped,),
        "weights-swapped",
        "Each value has the other state's weight: v_a goes with 2^(s_a - m), v_b with 2^(s_b - m).",
        exercises=TWO,
    ),
    Cause(
        "not_normalized",
        (rules.not_normalized,),
        "not-renormalized",
        "The weighted sum is not divided by the sum of the weights, which exceeds 1: the largest alone weighs 1.",
    ),
    Cause(
        "divided_by_count",
        (rules.divided_by_count,),
        "not-renormalized",
        "The weighted sum is divided by the number of states. Divide by the sum of their weights.",
    ),
    Cause(
        "divided_by_count_too",
        (rules.divided_by_count_too,),
        "not-renormalized",
        "v is divided by the number of states as well. The sum of the weights is all that it is divided by.",
    ),
    Cause(
        "weights_inverted",
        (rules.inverted,),
        "in-range",
        "The weights are 2^(m - s), so the lightest state counts most. The exponent is s - m, at most 0.",
        exercises=MANY,
    ),
    Cause(
        "s_as_weight",
        (rules.s_as_weight,),
        "what-a-state-is",
        "The weights are s itself. s is a logarithm: the weight is 2^s, taken relative to the largest.",
    ),
    Cause(
        "no_max_shift",
        (rules.unshifted, rules.guarded(rules.unshifted)),
        "in-range",
        "2^s is computed as it stands: it overflows from s = 128 on and is 0 below -149. Subtract the largest s first.",
        edit=draws.huge,
    ),
    Cause(
        "shifted_by_first",
        (rules.shifted_by(0, False), rules.shifted_by(0, True)),
        "in-range",
        "The first state's s is subtracted, not the largest: 2^(s - s_0) overflows where s_0 is far below, or -inf.",
        edit=draws.uneven,
    ),
    Cause(
        "shifted_by_second",
        (rules.shifted_by(-1, False), rules.shifted_by(-1, True)),
        "in-range",
        "The second state's s is subtracted, not the larger one: 2^(s - s_1) overflows where s_1 is far below.",
        exercises=TWO,
        edit=draws.uneven,
    ),
    Cause(
        "max_from_zero",
        (rules.max_from(0.0), rules.guarded(rules.max_from(0.0))),
        "finite-stand-ins",
        "The running maximum starts at 0, so states with s far below 0 lose all their weight. Start it at -inf.",
        edit=draws.huge,
    ),
    Cause(
        "finite_stand_in",
        rules.STAND_INS,
        "finite-stand-ins",
        "A finite number stands in for -inf, and legal scores lie below it. Start from float('-inf') and guard for it.",
        edit=draws.far_below,
    ),
    Cause(
        "epsilon_in_log",
        tuple(s_rules.epsilon_in_log(10.0**-n) for n in (3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 20, 30, 37, 38)),
        "finite-stand-ins",
        "A small number is added inside the logarithm, which raises every s. Where all are empty, use where instead.",
        edit=draws.some_empty,
    ),
    Cause(
        "s_is_max",
        (s_rules.s_is_max,),
        "what-s-is-not",
        "s is the largest of the states' s, which forgets the keys of the others: add log2 of the sum of the weights.",
    ),
    Cause(
        "s_is_sum",
        (s_rules.s_is_sum,),
        "what-s-is-not",
        "s is the sum of the states' s, which multiplies the denominators. They add: s = m + log2(sum of 2^(s - m)).",
    ),
    Cause(
        "s_is_mean",
        (s_rules.s_is_mean,),
        "what-s-is-not",
        "s is the mean of the states' s. The denominators 2^s add: s = m + log2(sum of 2^(s - m)).",
    ),
    Cause(
        "log_of_the_mean",
        (s_rules.log_of_the_mean,),
        "what-s-is-not",
        "s is log2 of the mean of the states' 2^s. It is that of their sum: two equal states raise s by 1.",
    ),
    Cause(
        "log_forgotten",
        (s_rules.log_forgotten,),
        "in-range",
        "s is the maximum plus the sum of the weights itself. It is their logarithm that is added: m + log2(sum).",
    ),
    Cause(
        "max_not_added",
        (s_rules.max_not_added,),
        "in-range",
        "s lacks the maximum that was subtracted before the weights: s = m + log2(sum of the weights).",
    ),
    Cause(
        "two_empty_states",
        (rules.two_empties_nan, rules.two_empties_nan_in_s),
        "two-empty-states",
        "Where all states are empty, (-inf) - (-inf) or 0 / 0 is NaN. Shift by 0 there, and divide by 1.",
        edit=draws.some_empty,
    ),
    Cause(
        "no_states",
        (rules.no_states_nan,),
        "two-empty-states",
        "Where there is no state at all, the sums stay 0 and 0 / 0 is NaN. Divide by 1 there.",
        exercises=("merge_states",),
        sizes=(("N", 0),),
    ),
    Cause(
        "empty_s_is_zero",
        (rules.empties_weigh_one,),
        "two-empty-states",
        "Where all states are empty, s is 0, and 2^0 weighs 1: an empty state has s = -inf.",
        edit=draws.some_empty,
    ),
    Cause(
        "no_states_s_is_zero",
        (rules.no_states_weigh_one,),
        "two-empty-states",
        "Where there is no state at all, s is 0, and 2^0 weighs 1. No state is an empty state: s = -inf.",
        exercises=("merge_states",),
        sizes=(("N", 0),),
    ),
    Cause(
        "empty_payload",
        (rules.empty_payload, rules.empty_payload_of(0), rules.empty_payload_of(-1)),
        "a-nan-in-an-empty-state",
        "An empty state's NaN reaches the result: 0 * NaN is NaN. Select before you multiply, with where(w > 0, v, 0).",
        edit=draws.poisoned,
    ),
    Cause(
        "nan_filtered",
        (rules.nan_filtered,),
        "a-nan-in-an-empty-state",
        "NaN was taken out of v, whatever its state weighs, and inf was not: 0 * inf is NaN. Use where(w > 0, v, 0).",
        edit=draws.poisoned_with_inf,
    ),
    Cause(
        "empty_states_unguarded",
        (rules.unguarded,),
        "two-empty-states",
        "s = -inf is not guarded: two empty states make (-inf) - (-inf), and one with a NaN payload makes 0 * NaN.",
        edit=draws.empty_and_poisoned,
    ),
    Cause(
        "tail_columns_dropped",
        (rules.tail_dropped,),
        "the-tail-of-d",
        "The columns after the largest power of two within D stay 0. Round the block up, and mask with d < D.",
        sizes=(("D", 12),),
    ),
)

MISTAKES: tuple[Mistake, ...] = tuple(mistake for cause in (*CAUSES, *LOOP_CAUSES) for mistake in cause.mistakes())
