"""The misconceptions about one exercise of l4 alone that are recognized, and what is said to the learner.

The formulas stand in merge_slips.py; mistakes that can happen in several exercises are listed in merge_mistakes.py.
"""

from __future__ import annotations

import torch

from drills.lessons import merge_cases as draws
from drills.lessons import merge_slips as slips
from drills.lessons.base import Mistake
from drills.lessons.merge_lift import on_many, on_runs
from drills.lessons.oracle import merge

LAYOUT = "the-wrong-address"
MASK = "the-mask"
EARLY = "s-overwritten-too-early"
INDPTR = "indptr-off-by-one"


def _of_two(exercise: str, args) -> list[Mistake]:
    return [
        Mistake(
            "heads_first",
            exercise,
            slips.heads_first(exercise, v_too=False, s_too=True),
            "s[S, H] is read as if it were [H, S]: row i * H + h belongs to position i, head h.",
            LAYOUT,
            variants=(slips.heads_first(exercise, v_too=True, s_too=False),),
        ),
        Mistake(
            "strides_ignored",
            exercise,
            slips.strides_ignored(slips.RIGHT[exercise]),
            "An argument is read as if it were contiguous. Use its strides, or make a contiguous copy first.",
            "where-things-lie",
            cases=slips.with_strides(args),
        ),
    ]


OWN_MISTAKES = (
    *_of_two("merge_state", draws.two_args),
    *_of_two("merge_state_in_place", draws.masked_args),
    Mistake(
        "s_before_v",
        "merge_state_in_place",
        slips.s_before_v,
        "s was overwritten before v's weights were computed from it. Load everything, compute, and store last.",
        EARLY,
        variants=(slips.s_before_v_unnormalized,),
    ),
    Mistake(
        "only_s_updated",
        "merge_state_in_place",
        slips.only_s_updated,
        "s is merged but v is unchanged: store both at their own addresses, not into a copy.",
        "in-place",
    ),
    Mistake(
        "only_v_updated",
        "merge_state_in_place",
        slips.only_v_updated,
        "v is merged but s is unchanged: store both at their own addresses, not into a copy.",
        "in-place",
    ),
    Mistake(
        "mask_ignored",
        "merge_state_in_place",
        slips.mask_as(torch.ones_like),
        "Positions whose mask is False were changed. Load mask[i] and neither read nor write such a row.",
        MASK,
    ),
    Mistake(
        "mask_inverted",
        "merge_state_in_place",
        slips.mask_as(torch.logical_not),
        "The mask is the wrong way round: positions that are True change.",
        MASK,
    ),
    Mistake(
        "mask_stride",
        "merge_state_in_place",
        slips.mask_as(slips.unstrided),
        "The mask is read at offset i, but it has a stride: mask[i] lies at i * mask.stride(0), which may be 0.",
        MASK,
        cases=draws.cases(slips.with_sliced_mask),
    ),
    Mistake(
        "mask_by_row",
        "merge_state_in_place",
        slips.mask_of_heads,
        "The mask is read with the number of a row. It has one entry a position: row // H.",
        MASK,
    ),
    Mistake(
        "two_empties_kept",
        "merge_state_in_place",
        slips.two_empties_kept,
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
        "strides_ignored",
        "merge_states",
        slips.strides_ignored(on_many(merge)),
        "An argument is read as if it were contiguous. Use its strides, or make a contiguous copy first.",
        "where-things-lie",
        cases=slips.with_strides(draws.many_args),
    ),
    Mistake(
        "heads_first",
        "variable_length_merge_states",
        slips.rows_heads_first(v_too=False),
        "s[M, H] is read as if it were [H, M]: row r of head h is at r * H + h.",
        LAYOUT,
        variants=(slips.rows_heads_first(v_too=True),),
    ),
    Mistake(
        "strides_ignored",
        "variable_length_merge_states",
        slips.strides_ignored(on_runs(merge)),
        "An argument is read as if it were contiguous. Use its strides, or make a contiguous copy first.",
        "where-things-lie",
        cases=slips.with_strides(draws.equal_runs),
    ),
    Mistake(
        "indptr_end_included",
        "variable_length_merge_states",
        slips.runs_moved(0, 1),
        "Row indptr[i + 1] is merged into position i, but it is the first of position i + 1: the end is not included.",
        INDPTR,
    ),
    Mistake(
        "indptr_shifted",
        "variable_length_merge_states",
        slips.runs_moved(1, 1),
        "Each run is one row late: position i has rows indptr[i] up to, not including, indptr[i + 1].",
        INDPTR,
        variants=(slips.runs_moved(-1, -1), slips.runs_moved(-1, 0)),
    ),
    Mistake(
        "next_run",
        "variable_length_merge_states",
        slips.next_run,
        "Position i merges the run of position i + 1: its rows are indptr[i] to indptr[i + 1].",
        INDPTR,
    ),
    Mistake(
        "indptr_start_ignored",
        "variable_length_merge_states",
        slips.start_ignored,
        "The rows are counted from 0, but indptr[0] may exceed 0: rows before it belong to no position.",
        INDPTR,
    ),
    Mistake(
        "indptr_end_ignored",
        "variable_length_merge_states",
        slips.last_run_to_the_end,
        "The last run goes to the end of v, but indptr[-1] may stop short of it: rows after it belong to no position.",
        INDPTR,
    ),
    Mistake(
        "empty_run_keeps_a_row",
        "variable_length_merge_states",
        slips.empty_runs_keep_one,
        "An empty run merges the row at which it starts, which belongs to another position. It gives (0, -inf).",
        INDPTR,
    ),
    Mistake(
        "equal_lengths",
        "variable_length_merge_states",
        slips.equal_lengths,
        "Every run is taken to have M / S rows. Its rows are indptr[i] to indptr[i + 1], whatever their number.",
        INDPTR,
    ),
)
