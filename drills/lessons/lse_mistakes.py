"""The misconceptions about LSEs and their bases that are recognized, with what is said to the learner.

The formulas stand in lse_formulas.py; lse_loop_mistakes.py has those of the loop and the range, state_mistakes.py those
of partial_states. Never used by graded code.
"""

from __future__ import annotations

import functools

import torch

from drills.lessons import lse_draws as draws
from drills.lessons import lse_formulas as formulas
from drills.lessons.base import Mistake
from drills.lessons.lse_formulas import LN_2, on_states
from drills.lessons.lse_loop_mistakes import LOOPS, no_guard
from drills.lessons.oracle import LOG2_E
from drills.lessons.state_mistakes import EMPTY_ZERO, EPSILON, M_PLUS_L, NAN, PARTIAL, PAYLOAD, WITHOUT_M

_lse = functools.partial(Mistake, exercise="lse")
_lse2 = functools.partial(Mistake, exercise="lse2")
_merge = functools.partial(Mistake, exercise="merge_natural")
_to = functools.partial(Mistake, exercise="to_flashinfer")

LSE = (
    _lse("lse_base_2", formula=formulas.times(LOG2_E), anchor="ln-or-log2",
         says="The result is in base 2. lse is natural: ln and exp throughout."),
    _lse("lse_log2_of_l", formula=formulas.mixed(1.0, torch.log2), anchor="ln-or-log2",
         says="m is natural, but log2 of l was added to it. Both terms must be in one base: ln here."),
    _lse("lse_ln_2_upside_down", formula=formulas.ln_2_upside_down, anchor="multiplied-by-ln-2",
         says="log2 of l was divided by ln 2. The other way round: ln of l is log2 of l times ln 2."),
    _lse("lse_empty_zero", formula=formulas.empty_rows_zero(), says=EMPTY_ZERO[0], anchor=EMPTY_ZERO[1],
         cases=draws.draw_masked_row),
    _lse("lse_without_m", formula=formulas.without_m(), says=WITHOUT_M[0], anchor=WITHOUT_M[1]),
    _lse("lse_m_plus_l", formula=formulas.m_plus_l(), says=M_PLUS_L[0], anchor=M_PLUS_L[1]),
    _lse("lse_no_shift", formula=formulas.unshifted(), anchor="no-max-shift", cases=draws.draw_far_rows,
         says="The max was not subtracted: exp overflows from 88.8 on and is 0 below -104. Take exp(x - m), add m."),
    _lse("lse_epsilon", formula=formulas.with_epsilon(), says=EPSILON[0], anchor=EPSILON[1],
         cases=draws.draw_masked_row, variants=formulas.epsilons()),
    _lse("lse_nan", formula=formulas.empty_rows_nan(), says=NAN[0], anchor=NAN[1],
         cases=draws.draw_masked_first, variants=no_guard(1.0)),
)  # fmt: skip

LSE2 = (
    _lse2("lse2_natural", formula=formulas.times(1.0), anchor="ln-or-log2",
          says="The result is natural. lse2 is in base 2: it is lse divided by ln 2."),
    _lse2("lse2_times_ln2", formula=formulas.times(LN_2), anchor="multiplied-by-ln-2",
          says="The natural LSE was multiplied by ln 2. To get base 2, divide by it (or multiply by log2(e))."),
    _lse2("lse2_converted_twice", formula=formulas.times(LOG2_E * LOG2_E), anchor="converted-twice",
          says="log2(e) was applied twice: once to the scores and once to a result that was in base 2 already."),
    _lse2("lse2_unscaled", formula=formulas.unscaled_exp2, anchor="exp2-of-a-natural-score",
          says="exp2 was taken of natural scores. e^x is 2^(x * log2(e)): scale the scores first."),
    _lse2("lse2_exp_of_base_2", formula=formulas.exp_of_base_2(), anchor="exp2-of-a-natural-score",
          says="exp was taken of scores that carry log2(e) already. For base-2 scores it is exp2.",
          variants=(formulas.exp_of_base_2(torch.log),)),
    _lse2("lse2_empty_zero", formula=formulas.empty_rows_zero(LOG2_E), says=EMPTY_ZERO[0], anchor=EMPTY_ZERO[1],
          cases=draws.draw_masked_row),
    _lse2("lse2_m_not_converted", formula=formulas.mixed(1.0, torch.log2), anchor="the-max-stays-natural",
          says="log2 of l was added to a natural m. The scores were scaled by log2(e), and so must the max be."),
    _lse2("lse2_ln_of_l", formula=formulas.mixed(LOG2_E), anchor="ln-or-log2",
          says="ln of l was added to an m in base 2. Use log2."),
    _lse2("lse2_without_m", formula=formulas.without_m(torch.log2), says=WITHOUT_M[0], anchor=WITHOUT_M[1]),
    _lse2("lse2_m_plus_l", formula=formulas.m_plus_l(LOG2_E), says=M_PLUS_L[0], anchor=M_PLUS_L[1]),
    _lse2("lse2_no_shift", formula=formulas.unshifted(torch.log2), anchor="no-max-shift", cases=draws.draw_far_rows,
          says="The max was not subtracted: exp2 overflows from 128 on and is 0 below -150. Take exp2(x - m), add m."),
    _lse2("lse2_epsilon", formula=formulas.with_epsilon(torch.log2), says=EPSILON[0], anchor=EPSILON[1],
          cases=draws.draw_masked_row, variants=formulas.epsilons(torch.log2)),
    _lse2("lse2_nan", formula=formulas.empty_rows_nan(LOG2_E), says=NAN[0], anchor=NAN[1],
          cases=draws.draw_masked_first, variants=no_guard(LOG2_E)),
)  # fmt: skip

