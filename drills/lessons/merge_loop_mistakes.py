"""The misconceptions about the way through the states that are recognized: half precision, states left out, stale sums.

Causes as in merge_mistakes.py, with rules from merge_loop_rules.py. Never used by graded code.
"""

from __future__ import annotations

import torch

from drills.lessons import merge_cases as draws
from drills.lessons import merge_loop_rules as loops
from drills.lessons import merge_rules as rules
from drills.lessons.merge_causes import MANY, NOT_IN_PLACE, TWO, Cause

LOOP_CAUSES = (
    Cause(
        "s_stored_in_half",
        tuple(loops.s_stored_in(dtype) for dtype in (None, torch.float16, torch.bfloat16)),
        "s-in-half-precision",
        "s was rounded to half precision before it was stored. s is float32 always: allocate and store it so.",
        dtype=torch.float16,
    ),
    Cause(
        "s_read_in_half",
        tuple(loops.s_read_in(dtype) for dtype in (None, torch.float16, torch.bfloat16)),
        "s-in-half-precision",
        "s was rounded to half precision when it was read, which shifts every weight. Keep s in float32 throughout.",
        dtype=torch.float16,
    ),
    Cause(
        "summed_in_half",
        (
            *(loops.summed_in_half(block, total, True) for total in (True, False) for block in loops.BLOCKS),
            *(loops.summed_in_half(1, total, False) for total in (True, False)),
            loops.shares_added_in_half,
        ),
        "half-precision-on-the-way",
        "The running sum is kept in half precision, where small addends are lost. Sum in float32, cast when you store.",
        exercises=MANY,
        edit=draws.equal,
        dtype=torch.float16,
        sizes=(("S", 1), ("N", 300), ("H", 1), ("D", 8)),
    ),
    Cause(
        "parts_in_half",
        tuple(loops.parts_in_half(parts) for parts in (2, 3, 4, 5, 6, 7, 8, 16, 32, 64)),
        "half-precision-on-the-way",
        "Parts of the states are merged first, and their v stays in half precision until the last merge: use float32.",
        exercises=MANY,
        edit=draws.cancelling_halves,
        dtype=torch.float16,
        sizes=(("S", 1), ("N", 300), ("H", 1), ("D", 8)),
    ),
    Cause(
        "mixed_in_half",
        tuple(loops.mixed_in(dtype, shares) for dtype in (None, torch.float16) for shares in (True, False)),
        "half-precision-on-the-way",
        "The products are rounded to half precision. Cast v to float32 before you multiply, and back when you store.",
        exercises=TWO,
        edit=draws.cancelling,
        dtype=torch.float16,
    ),
    Cause(
        "first_state_dropped",
        (loops.dropped(slice(1, None)),),
        "a-state-dropped",
        "The first state is missing from the result. Does the loop, or the offset, start one too late?",
        exercises=NOT_IN_PLACE,
    ),
    Cause(
        "last_state_dropped",
        (loops.dropped(slice(None, -1)),),
        "a-state-dropped",
        "The last state is missing from the result. The states are 0 to N - 1, the last one included.",
        exercises=NOT_IN_PLACE,
    ),
    Cause(
        "only_first_block",
        tuple(loops.dropped(slice(None, block)) for block in loops.BLOCKS),
        "a-state-dropped",
        "Only the first states are merged: the loop, or the block, must reach the last of them, whatever their number.",
        exercises=MANY,
        sizes=(("S", 2), ("N", 130), ("H", 1), ("D", 3)),
    ),
    Cause(
        "tail_block_dropped",
        tuple(loops.whole_blocks(block) for block in loops.BLOCKS[1:]),
        "a-state-dropped",
        "The states after the last whole block are missing. Round the number of steps up, and mask the last one.",
        exercises=MANY,
        sizes=(("S", 2), ("N", 127), ("H", 1), ("D", 3)),
    ),
    Cause(
        "padding_weighs_one",
        tuple(loops.padded(block) for block in loops.BLOCKS[1:]),
        "padding-that-weighs-something",
        "The padding of the last block counts as states with s = 0. Load s with other=float('-inf'): padding is empty.",
        exercises=MANY,
        sizes=(("N", 3), ("S", 2), ("H", 5)),
    ),
    Cause(
        "starts_at_zero",
        (rules.started(0.0),),
        "padding-that-weighs-something",
        "The running state starts with s = 0, which weighs 2^0 = 1. Before the first state it is empty: s = -inf.",
        exercises=MANY,
    ),
    Cause(
        "not_rescaled",
        tuple(
            loops.not_rescaled(block, v_too, total_too)
            for v_too, total_too in ((True, False), (True, True), (False, True))
            for block in loops.BLOCKS
        ),
        "many-states",
        "A larger s came, and what was summed before was not scaled down: multiply it by 2^(m_old - m_new) first.",
        exercises=MANY,
        sizes=(("S", 2), ("N", 130), ("H", 1), ("D", 3)),
    ),
    Cause(
        "factor_upside_down",
        tuple(loops.upside_down(block) for block in loops.BLOCKS),
        "many-states",
        "A larger s came, and what was summed before was scaled up: the factor is 2^(m_old - m_new), at most 1.",
        exercises=MANY,
        sizes=(("S", 2), ("N", 130), ("H", 1), ("D", 3)),
    ),
    Cause(
        "factor_by_e",
        tuple(loops.scaled_by_e(block) for block in loops.BLOCKS),
        "exp-where-exp2-belongs",
        "A larger s came, and what was summed before was scaled by e^(m_old - m_new). s is base 2 there too: tl.exp2.",
        exercises=MANY,
        sizes=(("S", 2), ("N", 130), ("H", 1), ("D", 3)),
    ),
    Cause(
        "leading_empty_states",
        tuple(
            loops.nan_from_the_start(block, in_s, no_states)
            for in_s, no_states in (("nan", True), ("max", False), ("empty", False))
            for block in loops.BLOCKS
        ),
        "two-empty-states",
        "While all states so far are empty, (-inf) - (-inf) is NaN, and stays NaN. Shift by 0 while the max is -inf.",
        exercises=MANY,
        edit=draws.empty_at_first,
        sizes=(("S", 3), ("N", 131), ("H", 1), ("D", 3)),
    ),
    Cause(
        "zero_kept",
        tuple(
            loops.zero_kept(block, guarded, s_of_none)
            for guarded in (True, False)
            for s_of_none in (-torch.inf, 0.0)
            for block in (*loops.BLOCKS, 256)
        ),
        "two-empty-states",
        "The 0 that is shifted by while the max is -inf was kept as the max. No lower s replaces it: m stays -inf.",
        exercises=MANY,
        edit=draws.low_after_empty,
        sizes=(("S", 3), ("N", 260), ("H", 1), ("D", 64)),
    ),
)
