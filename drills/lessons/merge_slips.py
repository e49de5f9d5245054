"""Formulas of mistakes of one exercise of l4 alone: addresses, strides, the mask, an in-place update.

Each takes the exercise's own arguments and answers what code written with that misconception would. What is said to
the learner stands in merge_own_mistakes.py; runs of rows have a file of their own, merge_run_mistakes.py. Never used by
graded code.
"""

from __future__ import annotations

import torch
from torch import Generator, Tensor

from drills.lessons import merge_cases as draws
from drills.lessons.base import Args
from drills.lessons.merge_lift import Formula, in_place, on_many, on_two, stack_two, where_masked
from drills.lessons.merge_rules import drop_unused
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


# In place.


def merged_into_copies(v, s, v_other, s_other, mask=None):
    """What is not contiguous is copied first, and the copy is merged into."""
    new = in_place(merge)(v, s, v_other, s_other, mask)
    return tuple(n if old.is_contiguous() else old.double() for n, old in zip(new, (v, s), strict=True))


def nothing_changed(v, s, v_other, s_other, mask=None):
    return v.double(), s.double()


def other_copied(v, s, v_other, s_other, mask=None):
    return where_masked(mask, (v_other.double(), s_other.double()), (v, s))


def s_before_v(v, s, v_other, s_other, mask=None):
    """The weights are computed from the s that was just stored."""
    _, new_s = merge(*stack_two(v, s, v_other, s_other))
    states = stack_two(v, s, v_other, s_other)[0], torch.stack([new_s, s_other.double()])
    return where_masked(mask, (merge(*states)[0], new_s), (v, s))


def s_before_v_unnormalized(v, s, v_other, s_other, mask=None):
    """The same in code that takes weights as 2^(s - merged s): the own weight is 1."""
    _, new_s = merge(*stack_two(v, s, v_other, s_other))
    w = torch.exp2(s_other.double() - torch.where(new_s == -torch.inf, 0.0, new_s))
    new_v = v.double() + w[..., None] * drop_unused(w, v_other)
    return where_masked(mask, (new_v, new_s), (v, s))


def mask_as(change) -> Formula:
    """Right, with another mask."""

    def formula(v, s, v_other, s_other, mask=None):
        return in_place(merge)(v, s, v_other, s_other, None if mask is None else change(mask))

    return formula


def mask_of_heads(v, s, v_other, s_other, mask=None):
    """mask[S] read with the number of the row, not of the position: rows past its end count as True."""
    new = in_place(merge)(v, s, v_other, s_other)
    if mask is None:
        return new
    rows = torch.cat([mask, torch.zeros(max(0, s.numel() - len(mask)), dtype=torch.bool)])[: s.numel()]
    rows = rows.reshape(s.shape)
    return torch.where(rows[..., None], new[0], v.double()), torch.where(rows, new[1], s.double())


def two_empties_kept(v, s, v_other, s_other, mask=None):
    """Where both states are empty, v is left as it was."""
    new_v, new_s = in_place(merge)(v, s, v_other, s_other, mask)
    return torch.where((new_s == -torch.inf)[..., None], v.double(), new_v), new_s


def only_s_updated(v, s, v_other, s_other, mask=None):
    return v.double(), in_place(merge)(v, s, v_other, s_other, mask)[1]


def only_v_updated(v, s, v_other, s_other, mask=None):
    return in_place(merge)(v, s, v_other, s_other, mask)[0], s.double()


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