MERGE = (
    _merge("natural_as_base_2", formula=on_states(formulas.as_base_2), anchor="exp2-on-a-natural-lse",
           says="Natural LSEs were merged as if they were base 2. Use exp and ln here."),
    _merge("natural_exp2_weights", formula=on_states(formulas.exp2_weights), anchor="exp2-on-a-natural-lse",
           says="The weights are 2^lse. That pulls them together: for a natural LSE they are e^lse.",
           variants=(on_states(formulas.exp2_weights_throughout),)),
    _merge("natural_log2", formula=on_states(formulas.log2_of_the_sum), anchor="ln-or-log2",
           says="The merged LSE took log2 of the sum of the weights. Natural in, natural out: ln."),
    _merge("natural_lse_in_base_2", formula=on_states(formulas.lse_in_base_2), anchor="converted-twice",
           says="The merged LSE was converted to base 2. merge_natural returns it natural."),
    _merge("natural_average", formula=on_states(formulas.averaged), anchor="averaged-or-swapped",
           says="The two outputs were averaged. Each weighs exp(lse)."),
    _merge("natural_swapped", formula=on_states(formulas.swapped), anchor="averaged-or-swapped",
           says="The two weights are swapped: each output has the other's."),
    _merge("natural_not_divided", formula=on_states(formulas.not_divided), anchor="averaged-or-swapped",
           says="The weighted sum was not divided by the sum of the weights."),
    _merge("natural_lse_is_max", formula=on_states(formulas.lse_is_max), anchor="lse-without-m",
           says="The merged LSE is only the larger of the two. Add ln(1 + exp(min - max))."),
    _merge("natural_lse_is_sum", formula=on_states(formulas.lse_is_sum), anchor="lse-without-m",
           says="The two LSEs were added, which multiplies the denominators. They add under the logarithm."),
    _merge("natural_no_shift", formula=on_states(formulas.unshifted_merge), anchor="no-max-shift",
           cases=draws.draw_far_pair, says="exp(lse) was taken as it is: too large, or 0. Subtract the larger LSE.",
           variants=(on_states(formulas.unshifted_merge_guarded),)),
    _merge("natural_two_empty_nan", formula=on_states(formulas.two_empty_nan), says=NAN[0], anchor=NAN[1],
           cases=draws.draw_two_empty, 
           variants=(on_states(formulas.two_empty_nan_in_lse), on_states(formulas.zero_by_zero))),
    _merge("natural_empty_payload", formula=on_states(formulas.empty_payload), says=PAYLOAD[0], anchor=PAYLOAD[1],
           cases=draws.draw_payload,
           variants=(on_states(formulas.payload_of(0)), on_states(formulas.payload_of(1)))),
    _merge("natural_nan_filtered", formula=on_states(formulas.nan_filtered), anchor=PAYLOAD[1],
           cases=draws.draw_inf_payload,
           says="NaN was taken out of o, whatever its side weighs, and inf was not: 0 * inf is NaN. Use 0 where "
           "the weight is 0."),
    _merge("natural_heads_first", formula=on_states(formulas.heads_first), anchor="the-layout",
           says="The LSEs were addressed as [H, S]. That of position i, head h is element i * H + h."),
    _merge("natural_empty_wins", formula=on_states(formulas.empty_wins(0)), anchor=PAYLOAD[1], cases=draws.draw_payload,
           says="Where one side is empty, the result was taken for empty. It is neutral: the result is the other side.",
           variants=(on_states(formulas.empty_wins(1)), on_states(formulas.empty_wins(0, 1)))),
    _merge("natural_unguarded", formula=on_states(formulas.unguarded), anchor=PAYLOAD[1], cases=draws.draw_both_kinds,
           says="Neither -inf nor the payload of an empty row is guarded: both make NaN.",
           variants=(on_states(formulas.unguarded_in_v),)),
)  # fmt: skip

TO_FLASHINFER = (
    _to("to_natural", formula=lambda lse: (formulas.converted(lse, 1.0),), anchor="ln-or-log2",
        says="The result is natural still. FlashInfer's s is in base 2: divide by ln 2."),
    _to("to_times_ln2", formula=lambda lse: (formulas.converted(lse, LN_2),), anchor="multiplied-by-ln-2",
        says="The LSE was multiplied by ln 2. To get base 2, divide by it (or multiply by log2(e))."),
    _to("to_converted_twice", formula=lambda lse: (formulas.converted(lse, LOG2_E * LOG2_E),),
        anchor="converted-twice", says="log2(e) was applied twice."),
    _to("to_inf_kept", formula=formulas.inf_kept, anchor="plus-inf-is-empty-too", cases=draws.draw_lse_with_empty,
        says="+inf came through. FlashAttention marks an empty row by +inf or -inf; FlashInfer's is -inf."),
    _to("to_empty_zero", formula=formulas.empty_as(0.0), anchor="plus-inf-is-empty-too",
        cases=draws.draw_lse_with_empty,
        says="Empty rows became 0. s = 0 means a denominator of 1; the denominator of no keys is 0, its log -inf."),
    _to("to_empty_nan", formula=formulas.empty_as(float("nan")), anchor="plus-inf-is-empty-too",
        cases=draws.draw_lse_with_empty, says="Empty rows became NaN. They are -inf in FlashInfer's convention."),
    _to("to_not_transposed", formula=formulas.not_transposed, anchor="the-layout",
        says="The numbers still stand heads first: [H, T] was read as [T, H]. Element (t, h) comes from (h, t)."),
)  # fmt: skip

MISTAKES = (*LSE, *LSE2, *MERGE, *TO_FLASHINFER, *LOOPS, *PARTIAL)
