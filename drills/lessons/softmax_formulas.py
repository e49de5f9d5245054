"""What l1's misconceptions yield, from one simulation of the recurrence with a fault built in.

Never used by graded code. A formula takes the arguments of its exercise and answers in float64 tensors.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from drills.lessons.oracle import finite_shift, softmax, softmax_stats

BLOCKS = (1, 16, 32, 64, 128, 256, 1024)
"""Columns a step that code may use in place of the block it was given, which is a hint."""


MOST_STEPS = 600
"""More steps take a formula too long, and code hardly goes through a long row one score at a time."""


def too_long(x: Tensor, block: int) -> bool:
    """Would a row take more than MOST_STEPS?"""
    return x.shape[1] > MOST_STEPS * block


def never(x: Tensor, columns: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """m, l and o that no code yields, and which therefore explain nothing."""
    one = torch.full(x.shape[:1], -1.0, dtype=torch.float64)
    return one, one, torch.full((x.shape[0], columns), 2.0**60, dtype=torch.float64)


@dataclass(frozen=True)
class Recurrence:
    """The recurrence of l1 as someone wrote it. The defaults are the right one.

    start: the running max before the first block. running: does the max run, or is it the block's own?
    rescale_l, rescale_o: "keep" for exp(m - m_new), "none", "inverted" for exp(m_new - m).
    pad: score of the columns that fill the last block. shift: is the max subtracted at all?
    moves: is the running max m_new from a step to the next, or what it was at the start?
    guard: is 0 subtracted where the max is -inf? kept: does that 0 become the max?
    first_step: does an inverted factor skip the first block?
    divide: is o divided by l after every block, and by nothing at the end?
    half: are the sums kept in the input's dtype? single: computed in float32, for overflow, or in float64?
    block: columns a step; None for the block of the call.
    """

    start: float = -math.inf
    running: bool = True
    moves: bool = True
    rescale_l: str = "keep"
    rescale_o: str = "keep"
    pad: float = -math.inf
    shift: bool = True
    guard: bool = True
    kept: bool = False
    first_step: bool = True
    divide: bool = False
    half: bool = False
    single: bool = False
    block: int | None = None

    def run(self, x: Tensor, block: int, v: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """x[M, N], v[N, D] → m[M], l[M], and the unnormalized o[M, D] (zeros[M, 0] without v).

        With `divide` o is what that leaves, times the last l.
        """
        block = self.block or block
        if too_long(x, block):
            return never(x, 0 if v is None else v.shape[1])
        real = torch.float32 if self.single else torch.float64
        sums = (x.dtype if v is None else v.dtype) if self.half else real
        more = -x.shape[1] % block
        v = x.new_zeros(x.shape[1], 0) if v is None else v
        v = torch.cat([v.to(real), torch.zeros(more, v.shape[1], dtype=real)])
        x = torch.cat([x.to(real), torch.full((x.shape[0], more), self.pad, dtype=real)], 1)
        m = torch.full(x.shape[:1], self.start, dtype=real)
        l = torch.zeros(x.shape[:1], dtype=sums)
        o = torch.zeros(x.shape[0], v.shape[1], dtype=sums)
        for start in range(0, x.shape[1], block):
            step = x[:, start : start + block]
            top = step.amax(1)
            m_new = torch.maximum(m, top) if self.running else top
            off = finite_shift(m_new) if self.guard else m_new
            off = off if self.shift else torch.zeros_like(off)
            w = torch.exp(step - off[:, None])
            l = (l * self.factor(self.rescale_l, m, m_new, off) + w.sum(1)).to(sums)
            o = (o * self.factor(self.rescale_o, m, m_new, off)[:, None] + w @ v[start : start + block]).to(sums)
            if self.divide:
                o = o / torch.where(l == 0, 1.0, l)[:, None]
            m_new = off if self.kept else m_new
            m = m_new if self.moves else m
        o = o * l[:, None] if self.divide else o
        return m.double(), l.double(), o.double()

    def factor(self, how: str, m: Tensor, m_new: Tensor, off: Tensor) -> Tensor:
        """What the old sums are multiplied by."""
        if how == "none" or not self.shift:
            return torch.ones_like(m)
        if how == "keep":
            return torch.exp(m - off)
        factor = torch.exp(m_new - m)
        return torch.where(m == -math.inf, 0.0, factor) if self.first_step else factor


def v_and_block(given: tuple) -> tuple[list[Tensor], int]:
    """What follows the scores in a call: v, of attend alone, and the block, which may be left out."""
    v = [one for one in given if isinstance(one, Tensor)]
    return v, given[-1] if len(given) > len(v) else 64 if v else 1024


def in_blocks(write: Callable, rule: Recurrence, **more) -> dict:
    """`write(rule)` in the blocks of the call, and as variants in blocks of other sizes: what a Mistake takes."""
    others = tuple(write(replace(rule, block=block), **more) for block in BLOCKS)
    return {"formula": write(rule, **more), "variants": others}


def stats(rule: Recurrence, back: bool = False) -> Callable[..., tuple]:
    """softmax_stats written with `rule`; back: m is -inf after all where l is 0."""

    def formula(x: Tensor, block: int = 1024):
        m, l, _ = rule.run(x, block)
        return torch.where((l == 0) & back, -math.inf, m), l

    return formula


def stats_unshifted(x: Tensor, block: int = 1024):
    """m is right; l is the plain sum of exp(x), in float32."""
    return softmax_stats(x)[0], torch.exp(x.float()).sum(-1).double()


def normalized(
    rule: Recurrence, guarded: bool = False, positive: bool = False, guarded_last: bool = False
) -> Callable[..., tuple]:
    """softmax written with `rule`; guarded: a sum of 0 is not divided by; positive: nor is one of NaN.

    guarded_last: is 0 subtracted where the max is -inf when the results are computed, whatever `rule` does before?
    """

    def formula(x: Tensor, block: int = 1024):
        m, l, _ = rule.run(x, block)
        real = torch.float32 if rule.single else torch.float64
        off = finite_shift(m) if rule.guard or guarded_last else m
        off = off if rule.shift else torch.zeros_like(off)
        w = torch.exp(x.to(real) - off[:, None].to(real)).double()
        total = torch.where(l == 0, 1.0, l) if guarded else l
        total = torch.where(l > 0, l, 1.0) if positive else total
        return (w / total[:, None],)

    return formula


def not_normalized(x: Tensor, block: int = 1024):
    m, _ = softmax_stats(x)
    return (torch.exp(x.double() - finite_shift(m)[:, None]),)


def empty_rows_nan(x: Tensor, block: int = 1024):
    """0 / 0 in rows with no score."""
    return (torch.where(softmax_stats(x)[1][:, None] == 0, math.nan, softmax(x)),)


def block_by_block(x: Tensor, block: int = 1024):
    """Each block a softmax of its own."""
    return (torch.cat([softmax(part) for part in x.split(block, 1)], 1) if x.shape[1] else x.double(),)


def as_it_goes(block: int | None = None, guarded: bool = True) -> Callable[..., tuple]:
    """softmax with every block divided by what l is by then; guarded: a sum of 0 is not divided by."""

    def formula(x: Tensor, of_call: int = 1024):
        size = block or of_call
        if too_long(x, size):
            return (torch.full(x.shape, 2.0**60, dtype=torch.float64),)
        done = [x.new_zeros(x.shape[0], 0).double()]
        for start in range(0, x.shape[1], size):
            m, l = softmax_stats(x[:, : start + size])
            l = torch.where(l == 0, 1.0, l) if guarded else l
            done.append(torch.exp(x[:, start : start + size].double() - finite_shift(m)[:, None]) / l[:, None])
        return (torch.cat(done, 1),)

    return formula


def attended(rule: Recurrence, guarded: bool = True) -> Callable[..., tuple]:
    """attend written with `rule`; guarded: a sum of 0 is not divided by."""

    def formula(scores: Tensor, v: Tensor, block: int = 64):
        _, l, o = rule.run(scores, block, v)
        return (o / (torch.where(l == 0, 1.0, l) if guarded else l)[:, None],)

    return formula


def attend_not_normalized(scores: Tensor, v: Tensor, block: int = 64):
    return (Recurrence().run(scores, block, v)[2],)


def attend_averaged(scores: Tensor, v: Tensor, block: int = 64):
    """Every block normalized by itself, and the blocks' outputs averaged."""
    if not len(v):
        return (scores.double() @ v.double(),)
    pairs = zip(scores.split(block, 1), v.split(block, 0), strict=True)
    return (torch.stack([softmax(x) @ u.double() for x, u in pairs]).mean(0),)
