"""The misconceptions about runs of rows, variable_length_merge_states alone: their formulas, and what is said.

Each formula takes (v[M, H, D], s[M, H], indptr[S + 1]) and answers what code written with that misconception would.
Never used by graded code.
"""

from __future__ import annotations

import torch

from drills.lessons import merge_cases as draws
from drills.lessons import merge_own_mistakes as own
from drills.lessons.base import Mistake
from drills.lessons.merge_lift import Formula, merge_runs, on_runs
from drills.lessons.merge_rules import no_states_nan
from drills.lessons.merge_slips import as_if
from drills.lessons.oracle import merge

INDPTR = "indptr-off-by-one"


def rows_heads_first(v_too: bool) -> Formula:
    """s[M, H], or v[M, H, D] as well, read as if heads came first."""

    def formula(v, s, indptr):
        return on_runs(merge)(as_if(v, 1, 0, 2) if v_too else v, as_if(s, 1, 0), indptr)

    return formula


def runs_moved(first: int, last: int) -> Formula:
    """Every run starts `first` rows and ends `last` rows later, as far as there are rows."""

    def formula(v, s, indptr):
        bounds = [min(max(0, b), len(s)) for b in indptr.tolist()]
        runs = [(max(0, a + first), min(len(s), b + last)) for a, b in zip(bounds, bounds[1:], strict=False)]
        return merge_runs(merge, v, s, runs)

    return formula


def start_ignored(v, s, indptr):
    return on_runs(merge)(v, s, indptr - indptr[0])


def first_run_from_zero(v, s, indptr):
    return on_runs(merge)(v, s, torch.cat([torch.zeros_like(indptr[:1]), indptr[1:]]))


def read_as_int32(v, s, indptr):
    """int64 entries read as int32: on a little-endian machine, each is followed by the 0 of its upper half."""
    return on_runs(merge)(v, s, indptr.contiguous().view(torch.int32)[: len(indptr)])


def int64_runs(v, s, rng):
    """Equal runs, with an int64 indptr."""
    v, s, indptr = draws.equal_runs(v, s, rng)
    return v, s, indptr.long()


def past_its_end(block: int) -> Formula:
    """The last block of a run goes on with the rows of the next one, as far as there are rows."""

    def formula(v, s, indptr):
        bounds = indptr.tolist()
        ends = [min(len(s), a + -(-(b - a) // block) * block) for a, b in zip(bounds, bounds[1:], strict=False)]
        return merge_runs(merge, v, s, list(zip(bounds, ends, strict=False)))

    return formula


def last_run_to_the_end(v, s, indptr):
    return on_runs(merge)(v, s, torch.cat([indptr[:-1], torch.tensor([len(s)])]))


def next_run(v, s, indptr):
    """Position i merges run i + 1; the last one has none."""
    return on_runs(merge)(v, s, torch.cat([indptr[1:], indptr[-1:]]))


def empty_runs_nan(v, s, indptr):
    """0 / 0 where a run has no row."""
    return on_runs(no_states_nan)(v, s, indptr)


def empty_runs_keep_one(v, s, indptr):
    """An empty run merges the row at which it would start."""
    bounds = indptr.tolist()
    runs = [(a, min(len(s), max(b, a + 1))) for a, b in zip(bounds, bounds[1:], strict=False)]
    return merge_runs(merge, v, s, runs)


def equal_lengths(v, s, indptr):
    """Every run has M / S rows."""
    each = len(s) // max(1, len(indptr) - 1)
    return merge_runs(merge, v, s, [(i * each, (i + 1) * each) for i in range(len(indptr) - 1)])


def as_many_as_its_number(v, s, indptr):
    """Position i merges i rows."""
    return merge_runs(merge, v, s, [(a, min(len(s), a + i)) for i, a in enumerate(indptr.tolist()[:-1])])


RUN_MISTAKES = (
    own.stored("variable_length_merge_states", on_runs(merge)),
    Mistake(
        "heads_first",
        "variable_length_merge_states",
        rows_heads_first(v_too=False),
        "s[M, H] is read as if it were [H, M]: row r of head h is at r * H + h.",
        own.LAYOUT,
        variants=(rows_heads_first(v_too=True),),
    ),
    own.strides("variable_length_merge_states", on_runs(merge), draws.equal_runs),
    Mistake(
        "indptr_end_included",
        "variable_length_merge_states",
        runs_moved(0, 1),
        "Row indptr[i + 1] is merged into position i, but it is the first of position i + 1: the end is not included.",
        INDPTR,
    ),
    Mistake(
        "indptr_shifted",
        "variable_length_merge_states",
        runs_moved(1, 1),
        "Each run is one row late: position i has rows indptr[i] up to, not including, indptr[i + 1].",
        INDPTR,
        variants=(runs_moved(-1, -1), runs_moved(-1, 0)),
    ),
    Mistake(
        "next_run",
        "variable_length_merge_states",
        next_run,
        "Position i merges the run of position i + 1: its rows are indptr[i] to indptr[i + 1].",
        INDPTR,
    ),
    Mistake(
        "indptr_start_ignored",
        "variable_length_merge_states",
        start_ignored,
        "The rows are counted from 0, but indptr[0] may exceed 0: rows before it belong to no position.",
        INDPTR,
        variants=(first_run_from_zero,),
    ),
    Mistake(
        "indptr_read_as_int32",
        "variable_length_merge_states",
        read_as_int32,
        "indptr is int64 here and was read as int32, so every second entry is 0. Load it with the type that it has.",
        INDPTR,
        cases=draws.cases(int64_runs),
    ),
    Mistake(
        "run_past_its_end",
        "variable_length_merge_states",
        past_its_end(4),
        "The last block of a run goes on into the next run. Mask the rows with indptr[i + 1], not with their number.",
        INDPTR,
        variants=tuple(past_its_end(block) for block in (2, 8, 16, 32, 64, 128)),
    ),
    Mistake(
        "indptr_end_ignored",
        "variable_length_merge_states",
        last_run_to_the_end,
        "The last run goes to the end of v, but indptr[-1] may stop short of it: rows after it belong to no position.",
        INDPTR,
    ),
    Mistake(
        "no_states",
        "variable_length_merge_states",
        empty_runs_nan,
        "In an empty run the sums stay 0 and 0 / 0 is NaN. Divide by 1 there.",
        "two-empty-states",
    ),
    Mistake(
        "empty_run_keeps_a_row",
        "variable_length_merge_states",
        empty_runs_keep_one,
        "An empty run merges the row at which it starts, which belongs to another position. It gives (0, -inf).",
        INDPTR,
    ),
    Mistake(
        "equal_lengths",
        "variable_length_merge_states",
        equal_lengths,
        "Every run is taken to have M / S rows. Its rows are indptr[i] to indptr[i + 1], whatever their number.",
        INDPTR,
    ),
    Mistake(
        "position_as_length",
        "variable_length_merge_states",
        as_many_as_its_number,
        "Position i merges i rows. Its rows are indptr[i] up to, not including, indptr[i + 1].",
        INDPTR,
    ),
)
