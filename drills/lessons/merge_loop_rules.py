"""Wrong ways to walk many states: half precision on the way, states left out, padding that counts, stale sums.

Rules as in merge_rules.py, made for a block size. Never used by graded code.
"""

from __future__ import annotations

import torch
from torch import Tensor

from drills.lessons.merge_rules import Rule, divided, drop_unused, weights
from drills.lessons.oracle import finite_shift, largest, merge

BLOCKS = (1, 2, 4, 8, 16, 32, 64, 128)
"""Block sizes that a kernel may walk the states with."""


# Half precision.


def half_of(v: Tensor, follows: bool) -> torch.dtype:
    """The precision of code that follows the dtype of v, or that takes half precision for float32 too."""
    return torch.float16 if v.dtype == torch.float32 and not follows else v.dtype


def s_stored_in(dtype: torch.dtype | None) -> Rule:
    """s rounded to this dtype, or to that of v, when it is stored."""

    def formula(v: Tensor, s: Tensor):
        right_v, right_s = merge(v, s)
        return right_v, right_s.to(dtype or v.dtype).double()

    return formula


def s_read_in(dtype: torch.dtype | None) -> Rule:
    """s rounded to this dtype, or to that of v, when it is read."""

    def formula(v: Tensor, s: Tensor):
        return merge(v, s.to(dtype or v.dtype))

    return formula


def summed_in_half(block: int, total_too: bool, follows: bool) -> Rule:
    """The running sum of v, and of the weights if `total_too`, kept in half precision, `block` states a step."""

    def formula(v: Tensor, s: Tensor):
        half = half_of(v, follows)
        sum_v = torch.zeros(v.shape[1:], dtype=half)
        total = torch.zeros(s.shape[1:], dtype=half if total_too else torch.float32)
        for keep, more_v, more in zip(*_steps(v, s, block), strict=True):
            sum_v = (sum_v.float() * keep[..., None] + more_v).to(half)
            total = (total.float() * keep + more).to(total.dtype)
        return divided(sum_v.double(), total.double()), None

    return formula


def _steps(v: Tensor, s: Tensor, block: int) -> tuple[Tensor, Tensor, Tensor]:
    """Of each step: what the sums so far are multiplied by, what v adds, what the weights add. In float32."""
    if not len(s):
        return s.float(), v.float(), s.float()
    rest = -len(s) % block
    s = torch.cat([s, s.new_full((rest, *s.shape[1:]), -torch.inf)]).float().unflatten(0, (-1, block))
    v = torch.cat([v, v.new_zeros(rest, *v.shape[1:])]).float().unflatten(0, (-1, block))
    m = torch.cummax(s.amax(1), 0).values
    before = torch.cat([torch.full_like(m[:1], -torch.inf), m[:-1]])
    w = torch.exp2(s - finite_shift(m)[:, None])
    used = torch.where(w[..., None] > 0, v, 0.0)
    return torch.exp2(before - finite_shift(m)), (w[..., None] * used).sum(1), w.sum(1)


def shares_added_in_half(v: Tensor, s: Tensor):
    """Every state's share of v rounded to v's dtype and added in it, one after another: atomics in half precision."""
    w = weights(s)
    shares = divided(w[..., None], w.sum(0))[..., 0]
    added = torch.zeros(v.shape[1:], dtype=v.dtype)
    for product in (shares[..., None] * drop_unused(w, v)).to(v.dtype):
        added = added + product
    return added.double(), None


