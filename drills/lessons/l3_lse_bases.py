"""Lesson 3, natural and base-2 LSE: its exercises, their float64 oracle and bytes floor.

The mistakes that are recognized stand in lse_mistakes.py, the maths in oracle.py and parts.py.
"""

from __future__ import annotations

import math

import torch

from drills.lessons import oracle
from drills.lessons.base import Exercise, Lesson, Output
from drills.lessons.lse_draws import draw_lse, draw_pair, draw_partial, draw_rows
from drills.lessons.lse_mistakes import MISTAKES
from drills.lessons.oracle import LOG2_E, finite_shift, largest, largest_finite
from drills.lessons.parts import nbytes, partial, scores, spans, used_bytes
from drills.lessons.state_mistakes import ADDRESS
from drills.lessons.strides import read_about

TWICE = 2.05
"""LESSONS.md states no bound here: one read more than needed is allowed."""


def merge_oracle(o_a, lse_a, o_b, lse_b):
    """oracle.merge with natural weights."""
    return oracle.merge(torch.stack([o_a, o_b]), torch.stack([lse_a, lse_b]), exp=torch.exp, log=torch.log)


def to_flashinfer_oracle(lse):
    """Both infinities are empty rows."""
    return (torch.where(lse == math.inf, -math.inf, lse.double() * LOG2_E).t(),)


def states_oracle(q, k, v, num_splits, scale=None):
    """Each part an attention of its own, m and l folded into one number."""
    m, l, o = partial(scores(q, k, scale), v, spans(len(k), num_splits))  # [N, S, H] and [N, S, H, D]
    s = (m + torch.log(torch.where(l == 0, 1.0, l))) * LOG2_E
    return o.transpose(0, 1), s.transpose(0, 1)


def _must_read_merge(o_a, lse_a, o_b, lse_b) -> int:
    """Both LSEs, and the outputs that weigh something."""
    lse = torch.stack([lse_a, lse_b]).double()
    a, b = lse - finite_shift(largest(lse, 0))
    return nbytes(lse_a, lse_b) + used_bytes(a, o_a) + used_bytes(b, o_b)


def _floor_states(q, k, v, num_splits, scale=None) -> int:
    """k and v once for a query, q once; v and s of every part, 4 bytes a number."""
    S, H, D = q.shape
    return nbytes(q) + S * nbytes(k, v) + S * num_splits * H * (D + 1) * 4


def _must_read_states(q, k, v, num_splits, scale=None) -> int:
    """k, and the rows of v whose weight is felt in a part of some query."""
    if not len(q):
        return 0
    x = scores(q, k, scale)
    relative = [x[..., part] - finite_shift(largest(x[..., part]))[..., None] for part in spans(len(k), num_splits)]
    return nbytes(k) + used_bytes(torch.cat(relative, -1).amax(0), v)


EXERCISES = (
    Exercise(
        name="lse",
        signature="lse(x[M, N]) -> lse[M]",
        oracle=lambda x: (oracle.lse(x),),
        outputs=(Output("lse", "lse", "float32"),),
        reads=0,
        score_bound=largest_finite,
        draw=draw_rows,
        floor=lambda x: nbytes(x) + 4 * len(x),
        limit=TWICE,
        must_read=nbytes,
    ),
    Exercise(
        name="lse2",
        signature="lse2(x[M, N]) -> s[M]",
        oracle=lambda x: (oracle.lse2(x),),
        outputs=(Output("s", "lse", "float32"),),
        reads=0,
        score_bound=largest_finite,
        draw=draw_rows,
        floor=lambda x: nbytes(x) + 4 * len(x),
        limit=TWICE,
        must_read=nbytes,
    ),
    Exercise(
        name="merge_natural",
        signature="merge_natural(o_a[S, H, D], lse_a[S, H], o_b[S, H, D], lse_b[S, H]) -> (o[S, H, D], lse[S, H])",
        oracle=merge_oracle,
        outputs=(Output("o", "value"), Output("lse", "lse", "float32")),
        reads=0,
        score_bound=lambda o_a, lse_a, o_b, lse_b: largest_finite(lse_a, lse_b),
        draw=draw_pair,
        floor=lambda o_a, lse_a, o_b, lse_b: nbytes(o_a, lse_a, o_b, lse_b, o_a, lse_a),
        limit=TWICE,
        must_read=_must_read_merge,
        load_width=16,
    ),
    Exercise(
        name="to_flashinfer",
        signature="to_flashinfer(lse[H, T]) -> s[T, H]",
        oracle=to_flashinfer_oracle,
        outputs=(Output("s", "lse", "float32"),),
        reads=0,
        score_bound=largest_finite,
        draw=draw_lse,
        floor=lambda lse: 2 * nbytes(lse),
        limit=TWICE,
        must_read=nbytes,
    ),
    Exercise(
        name="partial_states",
        signature="partial_states(q[S, H, D], k[L, H, D], v[L, H, D], num_splits, scale=None)"
        " -> (v[S, N, H, D], s[S, N, H])",
        oracle=states_oracle,
        outputs=(Output("v", "value", "float32"), Output("s", "lse", "float32")),
        reads=0,
        score_bound=lambda q, k, v, num_splits, scale=None: largest_finite(scores(q, k, scale)) * LOG2_E,
        draw=draw_partial,
        floor=_floor_states,
        limit=TWICE,
        must_read=_must_read_states,
        load_width=16,
    ),
)

LESSON = Lesson("l3_lse_bases", "Natural and base-2 LSE", EXERCISES, MISTAKES, reads=read_about(ADDRESS))
