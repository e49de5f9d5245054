"""The misconceptions about partial_states that are recognized, and the sentences that l3's exercises share.

The formulas stand in state_formulas.py and lse_loop_formulas.py. Never used by graded code.
"""

from __future__ import annotations

import functools

import torch

from drills.lessons import lse_draws as draws
from drills.lessons import lse_formulas as formulas
from drills.lessons import lse_loop_formulas as loops
from drills.lessons import split_formulas, state_formulas
from drills.lessons.base import Mistake
from drills.lessons.lse_formulas import LN_2
from drills.lessons.oracle import LOG2_E
from drills.lessons.running import KEY_BLOCKS, NOT_RESCALED, RESCALED_SAYS, UPSIDE_DOWN_FROM_THE_START
from drills.lessons.softmax_formulas import Recurrence
from drills.lessons.split_mistakes import (
    BALANCED,
    DIVIDED,
    MASKED_FIRST,
    PADDED_SCALE,
    TWICE,
    WHOLE_BLOCKS,
    ZERO_SCALE,
)
from drills.lessons.state_formulas import states
from drills.lessons.strides import ignoring, with_strides

NAN = ("(-inf) - (-inf) is NaN. Subtract 0 where the max is -inf.", "a-row-with-no-score")
PAYLOAD = ("The output of an empty row reached the result: 0 * NaN is NaN. Use 0 where the weight is 0.", "empty-rows")
EPSILON = (
    "A small number was added under the logarithm. It is a bias, not a guard: the LSE of an empty row is -inf.",
    "an-epsilon-in-the-logarithm",
)
EMPTY_ZERO = (
    "Where there is no score, 0 was returned. It is -inf, the logarithm of no weight at all; 0 is that of one.",
    "a-row-with-no-score",
)
WITHOUT_M = ("The max is missing: l is relative to it, so the LSE is m plus the logarithm of l.", "lse-without-m")
M_PLUS_L = ("m + l was returned. The LSE is m plus the logarithm of l.", "lse-without-m")
STEPS = (16, 1, 32, 64, 128)
"""Keys a step of a kernel that carries its sums wrongly."""

ADDRESS, RANGE = "the-layout", "the-running-max"
STRIDES = "was read as if it were contiguous: use its strides, or copy it with contiguous() first."
UNSHIFTED, FROM_ZERO = Recurrence(shift=False, single=True), Recurrence(start=0.0, single=True)


def _m_then(log: str):
    return lambda m, l: m + getattr(torch, log)(torch.where(l == 0, 1.0, l))


_partial = functools.partial(Mistake, exercise="partial_states")


def _lifted(name: str, *splits, says: str, anchor: str, cases=None) -> Mistake:
    """A misconception of l2's partial_attention, which this exercise shares."""
    first, *others = (loops.lifted(split) for split in splits)
    return _partial(f"states_{name}", formula=first, says=says, anchor=anchor, cases=cases, variants=tuple(others))


def _not_carried(name: str, rule: Recurrence) -> Mistake:
    """The old sums carried over as they should not be."""
    rules = (rule, UPSIDE_DOWN_FROM_THE_START) if name == "factor_upside_down" else (rule,)
    first, *others = (loops.rule_of_states(one, block) for one in rules for block in STEPS)
    return _partial(f"states_{name}", formula=first, says=RESCALED_SAYS[name] + "exp2(m_old - m_new).", anchor=RANGE,
                    cases=draws.draw_long_part, variants=tuple(others))  # fmt: skip


