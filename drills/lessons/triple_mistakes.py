"""The misconceptions about merging (m, l, o) that are recognized, with what is said to the learner.

The formulas stand in triple_formulas.py; split_mistakes.py has those of partial_attention. Never used by graded code.
"""

from __future__ import annotations

from drills.lessons import triple_draws as draws
from drills.lessons import triple_formulas as formulas
from drills.lessons.base import Mistake
from drills.lessons.split_mistakes import PARTIAL
from drills.lessons.triple_formulas import on_all, on_pair
from drills.lessons.triple_loop_mistakes import LOOPS

STEPS = (1, 2, 4, 8, 16, 32)
"""Parts a step that a merge with a running max may take."""


def _about_both(name: str, rule, says: str, anchor: str, cases=None, others=(), in_steps=None) -> tuple[Mistake, ...]:
    """One wrong rule as a mistake of merge_pair and of merge_mlo.

    others: other forms of it, seen in merge_pair. in_steps: parts a step → the rule of a merge_mlo that goes in steps.
    """
    for_pair = cases and (lambda rng: draws.as_pair(*cases(rng, 2)))
    for_all = cases and (lambda rng: cases(rng, 4))
    pair_forms = tuple(on_pair(other) for other in others)
    all_forms = tuple(on_all(in_steps(step)) for step in STEPS) if in_steps else ()
    return (
        Mistake(f"pair_{name}", "merge_pair", on_pair(rule), says, anchor, for_pair, variants=pair_forms),
        Mistake(f"mlo_{name}", "merge_mlo", on_all(rule), says, anchor, for_all, variants=all_forms),
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
        others=(formulas.without_l_at_all,),
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
        "divided_by_bare_l",
        formulas.divided_by_bare_l,
        "The weighted sum was divided by the sum of the bare l. Divide by that of the weights, exp(m_n - max m) * l_n.",
        "not-divided",
    ),
    *_about_both(
        "over_l",
        formulas.over_l,
        "exp(m_n - max m) was divided by l_n. It is multiplied by it: o is normalized, and weighs as much as its keys.",
        "a-weight-without-l",
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
        others=(formulas.payload_of(0), formulas.payload_of(1)),
    ),
    *_about_both(
        "nan_filtered",
        formulas.nan_filtered,
        "NaN was taken out of o, whatever its part weighs, inf was not: 0 * inf is NaN. Use 0 where the weight is 0.",
        "the-payload-of-an-empty-part",
        cases=draws.inf_payload,
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
        "pair_l_swapped",
        "merge_pair",
        on_pair(formulas.l_swapped),
        "Each exp(m - max) was multiplied by the other part's l: m_a goes with l_a, m_b with l_b.",
        "a-weight-without-l",
    ),
    Mistake(
        "pair_l_is_one",
        "merge_pair",
        on_pair(formulas.l_is_one),
        "l was returned as 1. o is normalized, l is not: l_a * exp(m_a - m) + l_b * exp(m_b - m), which the next merge "
        "needs.",
        "normalized-or-not",
    ),
    Mistake(
        "pair_empty_wins",
        "merge_pair",
        on_pair(formulas.empty_wins(0)),
        "Where one part is empty, the result was taken for empty. It is neutral: the result is the other part.",
        "two-empty-parts",
        cases=lambda rng: draws.as_pair(*draws.one_empty(rng, 2)),
        variants=(on_pair(formulas.empty_wins(1)), on_pair(formulas.empty_wins(0, 1))),
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
        on_all(formulas.only(slice(None, -1))),
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

MISTAKES = (*PARTIAL, *MERGES, *ONLY_PAIR, *ONLY_ALL, *LOOPS)
