"""What l2's misconceptions about the running max and the range of exp yield in a merge, in float64 tensors.

Rules as in triple_formulas.py. What overflows or vanishes in float32 is computed in float32. Never used by graded code.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from drills.lessons.oracle import finite_shift, largest, merge_mlo
from drills.lessons.running import carried
from drills.lessons.triple_formulas import Rule, summed, used


def shifted_by(m: Tensor, off: Tensor, l: Tensor, o: Tensor, guarded: bool) -> tuple[Tensor, Tensor]:
    """l and o with weights exp(m - off) * l in float32; guarded: a sum of 0 is not divided by."""
    w = torch.exp((m - off).float()).double() * l
    total = w.sum(0)
    return total, (w[..., None] * used(w, o)).sum(0) / torch.where(guarded & (total == 0), 1.0, total)[..., None]


def unshifted(l_too: bool, guarded: bool = True) -> Rule:
    """exp(m) as it is. l_too: is l left so, or divided by exp(max m) at the end?"""

    def rule(m, l, o):
        total, out = shifted_by(m, torch.zeros_like(m), l, o, guarded)
        top = largest(m, 0)
        back = torch.where(top == -math.inf, 0.0, total / torch.exp(top.float()).double())
        return top, total if l_too else back, out

    return rule


def by_one_part(at: int, guarded: bool) -> Rule:
    """The m of part `at` is subtracted, or the largest where that is -inf and guarded."""

    def rule(m, l, o):
        off = torch.where((m[at] == -math.inf) & guarded, finite_shift(largest(m, 0)), m[at])
        return None, None, shifted_by(m, off, l, o, True)[1]

    return rule


def max_from(start: float, guarded: bool = True) -> Rule:
    """The running max starts at a finite number."""

    def rule(m, l, o):
        top = largest(m, 0).clamp(min=start)
        return top, *shifted_by(m, top, l, o, guarded)

    return rule


def zero_kept(step: int, guarded: bool = True) -> Rule:
    """The 0 that is subtracted while the max is -inf becomes the max: where the first `step` parts are empty."""

    def rule(m, l, o):
        top = largest(m, 0)
        kept = torch.where(largest(m[:step], 0) == -math.inf, top.clamp(min=0.0), finite_shift(top))
        return top, *shifted_by(m, kept, l, o, guarded)

    return rule


def low_is_empty(threshold: float, guarded: bool = True) -> Rule:
    """A max below the threshold is taken for -inf, and 0 is subtracted in its place."""

    def rule(m, l, o):
        top = largest(m, 0)
        return top, *shifted_by(m, torch.where(top < threshold, 0.0, top), l, o, guarded)

    return rule


def with_epsilon(epsilon: float) -> Rule:
    """l + epsilon; o as it should be, which it is up to that."""

    def rule(m, l, o):
        top, total, _ = merge_mlo(m, l, o)
        return top, total + epsilon, None

    return rule


def padded_to(block: int | None) -> Rule:
    """Parts with m = 0, l = 1 and o = 0 fill the last block up; None: up to a power of two."""

    def rule(m, l, o):
        wide = block or 1 << max(0, len(m) - 1).bit_length()
        more = -len(m) % wide
        fill = torch.zeros(more, *m.shape[1:], dtype=m.dtype)
        o_fill = torch.zeros(more, *o.shape[1:], dtype=o.dtype)
        return merge_mlo(torch.cat([m, fill]), torch.cat([l, fill + 1.0]), torch.cat([o, o_fill]))

    return rule


def m_of(part: int) -> Rule:
    """The merged m is that of one part."""
    return lambda m, l, o: (m[part], None, None)


def in_steps_of(step: int, carry_l: str, carry_o: str, first_step: bool = True) -> Rule:
    """The old sums are carried as `running.carried` says. first_step: is an inverted factor 0 in the first step?"""

    def rule(m, l, o):
        top = torch.full(m.shape[1:], -math.inf, dtype=torch.float64)
        total, out = torch.zeros_like(top), torch.zeros(o.shape[1:], dtype=torch.float64)
        for start in range(0, len(m), step):
            part = slice(start, start + step)
            new = torch.maximum(top, largest(m[part], 0))
            w = torch.exp(m[part] - finite_shift(new)) * l[part]
            total = total * carried(carry_l, top, new, first_step) + w.sum(0)
            out = out * carried(carry_o, top, new, first_step)[..., None] + summed(w, o[part])
            top = new
        return top, total, out / torch.where(total > 0, total, 1.0)[..., None]

    return rule
