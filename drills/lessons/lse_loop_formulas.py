"""What l3's misconceptions about the loop, the range and the address yield, in float64 tensors.

A formula takes the arguments of its exercise. What overflows or vanishes in float32 is computed in float32. Never used
by graded code.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from drills.lessons import oracle, split_formulas
from drills.lessons.lse_formulas import Rule, right
from drills.lessons.oracle import LOG2_E, finite_shift, largest
from drills.lessons.running import UPSIDE_DOWN_FROM_THE_START
from drills.lessons.softmax_formulas import Recurrence

BLOCKS = (256, 16, 32, 64, 128, 512, 1024, 2048, 4096)
"""Columns a step."""

# lse and lse2: x[M, N] → [M]. factor: 1 for a natural LSE, log2(e) for base 2.


def by_rule(rule: Recurrence, block: int, factor: float) -> Callable[..., tuple]:
    """The recurrence as `rule` has it; a row with no score gives -inf."""

    def formula(x):
        m, l, _ = rule.run(x, block)
        return ((m + torch.log(l)) * factor,)

    return formula


def in_blocks(rule: Recurrence, factor: float) -> dict:
    """In blocks of every size: what a Mistake takes."""
    rules = (rule, UPSIDE_DOWN_FROM_THE_START) if rule.rescale_l == "inverted" else (rule,)
    first, *others = (by_rule(one, block, factor) for one in rules for block in BLOCKS)
    return {"formula": first, "variants": tuple(others)}


def started(starts: tuple[float, ...], factor: float) -> dict:
    """The running max starts at one of these."""
    first, *others = (by_rule(Recurrence(start=start, single=True), 256, factor) for start in starts)
    return {"formula": first, "variants": tuple(others)}


def first_block(block: int, factor: float) -> Callable[..., tuple]:
    """Only the first block of the row is looked at."""
    return lambda x: (oracle.lse(x[:, :block]) * factor,)


def _of_blocks(x, block: int):
    """The LSE of every block of the row, [blocks, M]; of the one block that there is in a row without columns."""
    return torch.stack([oracle.lse(part) for part in x.split(block, 1)] if x.shape[1] else [oracle.lse(x)])


def blocks_added(block: int, factor: float) -> Callable[..., tuple]:
    """The LSEs of the blocks added up; those of blocks with no score left out."""

    def formula(x):
        each = _of_blocks(x, block)
        empty = each == -torch.inf
        return (torch.where(empty.all(0), -torch.inf, torch.where(empty, 0.0, each).sum(0) * factor),)

    return formula


def largest_of_blocks(block: int, factor: float) -> Callable[..., tuple]:
    """The largest of the blocks' LSEs."""
    return lambda x: (_of_blocks(x, block).amax(0) * factor,)


def masked_beginning(block: int, factor: float, guarded: bool) -> Callable[..., tuple]:
    """l is NaN where the first block holds no score; guarded: 1 takes the place of an l that is not positive."""

    def formula(x):
        m, l, _ = Recurrence(guard=False).run(x, block)
        return ((m + torch.log(torch.where(l > 0, l, 1.0) if guarded else l)) * factor,)

    return formula


def zero_kept(block: int, factor: float, guarded: bool) -> Callable[..., tuple]:
    """The 0 that is subtracted while the max is -inf becomes the max. guarded: 1 takes the place of an l of 0."""

    def formula(x):
        m, l, _ = Recurrence(kept=True, single=True).run(x, block)
        return ((m + torch.log(torch.where((l == 0) & guarded, 1.0, l))) * factor,)

    return formula


def scores_in_half(dtype: torch.dtype | None, constant_too: bool) -> Callable[..., tuple]:
    """lse2 of scores that are rounded after they were scaled; dtype: None for that of x."""

    def formula(x):
        half = dtype or x.dtype
        factor = torch.tensor(LOG2_E, dtype=torch.float64)
        factor = factor.to(half).double() if constant_too else factor
        return (oracle.lse2((x.double() * factor).to(half).double() / LOG2_E),)

    return formula


# merge_natural: rules for states along axis 0.


def with_epsilon(epsilon: float) -> Rule:
    """log(total + epsilon), and 0 for a max of -inf."""

    def rule(v, s):
        top = finite_shift(largest(s, 0))
        return None, top + torch.log(torch.exp(s - top).sum(0) + epsilon)

    return rule


def shifted_by_side(side: int, guarded: bool) -> Rule:
    """The LSE of one side is subtracted, in float32; the other's where that is -inf and guarded."""

    def rule(v, s):
        off = torch.where((s[side] == -torch.inf) & guarded, finite_shift(largest(s, 0)), s[side])
        w = torch.exp((s - off).float()).double()
        total = w.sum(0)
        used = torch.where(w[..., None] > 0, v, 0.0)
        total = torch.where(guarded & (total == 0), 1.0, total)
        merged = torch.where(guarded & (largest(s, 0) == -torch.inf), -torch.inf, off + torch.log(total))
        return (w[..., None] * used).sum(0) / total[..., None], merged

    return rule


def sign_flipped(v, s):
    """max + ln(1 + exp(max - min)); the output is right."""
    high, low = torch.maximum(*s), torch.minimum(*s)
    return right(v, s)[0], high + torch.log1p(torch.exp(high - low))


# partial_states: l2's partial_attention, a query at a time, m and l folded into s.


def lifted(split: Callable[..., tuple]) -> Callable[..., tuple]:
    """A formula for one query q[H, D] → m, l, o, put to q[S, H, D] → v[S, N, H, D], s[S, N, H]."""

    def formula(q, k, v, num_splits, scale=None):
        if not len(q):
            empty = torch.zeros(0, num_splits, *q.shape[1:], dtype=torch.float64)
            return empty, empty[..., 0]
        triples = [split(one, k, v, num_splits, scale) for one in q]
        m, l, o = (torch.stack(items) for items in zip(*triples, strict=True))
        return o, (m + torch.log(l)) * LOG2_E

    return formula


def rule_of_states(rule: Recurrence, block: int, guarded: bool = True) -> Callable[..., tuple]:
    return lifted(split_formulas.by_rule(rule, block, m_kept=False, guarded=guarded))


def q_of_position_0(q, k, v, num_splits, scale=None):
    """The position is missing in the address of q."""
    return states_right(q[:1].expand_as(q), k, v, num_splits, scale)


def stored_parts_first(q, k, v, num_splits, scale=None):
    """The results of position i, part n stored where [N, S] would have them."""
    return tuple(x.transpose(0, 1).reshape(x.shape) for x in states_right(q, k, v, num_splits, scale))


def stored_heads_first(q, k, v, num_splits, scale=None):
    """Stored where [S, H, N] would have them."""
    return tuple(x.transpose(1, 2).reshape(x.shape) for x in states_right(q, k, v, num_splits, scale))


states_right = lifted(split_formulas.right)
