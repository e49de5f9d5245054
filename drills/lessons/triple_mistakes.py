"""The misconceptions about (m, l, o) that are recognized, with what is said to the learner.

The formulas stand in triple_formulas.py. Never used by graded code.
"""

from __future__ import annotations

from drills.lessons import triple_draws as draws
from drills.lessons import triple_formulas as formulas
from drills.lessons.base import Mistake
from drills.lessons.triple_formulas import on_all, on_pair

BLOCKS = (2, 4, 8, 16, 32, 64, 128)
"""Keys a step that a kernel may take."""

STEPS = (1, 2, 4, 8, 16, 32)
"""Parts a step that a merge with a running max may take."""


def _about_both(name: str, rule, says: str, anchor: str, cases=None, other=None, in_steps=None) -> tuple[Mistake, ...]:
    """One wrong rule as a mistake of merge_pair and of merge_mlo.

    other: another form of it, seen in merge_pair. in_steps: parts a step → the rule of a merge_mlo that goes in steps.
    """
    for_pair = cases and (lambda rng: draws.as_pair(*cases(rng, 2)))
    for_all = cases and (lambda rng: cases(rng, 4))
    pair_forms = (on_pair(other),) if other else ()
    all_forms = tuple(on_all(in_steps(step)) for step in STEPS) if in_steps else ()
    return (
        Mistake(f"pair_{name}", "merge_pair", on_pair(rule), says, anchor, for_pair, variants=pair_forms),
        Mistake(f"mlo_{name}", "merge_mlo", on_all(rule), says, anchor, for_all, variants=all_forms),
    )


PARTIAL = (
    Mistake(
        "partial_scale_forgotten",
        "partial_attention",
        formulas.unscaled,
        "The scores were not scaled: multiply q · k by scale, 1/sqrt(D) unless given.",
        "the-scale",
    ),
    Mistake(
        "partial_scaled_twice",
        "partial_attention",
        formulas.scaled_twice,
        "The scale was applied twice, to q and again to the scores.",
        "the-scale",
    ),
    Mistake(
        "partial_scale_ignored",
        "partial_attention",
        formulas.default_scale_always,
        "The scale given was ignored: 1/sqrt(D) is only the default.",
        "the-scale",
        cases=draws.draw_partial_scaled,
    ),
    Mistake(
        "partial_tail_dropped",
        "partial_attention",
        formulas.rounded_down,
        "T was rounded down, so that the last keys belong to no part. T = ceil(L / N).",
        "keys-that-no-part-covers",
    ),
    Mistake(
        "partial_padding_counted",
        "partial_attention",
        formulas.padding_scores_zero(4),
        "Keys past the part's end scored 0 and counted. Set their score to -inf after the product.",
        "keys-past-the-parts-end",
        variants=tuple(formulas.padding_scores_zero(block) for block in BLOCKS),
    ),
    Mistake(
        "partial_not_divided",
        "partial_attention",
        formulas.o_not_divided,
        "o was not divided by l. In this lesson o is normalized inside its part.",
        "normalized-or-not",
    ),
    Mistake(
        "partial_m_base_2",
        "partial_attention",
        formulas.m_in_base_2,
        "m is in base 2: with log2(e) folded into the scale, multiply m by ln 2 before you store it.",
        "m-in-the-wrong-base",
    ),
    Mistake(
        "partial_every_part_whole",
        "partial_attention",
        formulas.every_part_whole,
        "Every part went over all the keys. Part n begins at key n * T and ends before (n + 1) * T.",
        "keys-that-no-part-covers",
    ),
    Mistake(
        "partial_interleaved",
        "partial_attention",
        formulas.interleaved,
        "Part n took every N-th key. A part is a run of T neighboring keys.",
        "keys-that-no-part-covers",
    ),
    Mistake(
        "partial_empty_nan",
        "partial_attention",
        formulas.empty_part_nan,
        "A part with no keys gave 0 / 0. Its o is 0: divide by 1 where l is 0.",
        "a-part-with-no-keys",
        cases=draws.draw_partial_empty,
    ),
)