PARTIAL = (
    _partial("states_natural_s", formula=states(s_factor=1.0), anchor="ln-or-log2",
             says="s is natural. It must be base 2: log2(e) in the scale, exp2 and log2."),
    _partial("states_s_converted_twice", formula=states(s_factor=LOG2_E * LOG2_E), anchor="converted-twice",
             says="s was converted twice: with log2(e) in the scale, m + log2(l) is in base 2 already.",
             variants=(states(log=lambda m, l: m * LOG2_E * LOG2_E + formulas.log_of(l, torch.log2)),)),
    _partial("states_log2e_missing", formula=states(score_factor=LN_2), anchor="exp2-of-a-natural-score",
             says="exp2 was taken of natural scores. Fold log2(e) into the scale."),
    _partial("states_log2e_twice", formula=states(score_factor=LOG2_E), anchor="converted-twice",
             says="log2(e) was folded into the scale twice, or exp was taken of scores that carry it already.",
             variants=(states(score_factor=LOG2_E, s_factor=1.0),
                       states(score_factor=LOG2_E, log=_m_then("log2")))),
    _partial("states_scale_forgotten", formula=states(given=1.0), anchor="the-scale",
             says="The scores were not scaled: multiply q @ k by scale, 1/sqrt(D) unless given."),
    _partial("states_m_not_converted", formula=states(log=_m_then("log2")), anchor="the-max-stays-natural",
             says="log2 of l was added to a natural m. The scores carry log2(e), and so must the max."),
    _partial("states_ln_of_l", formula=states(log=lambda m, l: m * LOG2_E + formulas.log_of(l)), anchor="ln-or-log2",
             says="ln of l was added to an m in base 2. Use log2."),
    _partial("states_without_m", formula=states(log=lambda m, l: torch.log2(l)), says=WITHOUT_M[0],
             anchor=WITHOUT_M[1]),
    _partial("states_m_plus_l", formula=states(log=lambda m, l: m * LOG2_E + l), says=M_PLUS_L[0], anchor=M_PLUS_L[1]),
    _partial("states_v_not_divided", formula=state_formulas.v_not_divided, anchor="the-scale",
             says="v was not divided by l. A state's v is normalized inside its part."),
    _partial("states_v_divided_twice", formula=state_formulas.v_divided_again(lambda l, s: 1 / l), anchor="the-scale",
             says="v was divided by l twice: exp2(score - s) is divided by it already. Once is enough."),
    _partial("states_v_over_s", formula=state_formulas.v_divided_again(lambda l, s: l / s), anchor="the-scale",
             says="v was divided by s, or by its log2 of l. Divide by l itself; s is its logarithm.",
             variants=(state_formulas.v_divided_again(lambda l, s: l / torch.log2(l)),
                       state_formulas.v_divided_again(lambda l, s: l / (s * LN_2)))),
    _partial("states_tail_dropped", formula=state_formulas.rounded_down, anchor="keys-that-no-part-covers",
             says="T was rounded down, so that the last keys belong to no part. T = ceil(L / N)."),
    _partial("states_padding_counted", formula=state_formulas.padding_scores_zero(4), anchor="keys-that-no-part-covers",
             says="Keys past the part's end scored 0 and counted. Set their score to -inf after the product.",
             variants=tuple(state_formulas.padding_scores_zero(block) for block in KEY_BLOCKS[1:])),
    _partial("states_epsilon", cases=draws.draw_partial_empty, says=EPSILON[0], anchor=EPSILON[1],
             formula=states(log=lambda m, l: torch.where(l == 0, 0.0, m * LOG2_E) + torch.log2(l + 1e-12))),
    _partial("states_empty_zero", cases=draws.draw_partial_empty, says=EMPTY_ZERO[0], anchor=EMPTY_ZERO[1],
             formula=states(log=lambda m, l: torch.where(l == 0, 0.0, m * LOG2_E + torch.log2(l)))),
    _partial("states_empty_nan", formula=state_formulas.empty_part_nan, says=NAN[0], anchor=NAN[1],
             cases=draws.draw_partial_empty, variants=(state_formulas.empty_state_nan,)),
    _partial("states_scale_ignored", formula=lambda *a: loops.states_right(*a[:4]), cases=draws.draw_partial_scaled,
             anchor="the-scale", says="The scale given was ignored: 1/sqrt(D) is only the default."),
    _lifted("scaled_twice", split_formulas.scaled_twice, says=TWICE, anchor="the-scale"),
    _lifted("rest_to_the_last", split_formulas.rest_to_the_last, anchor="keys-that-no-part-covers",
            says="T was rounded down and the last part takes the rest. T = ceil(L / N): the last is the short one."),
    _lifted("past_its_end", *(split_formulas.past_its_end(block) for block in (16, None, *KEY_BLOCKS[1:])),
            anchor="keys-that-no-part-covers",
            says="A part went on past its own end, so that keys of the next part count twice. Mask with key < end."),
    _lifted("every_part_whole", split_formulas.every_part_whole, anchor="keys-that-no-part-covers",
            says="Every part went over all the keys. Part n begins at key n * T and ends before (n + 1) * T."),
    _lifted("heads_first", *split_formulas.HEADS_FIRST, anchor=ADDRESS,
            says="k or v was read as [H, L, D]. Key n of head h starts at (n * H + h) * D."),
    _lifted("zero_is_no_scale", split_formulas.zero_is_no_scale, says=ZERO_SCALE, anchor="the-scale",
            cases=draws.draw_partial_zero_scale),
    _lifted("scale_of_padded_d", split_formulas.scale_of_padded_d, says=PADDED_SCALE, anchor="the-scale",
            cases=draws.draw_partial_odd_d),
    _lifted("whole_blocks", *split_formulas.WHOLE_BLOCKS, says=WHOLE_BLOCKS, anchor="keys-that-no-part-covers"),
    _partial("states_divided_every_step", formula=loops.rule_of_states(Recurrence(divide=True), STEPS[0]), says=DIVIDED,
             anchor=RANGE, cases=draws.draw_long_part,
             variants=tuple(loops.rule_of_states(Recurrence(divide=True), block) for block in (*STEPS[1:], 2, 4, 8))),
    _partial("states_masked_then_scaled", formula=state_formulas.nan_at_scale_zero, says=MASKED_FIRST,
             anchor="the-scale", cases=draws.draw_partial_zero_scale),
    _partial("states_log2e_in_the_default_only", formula=state_formulas.log2e_in_the_default_only, anchor="the-scale",
             says="log2(e) was folded into the default scale alone. A scale that is given needs it as well.",
             cases=draws.draw_partial_scaled),
    _lifted("balanced", split_formulas.balanced, says=BALANCED, anchor="keys-that-no-part-covers"),
    _lifted("head_missing", split_formulas.keys_of_head_0, anchor=ADDRESS,
            says="Every head read the keys of head 0. Key n of head h starts at (n * H + h) * D."),
    _lifted("keys_as_values", split_formulas.keys_as_values, anchor=ADDRESS,
            says="The keys were read again where the values should be."),
    _partial("states_q_of_position_0", formula=loops.q_of_position_0, anchor=ADDRESS,
             says="Every position read the q of position 0. Head h of position i starts at (i * H + h) * D."),
    _partial("states_parts_first", formula=loops.stored_parts_first, anchor=ADDRESS,
             says="The results were stored as [N, S, H]. Position i, part n, head h is row (i * N + n) * H + h."),
    _partial("states_stored_heads_first", formula=loops.stored_heads_first, anchor=ADDRESS,
             says="The results were stored as [S, H, N]. Position i, part n, head h is row (i * N + n) * H + h."),
    _partial("states_strides_ignored", says=f"q, k or v {STRIDES}", anchor=ADDRESS,
             cases=with_strides(draws.draw_partial), **ignoring(loops.states_right, (0,), (1,), (2,), (0, 1), (1, 2))),
    _partial("states_no_shift", formula=loops.rule_of_states(UNSHIFTED, 16), anchor="no-max-shift",
             says="The max was not subtracted: exp2 overflows from 128 on, is 0 below -150. Take exp2(x - m), add m.",
             cases=draws.draw_far_keys,
             variants=(loops.rule_of_states(UNSHIFTED, 16, guarded=False),)),
    _partial("states_start_zero", formula=loops.rule_of_states(FROM_ZERO, 16), anchor=RANGE, cases=draws.draw_far_keys,
             says="The running max starts at 0: far below it, every weight is 0. Start at -inf.",
             variants=(loops.rule_of_states(FROM_ZERO, 16, guarded=False),)),
    *(_not_carried(name, rule) for name, rule in NOT_RESCALED.items()),
)  # fmt: skip
