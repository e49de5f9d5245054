"""The misconceptions about one exercise of l4 alone that are recognized, and what is said to the learner.

The formulas stand in merge_slips.py and merge_in_place.py; mistakes that can happen in several exercises are listed in
merge_mistakes.py.
"""

from __future__ import annotations

import torch

from drills.lessons import merge_cases as draws
from drills.lessons import merge_in_place as place
from drills.lessons import merge_slips as slips
from drills.lessons.base import Mistake
from drills.lessons.merge_lift import Formula, on_many
from drills.lessons.oracle import merge

LAYOUT = "the-wrong-address"
MASK = "the-mask"
EARLY = "s-overwritten-too-early"
UNSTRIDED = ((0, 1, 2, 3), (0, 1), (2, 3), (0, 2), (1, 3), (0,), (1,), (2,), (3,))
"""Which of v, s, v_other and s_other are taken to be contiguous."""


def stored(exercise: str, right: Formula) -> Mistake:
    """Results stored at the wrong rows."""
    return Mistake(
        "stored_heads_first",
        exercise,
        slips.stored_heads_first(right, v_too=True, s_too=True),
        "The right results stand in the wrong rows: those of position i, head h belong in row i * H + h.",
        LAYOUT,
        variants=(
            slips.stored_heads_first(right, v_too=True, s_too=False),
            slips.stored_heads_first(right, v_too=False, s_too=True),
        ),
    )


def strides(exercise: str, right: Formula, args) -> Mistake:
    """Inputs read without their strides; args makes the cases' arguments."""
    others = [slips.strides_ignored(right, v_too=False), slips.strides_ignored(right, s_too=False)]
    if exercise == "merge_state_in_place":
        others += [place.unstrided_in_place(*at) for at in UNSTRIDED]
    return Mistake(
        "strides_ignored",
        exercise,
        slips.strides_ignored(right),
        "An argument is read as if it were contiguous. Use its strides, or make a contiguous copy first.",
        "where-things-lie",
        cases=slips.with_strides(args),
        variants=tuple(others),
    )


def _of_two(exercise: str, args) -> list[Mistake]:
    return [
        stored(exercise, slips.RIGHT[exercise]),
        Mistake(
            "heads_first",
            exercise,
            slips.heads_first(exercise, v_too=False, s_too=True),
            "s[S, H] is read as if it were [H, S]: row i * H + h belongs to position i, head h.",
            LAYOUT,
            variants=(
                slips.heads_first(exercise, v_too=True, s_too=False),
                *(slips.heads_first(exercise, v_too, not v_too, (i,)) for v_too in (False, True) for i in (0, 1)),
            ),
        ),
        strides(exercise, slips.RIGHT[exercise], args),
    ]


OWN_MISTAKES = (
    *_of_two("merge_state", draws.two_args),
    *_of_two("merge_state_in_place", draws.masked_args),
    stored("merge_states", on_many(merge)),
    Mistake(
        "nothing_changed",
        "merge_state_in_place",
        place.nothing_changed,
        "v and s are as they were before the call: store the results at the arguments' own addresses.",
        "in-place",
    ),
    Mistake(
        "other_copied",
        "merge_state_in_place",
        place.other_copied,
        "v and s are the other state. Both states count: merge them, with the weights 2^(s - m).",
        "merging-is-addition",
    ),
    Mistake(
        "merged_into_copies",
        "merge_state_in_place",
        place.merged_into_copies,
        "v or s is not contiguous, and what was merged into is a copy of it. Use its strides, or copy the result back.",
        "in-place",
        cases=slips.with_strides(draws.masked_args),
    ),
    Mistake(
        "s_before_v",
        "merge_state_in_place",
        place.s_before_v,
        "s was overwritten before v's weights were computed from it. Load everything, compute, and store last.",
        EARLY,
        variants=(place.s_before_v_unnormalized,),
    ),
    Mistake(
        "only_s_updated",
        "merge_state_in_place",
        place.only_s_updated,
        "s is merged but v is unchanged: store both at their own addresses, not into a copy.",
        "in-place",
    ),
    Mistake(
        "only_v_updated",
        "merge_state_in_place",
        place.only_v_updated,
        "v is merged but s is unchanged: store both at their own addresses, not into a copy.",
        "in-place",
    ),
    Mistake(
        "mask_ignored",
        "merge_state_in_place",
        place.mask_as(torch.ones_like),
        "Positions whose mask is False were changed. Load mask[i] and neither read nor write such a row.",
        MASK,
    ),
    Mistake(
        "mask_inverted",
        "merge_state_in_place",
        place.mask_as(torch.logical_not),
        "The mask is the wrong way round: positions that are True change.",
        MASK,
    ),
    Mistake(
        "mask_stride",
        "merge_state_in_place",
        place.mask_as(slips.unstrided),
        "The mask is read at offset i, but it has a stride: mask[i] lies at i * mask.stride(0), which may be 0.",
        MASK,
        cases=draws.cases(slips.with_sliced_mask),
    ),
    Mistake(
        "mask_by_row",
        "merge_state_in_place",
        place.mask_of_heads,
        "The mask is read with the number of a row. It has one entry a position: row // H.",
        MASK,
    ),
    Mistake(
        "mask_by_head",
        "merge_state_in_place",
        place.mask_of_head_numbers,
        "The mask is read with the number of a head. It has one entry a position: mask[i] holds for all heads of i.",
        MASK,
    ),
    Mistake(
        "mask_on_v_alone",
        "merge_state_in_place",
        place.mask_on_one(v_too=True),
        "The mask keeps v but not s: where it is False, s changed. Mask the store of s as well.",
        MASK,
    ),
    Mistake(
        "mask_on_s_alone",
        "merge_state_in_place",
        place.mask_on_one(v_too=False),
        "The mask keeps s but not v: where it is False, v changed. Mask the store of v as well.",
        MASK,
    ),
    Mistake(
        "nothing_without_mask",
        "merge_state_in_place",
        place.nothing_without_mask,
        "Without a mask nothing was merged. mask=None means that every position changes.",
        MASK,
        cases=draws.cases(draws.two_args),
    ),
    Mistake(
        "two_empties_kept",
        "merge_state_in_place",
        place.two_empties_kept,
        "Where both states are empty, v was left as it was. It becomes 0: an empty state's payload is not a result.",
        "two-empty-states",
        cases=draws.cases(draws.masked_args, slips.both_empty),
    ),
    Mistake(
        "states_last",
        "merge_states",
        slips.states_read_as(None, (0, 2, 1)),
        "s[S, N, H] is read as if it were [S, H, N]. State n of position i and head h is at (i * N + n) * H + h.",
        LAYOUT,
        variants=(slips.states_read_as((0, 2, 1), None), slips.states_read_as((0, 2, 1), (0, 2, 1))),
    ),
    Mistake(
        "states_first",
        "merge_states",
        slips.states_read_as((1, 0, 2), (1, 0, 2)),
        "The states are read as if N came first. State n of position i and head h is at (i * N + n) * H + h.",
        LAYOUT,
        variants=(slips.states_read_as(None, (1, 0, 2)), slips.states_read_as((1, 0, 2), None)),
    ),
    Mistake(
        "position_not_times_n",
        "merge_states",
        slips.states_begin_at(lambda i, N, H: i),
        "The states of position i are read from state i on. Each position has N: its first one is state i * N.",
        LAYOUT,
        variants=(slips.states_begin_at(lambda i, N, H: 0),),
    ),
    strides("merge_states", on_many(merge), draws.many_args),
)