def parts_in_half(parts: int) -> Rule:
    """The states are merged in so many parts, whose v is rounded to v's dtype before the parts are merged."""

    def formula(v: Tensor, s: Tensor):
        each = max(1, -(-len(s) // parts))
        merged = [merge(v[at : at + each], s[at : at + each]) for at in range(0, len(s), each)]
        if not merged:
            return merge(v, s)
        return merge(torch.stack([one.to(v.dtype) for one, _ in merged]), torch.stack([one for _, one in merged]))

    return formula


def mixed_in(dtype: torch.dtype | None, shares: bool) -> Rule:
    """Weights, products and their sum in this dtype, or in that of v.

    shares: the weights are divided by their sum first; else the result is.
    """

    def formula(v: Tensor, s: Tensor):
        w = weights(s)
        total = w.sum(0)
        w = divided(w[..., None], total)[..., 0] if shares else w
        half = dtype or v.dtype
        products = (drop_unused(w, v).to(half) * w[..., None].to(half)).unbind(0)
        mixed = sum(products[1:], products[0]).double()
        return mixed if shares else divided(mixed, total), None

    return formula


# The wrong states.


def dropped(which: slice) -> Rule:
    """Only v[which] and s[which] are merged."""

    def formula(v: Tensor, s: Tensor):
        return merge(v[which], s[which])

    return formula


def whole_blocks(block: int) -> Rule:
    """The states after the last whole block are left out."""

    def formula(v: Tensor, s: Tensor):
        kept = len(s) // block * block
        return merge(v[:kept], s[:kept])

    return formula


def padded(block: int) -> Rule:
    """Padding up to a multiple of `block` counts as states with s = 0 and v = 0."""

    def formula(v: Tensor, s: Tensor):
        more = -len(s) % block
        return merge(
            torch.cat([v, torch.zeros(more, *v.shape[1:], dtype=v.dtype)]),
            torch.cat([s, torch.zeros(more, *s.shape[1:], dtype=s.dtype)]),
        )

    return formula


def not_rescaled(block: int, v_too: bool, total_too: bool) -> Rule:
    """What was summed under an old maximum is not scaled down when a larger one comes."""

    def formula(v: Tensor, s: Tensor):
        steps = torch.arange(len(s)) // block
        running = torch.cummax(s.double(), 0).values if len(s) else s.double()
        ends = ((steps + 1) * block - 1).clamp(max=len(s) - 1)
        stale = torch.exp2(s.double() - finite_shift(running[ends]))
        w = weights(s)
        w_v, w_total = (stale if v_too else w), (stale if total_too else w)
        total = w_total.sum(0)
        wrong_v = divided((w_v[..., None] * drop_unused(w, v)).sum(0), total)
        return wrong_v, largest(s, 0) + torch.log2(torch.where(total == 0, 1.0, total))

    return formula


def upside_down(block: int) -> Rule:
    """What was summed under an old maximum is scaled by 2^(m_new - m_old), which is at least 1."""

    def formula(v: Tensor, s: Tensor):
        if not len(s):
            return merge(v, s)
        m = torch.cummax(s.double(), 0).values
        ends = ((torch.arange(len(s)) // block + 1) * block - 1).clamp(max=len(s) - 1)
        at, last = finite_shift(m[ends]), finite_shift(m[-1])
        w = torch.where(m[ends] == -torch.inf, 0.0, torch.exp2(s.double() - at) * torch.exp2(last - at))
        total = w.sum(0)
        v = divided((w[..., None] * drop_unused(w, v)).sum(0), total)
        return v, m[-1] + torch.log2(torch.where(total == 0, 1.0, total))

    return formula


def scaled_by_e(block: int) -> Rule:
    """What was summed under an old maximum is scaled by e^(m_old - m_new), while the weights are powers of 2."""

    def formula(v: Tensor, s: Tensor):
        if not len(s):
            return merge(v, s)
        m = torch.cummax(s.double(), 0).values
        ends = ((torch.arange(len(s)) // block + 1) * block - 1).clamp(max=len(s) - 1)
        at, last = finite_shift(m[ends]), finite_shift(m[-1])
        w = torch.where(m[ends] == -torch.inf, 0.0, torch.exp2(s.double() - at) * torch.exp(at - last))
        total = w.sum(0)
        v = divided((w[..., None] * drop_unused(w, v)).sum(0), total)
        return v, m[-1] + torch.log2(torch.where(total == 0, 1.0, total))

    return formula


# Empty states.


def nan_from_the_start(block: int, in_s: str, no_states: bool) -> Rule:
    """A running max with no guard: NaN where the first `block` states are all empty.

    in_s: s is NaN as well; a guard has made the "max" of it; or "empty". no_states: is v 0 / 0 where there is none?
    """

    def formula(v: Tensor, s: Tensor):
        right_v, right_s = merge(v, s)
        if not len(s):
            return (right_v + torch.nan if no_states else right_v), right_s
        bad = largest(s[:block], 0) == -torch.inf
        wrong_s = {"nan": torch.nan, "max": largest(s, 0), "empty": -torch.inf}[in_s]
        return right_v.masked_fill(bad[..., None], torch.nan), torch.where(bad, wrong_s, right_s)

    return formula


def zero_kept(block: int, guarded: bool, s_of_none: float) -> Rule:
    """The 0 that is shifted by while all states are empty stays the max: where the first `block` are, in float32.

    guarded: is v divided by 1 where no weight is left? s_of_none: what s is there.
    """

    def formula(v: Tensor, s: Tensor):
        empty = largest(s[:block], 0) == -torch.inf
        m = torch.where(empty, largest(s, 0).clamp(min=0.0), finite_shift(largest(s, 0)))
        w = torch.exp2((s.double() - m).float()).double()
        total = w.sum(0)
        summed = (w[..., None] * drop_unused(w, v)).sum(0)
        merged = torch.where(total == 0, s_of_none, m + torch.log2(total))
        return divided(summed, total) if guarded else summed / total[..., None], merged

    return formula
