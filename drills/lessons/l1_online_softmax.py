"""Lesson 1, the online softmax: its exercises, their float64 oracle, bytes floor and bench shapes.

The mistakes that are recognized stand in softmax_mistakes.py, the maths in oracle.py.
"""

from __future__ import annotations

import functools

import torch

from drills.lessons import oracle
from drills.lessons.base import Args, BenchCase, Exercise, Lesson, Output
from drills.lessons.oracle import largest_finite
from drills.lessons.softmax_draws import draw_attend, draw_rows
from drills.lessons.softmax_mistakes import MISTAKES
from drills.lessons.softmax_parts import ROW
from drills.lessons.strides import read_about


def _bytes(*tensors: torch.Tensor) -> int:
    return sum(t.numel() * t.element_size() for t in tensors)


def _bound(scores: torch.Tensor, *_) -> float:
    """The largest |score|, up to 2^20: from there on the tolerance's 2⁻²² term would soon let any weights pass."""
    return min(largest_finite(scores), 2.0**20)


def _floor_stats(x: torch.Tensor, block: int = 1024) -> int:
    """x once; m and l, 4 bytes each, of every row."""
    return _bytes(x) + 8 * x.shape[0]


def _floor_attend(scores: torch.Tensor, v: torch.Tensor, block: int = 64) -> int:
    """Every score once, v once for a row of scores, o once."""
    rows = scores.shape[0]
    return _bytes(scores) + rows * _bytes(v) + rows * v.shape[1] * v.element_size()


WITH_WORKSPACE = 1.2
"""One read, and room for parts of 64 columns that leave their m, l and o for a second launch: 13 % at most here."""

EXERCISES = (
    Exercise(
        name="softmax_stats",
        signature="softmax_stats(x[M, N], block=1024) -> (m[M], l[M])",
        oracle=lambda x, block=1024: oracle.softmax_stats(x),
        outputs=(Output("m", "m", "float32"), Output("l", "l", "float32")),
        reads=0,
        score_bound=_bound,
        draw=draw_rows,
        floor=_floor_stats,
        limit=WITH_WORKSPACE,
        must_read=lambda x, block=1024: _bytes(x),
    ),
    Exercise(
        name="softmax",
        signature="softmax(x[M, N], block=1024) -> y[M, N]",
        oracle=lambda x, block=1024: (oracle.softmax(x),),
        outputs=(Output("y", "value"),),
        reads=0,
        score_bound=_bound,
        draw=draw_rows,
        floor=lambda x, block=1024: 2 * _bytes(x),
        limit=1.7,  # two reads and one write are 1.5 times one of each; the rest is room for a workspace, as above
        must_read=lambda x, block=1024: _bytes(x),
    ),
    Exercise(
        name="attend",
        signature="attend(scores[M, N], v[N, D], block=64) -> o[M, D]",
        oracle=lambda scores, v, block=64: (oracle.attend(scores, v),),
        outputs=(Output("o", "value"),),
        reads=1,
        score_bound=_bound,
        draw=draw_attend,
        floor=_floor_attend,
        limit=WITH_WORKSPACE,
        must_read=lambda scores, v, block=64: _bytes(scores),
        load_width=16,
    ),
)


def bench_softmax(device, dtype, rng, *, rows: int, columns: int) -> Args:
    """Ordinary scores, the default block."""
    return (torch.randn(rows, columns, generator=rng, device=device, dtype=dtype),)


BENCH = tuple(
    BenchCase(exercise, f"M={rows} N={columns}", functools.partial(bench_softmax, rows=rows, columns=columns))
    for exercise in ("softmax_stats", "softmax")
    for rows, columns in ((4096, 1024), (4096, 32768), (128, 262144))
)

LESSON = Lesson("l1_online_softmax", "Softmax in one pass", EXERCISES, MISTAKES, BENCH, read_about(ROW))
