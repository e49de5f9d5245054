"""The misconceptions about partial_attention that are recognized, with what is said to the learner.

The formulas stand in split_formulas.py. Never used by graded code.
"""

from __future__ import annotations

from drills.lessons import split_formulas as formulas
from drills.lessons import triple_draws as draws
from drills.lessons.base import Mistake
from drills.lessons.running import KEY_BLOCKS, NOT_RESCALED, RESCALED_SAYS, UPSIDE_DOWN_FROM_THE_START
from drills.lessons.softmax_formulas import Recurrence
from drills.lessons.softmax_slips import STAND_INS
from drills.lessons.strides import ignoring, with_strides

WHOLE = "every-part-and-nothing-else"
RANGE = "the-running-max"

ZERO_SCALE = "A scale of 0 was taken for none given: `scale or …` does that. Ask whether scale is None."
PADDED_SCALE = "The default scale was computed from D rounded up to a power of two. It is 1/sqrt(D) of the real D."
BALANCED = "The keys were shared out evenly, from n * L // N on. Part n begins at n * T with T = ceil(L / N)."
WHOLE_BLOCKS = (
    "T was rounded up to whole blocks. T = ceil(L / N): the block of a step says nothing of where a part ends."
)
MASKED_FIRST = "Scores masked with -inf were scaled afterwards, and (-inf) * 0 is NaN. Scale first, then mask."
DIVIDED = (
    "The output was divided by l after every block, and carried on as if it were not. Divide once, after the last one."
)
TWICE = "The scale was applied twice, to q and again to the scores, or its root forgotten: 1/sqrt(D), not 1/D."

