"""Lesson 2, FlashDecoding's triple: its exercises, their float64 oracle, bytes floor and bench shapes.

The mistakes that are recognized stand in triple_mistakes.py, the maths in oracle.py and parts.py.
"""

from __future__ import annotations

import functools

import torch

from drills.lessons import oracle
from drills.lessons.base import Args, BenchCase, Exercise, Lesson, Output
from drills.lessons.oracle import finite_shift, largest, largest_finite
from drills.lessons.parts import nbytes, partial, scores, spans, used_bytes
from drills.lessons.split_mistakes import WHOLE
from drills.lessons.strides import read_about
from drills.lessons.triple_draws import draw_pair, draw_partial, draw_parts
from drills.lessons.triple_mistakes import MISTAKES

TWICE = 2.05
"""partial_attention: k once more than needed is allowed, every part reading all keys is not."""


def partial_oracle(q, k, v, num_splits, scale=None):
    """Each part an attention of its own."""
    return partial(scores(q, k, scale), v, spans(len(k), num_splits))


def pair_oracle(m_a, l_a, o_a, m_b, l_b, o_b):
    """The two parts as one."""
    return oracle.merge_mlo(torch.stack([m_a, m_b]), torch.stack([l_a, l_b]), torch.stack([o_a, o_b]))


def _floor_partial(q, k, v, num_splits, scale=None) -> int:
    """q, k, v once; m, l and o of every part, 4 bytes a number."""
    return nbytes(q, k, v) + num_splits * q.shape[0] * (q.shape[1] + 2) * 4


def _must_read_partial(q, k, v, num_splits, scale=None) -> int:
    """k, and the rows of v whose weight is felt in their part."""
    x = scores(q, k, scale)
    relative = [x[..., part] - finite_shift(largest(x[..., part]))[..., None] for part in spans(len(k), num_splits)]
    return nbytes(k) + used_bytes(torch.cat(relative, -1), v)


def _must_read_merge(m, l, o) -> int:
    """m, and l and o of the parts that weigh something."""
    relative = m.double() - finite_shift(largest(m, 0))
    return nbytes(m) + used_bytes(relative, l[..., None]) + used_bytes(relative, o)


def _must_read_pair(m_a, l_a, o_a, m_b, l_b, o_b) -> int:
    m = torch.stack([m_a, m_b])
    a, b = m.double() - finite_shift(largest(m, 0))
    felt = used_bytes(a, l_a[..., None]) + used_bytes(a, o_a) + used_bytes(b, l_b[..., None]) + used_bytes(b, o_b)
    return nbytes(m) + felt


EXERCISES = (
    Exercise(
        name="partial_attention",
        signature="partial_attention(q[H, D], k[L, H, D], v[L, H, D], num_splits, scale=None)"
        " -> (m[N, H], l[N, H], o[N, H, D])",
        oracle=partial_oracle,
        outputs=(Output("m", "lse", "float32"), Output("l", "l", "float32"), Output("o", "value", "float32")),
        reads=0,
        score_bound=lambda q, k, v, num_splits, scale=None: largest_finite(scores(q, k, scale)),
        draw=draw_partial,
        floor=_floor_partial,
        limit=TWICE,
        must_read=_must_read_partial,
        load_width=16,
    ),
    Exercise(
        name="merge_pair",
        signature="merge_pair(m_a[H], l_a[H], o_a[H, D], m_b[H], l_b[H], o_b[H, D]) -> (m[H], l[H], o[H, D])",
        oracle=pair_oracle,
        outputs=(Output("m", "m", "float32"), Output("l", "l", "float32"), Output("o", "value")),
        reads=2,
        score_bound=lambda m_a, l_a, o_a, m_b, l_b, o_b: largest_finite(m_a, m_b),
        draw=draw_pair,
        must_read=_must_read_pair,
        load_width=16,
    ),
    Exercise(
        name="merge_mlo",
        signature="merge_mlo(m[N, H], l[N, H], o[N, H, D]) -> o[H, D]",
        oracle=lambda m, l, o: (oracle.merge_mlo(m, l, o)[2],),
        outputs=(Output("o", "value"),),
        reads=2,
        score_bound=lambda m, l, o: largest_finite(m),
        draw=draw_parts,
        must_read=_must_read_merge,
    ),
)


def bench_partial(device, dtype, rng, *, keys: int, num_splits: int) -> Args:
    """One query of 32 heads of 128."""
    shapes = ((32, 128), (keys, 32, 128), (keys, 32, 128))
    return *(torch.randn(*shape, generator=rng, device=device, dtype=dtype) for shape in shapes), num_splits


BENCH = tuple(
    BenchCase(
        "partial_attention", f"L={keys} N={splits}", functools.partial(bench_partial, keys=keys, num_splits=splits)
    )
    for keys, splits in ((8192, 16), (8192, 32), (131072, 64))
)

LESSON = Lesson("l2_mlo_merge", "FlashDecoding's triple", EXERCISES, MISTAKES, BENCH, read_about(WHOLE))
