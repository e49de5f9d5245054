"""Formulas of mistakes of one exercise of l4 alone: addresses and strides.

Each takes the exercise's own arguments and answers what code written with that misconception would. What is said to
the learner stands in merge_own_mistakes.py; what happens in place stands in merge_in_place.py, runs of rows in
merge_run_mistakes.py. Never used by graded code.
"""

from __future__ import annotations

import torch
from torch import Generator, Tensor

from drills.lessons import merge_cases as draws
from drills.lessons.base import Args
from drills.lessons.merge_lift import Formula, in_place, on_many, on_two
from drills.lessons.oracle import merge

RIGHT = {"merge_state": on_two(merge), "merge_state_in_place": in_place(merge)}


# Addresses.


def as_if(x: Tensor, *order: int) -> Tensor:
    """x read as if its axes lay in memory in another order: element [i, j, …] comes from where that order puts it."""
    moved = [x.shape[axis] for axis in order]
    back = [order.index(axis) for axis in range(x.dim())]
    return x.contiguous().reshape(moved).permute(back)


def heads_first(exercise: str, v_too: bool, s_too: bool, of: tuple[int, ...] = (0, 1)) -> Formula:
    """[S, H] read as [H, S], in the states `of`. Results are stored where they belong, or s at the wrong place."""

    def formula(v_a, s_a, v_b, s_b, *mask):
        v = [as_if(x, 1, 0, 2) if v_too and i in of else x for i, x in enumerate((v_a, v_b))]
        s = [as_if(x, 1, 0) if s_too and i in of else x for i, x in enumerate((s_a, s_b))]
        return RIGHT[exercise](v[0], s[0], v[1], s[1], *mask)[0], None

    return formula


def states_read_as(v_order: tuple[int, ...] | None, s_order: tuple[int, ...] | None) -> Formula:
    """v[S, N, H, D] and s[S, N, H] read with their axes in another order."""

    def formula(v, s):
        wrong_v = as_if(v, *v_order, 3) if v_order else v
        return on_many(merge)(wrong_v, as_if(s, *s_order) if s_order else s)

    return formula


def states_begin_at(of_position) -> Formula:
    """The states of position i begin at another number than i * N: of_position(i, N, H), as far as there are states."""

    def formula(v, s):
        S, N, H = s.shape
        at = torch.tensor([[of_position(i, N, H) + n for n in range(N)] for i in range(S)], dtype=torch.long)
        at = at.reshape(S, N) % max(1, S * N)
        return on_many(merge)(v.reshape(-1, *v.shape[2:])[at], s.reshape(-1, H)[at])

    return formula


def unstrided(x: Tensor) -> Tensor:
    """x read from its first element on as if it were contiguous, as far as its storage goes; else x itself."""
    if x.storage_offset() + x.numel() > x.untyped_storage().nbytes() // x.element_size():
        return x
    return x.as_strided(x.shape, torch.empty(x.shape, device="meta").stride())


def strides_ignored(right: Formula, v_too: bool = True, s_too: bool = True) -> Formula:
    """v, s or both read as if they were contiguous. In every exercise v and s take turns among the arguments."""

    def formula(*args):
        ignored = [position % 2 == 0 and v_too or position % 2 == 1 and s_too for position in range(len(args))]
        return right(*(unstrided(x) if no and _is_state(x) else x for x, no in zip(args, ignored, strict=True)))

    return formula


def _is_state(x) -> bool:
    return isinstance(x, Tensor) and x.dtype.is_floating_point


def stored_heads_first(right: Formula, v_too: bool, s_too: bool) -> Formula:
    """The right results of position i, head h, stored where [H, S] would have them."""

    def formula(*args):
        v, s = right(*args)
        return _misplaced(v) if v_too else v, _misplaced(s) if s_too else s

    return formula


def _misplaced(x: Tensor) -> Tensor:
    return x.transpose(0, 1).reshape(x.shape)


# Cases.


def with_strides(args):
    """Arguments whose first two axes are swapped in memory, so that strides count."""

    def cut(v: Tensor, s: Tensor, rng: Generator) -> Args:
        return tuple(one if one.dim() < 2 else turned(one) for one in args(v, s, rng))

    return draws.cases(cut)


def turned(x: Tensor) -> Tensor:
    """The same values; x.transpose(0, 1) is contiguous."""
    return x.transpose(0, 1).contiguous().transpose(0, 1)


def with_sliced_mask(v: Tensor, s: Tensor, rng: Generator) -> Args:
    """A mask that is every second element of a longer one."""
    *args, mask = draws.masked_args(v, s, rng)
    longer = torch.stack([mask, ~mask], -1).flatten()
    return (*args, longer[::2])


def both_empty(v: Tensor, s: Tensor, rng: Generator) -> None:
    s[0, :, 0] = -torch.inf