PARTIAL = (
    Mistake(
        "partial_scale_forgotten",
        "partial_attention",
        formulas.unscaled,
        "The scores were not scaled: multiply q @ k by scale, 1/sqrt(D) unless given.",
        "the-scale",
    ),
    Mistake(
        "partial_scaled_twice",
        "partial_attention",
        formulas.scaled_twice,
        TWICE,
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
        "partial_zero_is_no_scale",
        "partial_attention",
        formulas.zero_is_no_scale,
        ZERO_SCALE,
        "the-scale",
        cases=draws.draw_partial_zero_scale,
    ),
    Mistake(
        "partial_scale_of_padded_d",
        "partial_attention",
        formulas.scale_of_padded_d,
        PADDED_SCALE,
        "the-scale",
        cases=draws.draw_partial_odd_d,
    ),
    Mistake(
        "partial_m_unscaled",
        "partial_attention",
        formulas.m_unscaled,
        "m lacks the scale. It is the largest score, and a score is q @ k times scale: the others count on that.",
        "the-scale",
    ),
    Mistake(
        "partial_one_key_more",
        "partial_attention",
        formulas.one_key_more,
        "T is L // N + 1, one too many where N divides L. Take ceil(L / N): triton.cdiv(L, N).",
        WHOLE,
        cases=draws.draw_partial_divisible,
    ),
    Mistake(
        "partial_max_before_scale",
        "partial_attention",
        formulas.max_before_scale,
        "The max was taken of q @ k, then scaled: with a scale below 0 that is the smallest score. Scale first.",
        "the-scale",
        cases=draws.draw_partial_negative_scale,
    ),
    Mistake(
        "partial_swapped",
        "partial_attention",
        formulas.swapped,
        "m and l are the other way round: m comes first.",
        WHOLE,
    ),
    Mistake(
        "partial_keys_and_values_swapped",
        "partial_attention",
        formulas.keys_and_values_swapped,
        "The keys were taken for the values, and the values for the keys.",
        WHOLE,
    ),
    Mistake(
        "partial_lse_for_m",
        "partial_attention",
        formulas.lse_for_m,
        "m + ln l was returned as m: that is the LSE, which holds l as well. m is the part's largest score alone.",
        "two-numbers-or-one",
    ),
    Mistake("partial_balanced", "partial_attention", formulas.balanced, BALANCED, "keys-that-no-part-covers"),
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
        variants=tuple(formulas.padding_scores_zero(block) for block in KEY_BLOCKS[1:]),
    ),
    Mistake(
        "partial_not_divided",
        "partial_attention",
        formulas.o_not_divided,
        "o was not divided by l. In this lesson o is normalized inside its part.",
        "normalized-or-not",
    ),
    Mistake(
        "partial_divided_twice",
        "partial_attention",
        formulas.o_divided_twice,
        "o was divided by l twice. Once is enough: it is then normalized inside its part.",
        "normalized-or-not",
    ),
    Mistake(
        "partial_divided_every_step",
        "partial_attention",
        formulas.by_rule(Recurrence(divide=True), 16),
        DIVIDED,
        "normalized-or-not",
        cases=draws.draw_long_part,
        variants=tuple(formulas.by_rule(Recurrence(divide=True), block) for block in KEY_BLOCKS if block != 16),
    ),
    Mistake(
        "partial_whole_blocks",
        "partial_attention",
        formulas.WHOLE_BLOCKS[0],
        WHOLE_BLOCKS,
        "keys-that-no-part-covers",
        variants=formulas.WHOLE_BLOCKS[1:],
    ),
    Mistake(
        "partial_masked_then_scaled",
        "partial_attention",
        formulas.nan_at_scale_zero,
        MASKED_FIRST,
        "the-scale",
        cases=draws.draw_partial_zero_scale,
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
    Mistake(
        "partial_rest_to_the_last",
        "partial_attention",
        formulas.rest_to_the_last,
        "T was rounded down and the last part takes the rest. T = ceil(L / N), so that the last part is the short one.",
        "keys-that-no-part-covers",
    ),
    Mistake(
        "partial_past_its_end",
        "partial_attention",
        formulas.past_its_end(16),
        "A part went on past its own end, so that keys of the next part count twice. Mask with key < end.",
        "keys-that-no-part-covers",
        variants=tuple(formulas.past_its_end(block) for block in (None, *KEY_BLOCKS[1:])),
    ),
    Mistake(
        "partial_base_2",
        "partial_attention",
        formulas.base_2,
        "exp2 was taken of natural scores. Use exp here, or fold log2(e) into the scale and bring m back.",
        "m-in-the-wrong-base",
    ),
    Mistake(
        "partial_heads_first",
        "partial_attention",
        formulas.HEADS_FIRST[0],
        "k or v was read as [H, L, D]. Key n of head h starts at (n * H + h) * D.",
        WHOLE,
        variants=formulas.HEADS_FIRST[1:],
    ),
    Mistake(
        "partial_head_missing",
        "partial_attention",
        formulas.keys_of_head_0,
        "Every head read the keys of head 0. Key n of head h starts at (n * H + h) * D.",
        WHOLE,
    ),
    Mistake(
        "partial_keys_as_values",
        "partial_attention",
        formulas.keys_as_values,
        "The keys were read again where the values should be.",
        WHOLE,
    ),
    Mistake(
        "partial_stored_heads_first",
        "partial_attention",
        formulas.stored_heads_first,
        "The results were stored as [H, N]. Part n of head h is row n * H + h.",
        WHOLE,
    ),
    Mistake(
        "partial_strides_ignored",
        "partial_attention",
        says="q, k or v was read as if it were contiguous: use its strides, or copy it with contiguous() first.",
        anchor=WHOLE,
        cases=with_strides(draws.draw_partial),
        **ignoring(formulas.right, (0,), (1,), (2,), (1, 2)),
    ),
    Mistake(
        "partial_no_shift",
        "partial_attention",
        formulas.by_rule(Recurrence(shift=False, single=True), 16),
        "The max was not subtracted: exp overflows float32 from 88.8 on, and l is relative to m. Take exp(x - m).",
        RANGE,
        variants=tuple(
            formulas.by_rule(Recurrence(shift=False, single=True), 16, m_kept, guarded)
            for m_kept in (True, False)
            for guarded in (True, False)
        )[1:],
    ),
    Mistake(
        "partial_start_zero",
        "partial_attention",
        formulas.by_rule(Recurrence(start=0.0, single=True), 16),
        "The running max starts at 0, which is too high where every score is negative. Start at -inf.",
        RANGE,
        variants=(formulas.by_rule(Recurrence(start=0.0, single=True), 16, guarded=False),),
    ),
    Mistake(
        "partial_stand_in",
        "partial_attention",
        formulas.by_rule(Recurrence(start=STAND_INS[0]), 16),
        "A finite number stands in for -inf: it is the m of a part with no keys, and legal scores lie below it.",
        "a-part-with-no-keys",
        cases=draws.draw_partial_empty,
        variants=tuple(formulas.by_rule(Recurrence(start=start), 16) for start in STAND_INS[1:]),
    ),
    *(
        Mistake(
            f"partial_{name}",
            "partial_attention",
            formulas.by_rule(rule, 16),
            RESCALED_SAYS[name] + "exp(m_old - m_new).",
            RANGE,
            cases=draws.draw_long_part,
            variants=tuple(
                formulas.by_rule(one, block)
                for one in ((rule, UPSIDE_DOWN_FROM_THE_START) if name == "factor_upside_down" else (rule,))
                for block in (1, 16, 32, 64, 128)
            ),
        )
        for name, rule in NOT_RESCALED.items()
    ),
)
