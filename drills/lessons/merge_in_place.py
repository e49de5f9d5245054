"""Formulas of mistakes of merge_state_in_place: what is overwritten, when, and at which positions.

Each takes (v, s, v_other, s_other, mask=None) and answers what v and s hold afterwards in code written with that
misconception. What is said to the learner stands in merge_own_mistakes.py. Never used by graded code.
"""

from __future__ import annotations

import torch
from torch import Tensor

from drills.lessons.merge_lift import Formula, in_place, stack_two, where_masked
from drills.lessons.merge_rules import drop_unused
from drills.lessons.merge_slips import unstrided
from drills.lessons.oracle import merge


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


def mask_on_one(v_too: bool) -> Formula:
    """The mask keeps v alone, or s alone; the other one changes at every position."""

    def formula(v, s, v_other, s_other, mask=None):
        kept, changed = in_place(merge)(v, s, v_other, s_other, mask), in_place(merge)(v, s, v_other, s_other)
        return (kept[0], changed[1]) if v_too else (changed[0], kept[1])

    return formula


def mask_of_head_numbers(v, s, v_other, s_other, mask=None):
    """mask[S] read with the number of the head: heads past its end count as True."""
    new = in_place(merge)(v, s, v_other, s_other)
    if mask is None:
        return new
    heads = torch.cat([mask, torch.ones(max(0, s.shape[1] - len(mask)), dtype=torch.bool)])[: s.shape[1]]
    return torch.where(heads[:, None], new[0], v.double()), torch.where(heads, new[1], s.double())


def nothing_without_mask(v, s, v_other, s_other, mask=None):
    return (v.double(), s.double()) if mask is None else in_place(merge)(v, s, v_other, s_other, mask)


def unstrided_in_place(*positions: int) -> Formula:
    """The arguments at these positions read, and v and s written, as if they were contiguous."""

    def formula(*args):
        seen = [unstrided(x) if at in positions else x for at, x in enumerate(args[:4])]
        changed = in_place(merge)(*seen, *args[4:])
        return tuple(_written(own, read, new) for own, read, new in zip(args, seen, changed, strict=False))

    return formula


def _written(own: Tensor, read: Tensor, new: Tensor) -> Tensor:
    """What `own` holds after `new` was stored where `read`, a view of the same memory, has its elements."""
    if read is own:
        return new
    memory = torch.empty(own.untyped_storage().nbytes() // own.element_size(), dtype=torch.float64)
    memory.as_strided(own.shape, own.stride(), own.storage_offset()).copy_(own)
    memory.as_strided(read.shape, read.stride(), read.storage_offset()).copy_(new)
    return memory.as_strided(own.shape, own.stride(), own.storage_offset()).clone()