MERGES = (
    *_about_both(
        "average",
        formulas.averaged,
        "The parts were averaged. Part n weighs exp(m_n - max m) * l_n.",
        "the-plain-average",
    ),
    *_about_both(
        "without_l",
        formulas.without_l,
        "The weight lacks l: a part with many keys counts for more. It is exp(m_n - max m) * l_n.",
        "a-weight-without-l",
        other=formulas.without_l_at_all,
    ),
    *_about_both(
        "without_exp",
        formulas.without_exp,
        "The weight lacks exp(m_n - max m): each l is relative to its own part's max.",
        "a-weight-without-exp",
    ),
    *_about_both(
        "numerator_without_l",
        formulas.numerator_without_l,
        "The numerator lacks l: o is normalized, so that exp(m_n - max m) * l_n * o_n is what adds up.",
        "normalized-or-not",
    ),
    *_about_both(
        "not_divided",
        formulas.not_divided,
        "The weighted sum was not divided by the sum of the weights.",
        "not-divided",
    ),
    *_about_both(
        "base_2",
        formulas.base_2,
        "exp2 stands where exp belongs: m is a natural score here.",
        "m-in-the-wrong-base",
    ),
    *_about_both(
        "two_empty_nan",
        formulas.two_empty_nan,
        "Where all parts are empty, (-inf) - (-inf) or 0 / 0 is NaN. Shift by 0 there, and divide by 1.",
        "two-empty-parts",
        cases=draws.empty_head,
        in_steps=formulas.first_empty_nan,
    ),
    *_about_both(
        "empty_payload",
        formulas.empty_payload,
        "The o of an empty part reached the result: 0 * NaN is NaN. Replace o by 0 where its weight is 0.",
        "the-payload-of-an-empty-part",
        cases=draws.one_empty,
    ),
    *_about_both(
        "unguarded",
        formulas.unguarded,
        "Neither -inf nor the payload of an empty part is guarded: both make NaN.",
        "the-payload-of-an-empty-part",
        cases=draws.both_kinds_of_empty,
        in_steps=formulas.unguarded_first,
    ),
)

ONLY_PAIR = (
    Mistake(
        "pair_swapped",
        "merge_pair",
        on_pair(formulas.swapped),
        "The two weights are swapped: each part has the other's.",
        "not-divided",
    ),
    Mistake(
        "pair_l_not_rescaled",
        "merge_pair",
        on_pair(formulas.l_not_rescaled),
        "l is l_a + l_b. Each is relative to its own m: l = l_a * exp(m_a - m) + l_b * exp(m_b - m).",
        "a-weight-without-exp",
    ),
    Mistake(
        "pair_l_without_l",
        "merge_pair",
        on_pair(formulas.l_without_l),
        "The merged l lacks the parts' own l: l = l_a * exp(m_a - m) + l_b * exp(m_b - m).",
        "a-weight-without-l",
    ),
    Mistake(
        "pair_zero_by_zero",
        "merge_pair",
        on_pair(formulas.zero_by_zero),
        "l is 0 for two empty parts, and o became 0 / 0. Divide by 1 where l is 0.",
        "two-empty-parts",
        cases=lambda rng: draws.as_pair(*draws.empty_head(rng, 2)),
    ),
)

ONLY_ALL = (
    Mistake(
        "mlo_divided_by_count",
        "merge_mlo",
        on_all(formulas.divided_by_count),
        "The weighted sum was divided by N. Divide by the sum of the weights.",
        "not-divided",
    ),
    Mistake(
        "mlo_last_dropped",
        "merge_mlo",
        on_all(formulas.last_dropped),
        "The last part is missing from the result.",
        "every-part-and-nothing-else",
    ),
    Mistake(
        "mlo_heads_first",
        "merge_mlo",
        on_all(formulas.heads_first),
        "m, l and o were read as [H, N]. Part n of head h is row n * H + h.",
        "every-part-and-nothing-else",
    ),
)

MISTAKES = (*PARTIAL, *MERGES, *ONLY_PAIR, *ONLY_ALL)
