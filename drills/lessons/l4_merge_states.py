"""Lesson 4, FlashInfer's merge API: its exercises, their float64 oracle, bytes floors and bench shapes.

What is right is one rule, `oracle.merge`; merge_lift.py puts it to the arguments of each exercise. The mistakes that
are recognized stand in merge_mistakes.py, merge_own_mistakes.py and merge_run_mistakes.py, the small
cases in merge_cases.py.
"""

from __future__ import annotations

import functools

import torch
from torch import Tensor

from drills.lessons import merge_cases as draws
from drills.lessons.base import Args, BenchCase, Exercise, Lesson, Output
from drills.lessons.merge_lift import in_place, on_many, on_runs, on_two
from drills.lessons.merge_mistakes import MISTAKES
from drills.lessons.merge_own_mistakes import OWN_MISTAKES
from drills.lessons.merge_rules import weights
from drills.lessons.merge_run_mistakes import RUN_MISTAKES
from drills.lessons.oracle import largest_finite, merge
from drills.lessons.strides import read_about

FLOAT = 4
"""Bytes of one s."""

FELT = 2.0**-20
"""A state with a smaller weight does not show in the result: nobody has to read its values."""


def row_bytes(v: Tensor) -> int:
    """Bytes of one state: D values and its s."""
    return v.shape[-1] * v.element_size() + FLOAT


def merge_state_floor(v_a: Tensor, s_a: Tensor, v_b: Tensor, s_b: Tensor) -> int:
    """S * H * (3 * D * b + 12) where a and b share a dtype: read two states, write one."""
    return s_a.numel() * (2 * row_bytes(v_a) + row_bytes(v_b))


def in_place_floor(v: Tensor, s: Tensor, v_other: Tensor, s_other: Tensor, mask: Tensor | None = None) -> int:
    """Read both values of every position that changes."""
    changed = len(v) if mask is None else int(mask.sum())
    return v[:changed].numel() * (v.element_size() + v_other.element_size())


def merge_states_floor(v: Tensor, s: Tensor) -> int:
    """S * H * (N + 1) * (D * b + 4): read N states, write one."""
    S, N, H = s.shape
    return S * H * (N + 1) * row_bytes(v)


def runs_floor(v: Tensor, s: Tensor, indptr: Tensor) -> int:
    """Read the values of every row of a run."""
    return int(indptr[-1] - indptr[0]) * v[:1].numel() * v.element_size()


def read_of_states(v: Tensor, s: Tensor) -> int:
    """Bytes of v[N, ..., D] and s[N, ...] that a merge along axis 0 depends on."""
    felt = int((weights(s) > FELT).sum())
    return felt * v.shape[-1] * v.element_size() + s.numel() * FLOAT


def merge_state_reads(v_a: Tensor, s_a: Tensor, v_b: Tensor, s_b: Tensor) -> int:
    w = weights(torch.stack([s_a, s_b])) > FELT
    a, b = int(w[0].sum()), int(w[1].sum())
    return a * (row_bytes(v_a) - FLOAT) + b * (row_bytes(v_b) - FLOAT) + 2 * s_a.numel() * FLOAT


def in_place_reads(v: Tensor, s: Tensor, v_other: Tensor, s_other: Tensor, mask: Tensor | None = None) -> int:
    """Of the positions that change: s_other, and where that is felt, the values too. The own v may stay as it is."""
    if mask is not None:
        s, s_other = s[mask], s_other[mask]
    w = weights(torch.stack([s, s_other])) > FELT
    other, both = int(w[1].sum()), int((w[0] & w[1]).sum())
    return other * (row_bytes(v_other) - FLOAT) + both * row_bytes(v) + s_other.numel() * FLOAT


def merge_states_reads(v: Tensor, s: Tensor) -> int:
    return read_of_states(v.movedim(1, 0), s.movedim(1, 0))


def runs_reads(v: Tensor, s: Tensor, indptr: Tensor) -> int:
    bounds = indptr.tolist()
    return sum(read_of_states(v[a:b], s[a:b]) for a, b in zip(bounds, bounds[1:], strict=False))


V = Output("v", "value")
S = Output("s", "lse", "float32")

EXERCISES = (
    Exercise(
        name="merge_state",
        signature="merge_state(v_a[S, H, D], s_a[S, H], v_b, s_b) -> (v[S, H, D], s[S, H])",
        oracle=on_two(merge),
        outputs=(V, S),
        reads=0,
        score_bound=lambda v_a, s_a, v_b, s_b: largest_finite(s_a, s_b),
        draw=draws.cases(draws.two_args),
        floor=merge_state_floor,
        must_read=merge_state_reads,
        load_width=16,
    ),
    Exercise(
        name="merge_state_in_place",
        signature="merge_state_in_place(v[S, H, D], s[S, H], v_other, s_other, mask[S]=None)",
        oracle=in_place(merge),
        outputs=(Output("v", "value", inplace=0), Output("s", "lse", "float32", inplace=1)),
        reads=0,
        score_bound=lambda v, s, v_other, s_other, mask=None: largest_finite(s, s_other),
        draw=draws.cases(draws.masked_args),
        floor=in_place_floor,
        counted=("v", "v_other"),
        must_read=in_place_reads,
        load_width=16,
    ),
    Exercise(
        name="merge_states",
        signature="merge_states(v[S, N, H, D], s[S, N, H]) -> (v[S, H, D], s[S, H])",
        oracle=on_many(merge),
        outputs=(V, S),
        reads=0,
        score_bound=lambda v, s: largest_finite(s),
        draw=draws.cases(draws.many_args),
        floor=merge_states_floor,
        must_read=merge_states_reads,
        load_width=16,
    ),
    Exercise(
        name="variable_length_merge_states",
        signature="variable_length_merge_states(v[M, H, D], s[M, H], indptr[S + 1]) -> (v[S, H, D], s[S, H])",
        oracle=on_runs(merge),
        outputs=(V, S),
        reads=0,
        score_bound=lambda v, s, indptr: largest_finite(s),
        draw=draws.cases(draws.uneven_runs, S=3, N=4),
        floor=runs_floor,
        counted=("v",),
        must_read=runs_reads,
        load_width=16,
    ),
)


def normal(shape: tuple[int, ...], device, dtype, rng) -> tuple[Tensor, Tensor]:
    """States of this shape, D last: v normal in `dtype`, s normal in float32."""
    v = torch.randn(shape, generator=rng, device=device, dtype=dtype)
    return v, torch.randn(shape[:-1], generator=rng, device=device)


def bench_two(device, dtype, rng, *, S: int, H: int, D: int) -> Args:
    """Two states of every position and head."""
    return (*normal((S, H, D), device, dtype, rng), *normal((S, H, D), device, dtype, rng))


def bench_many(device, dtype, rng, *, S: int, N: int) -> Args:
    """N states of 32 heads of 128."""
    return normal((S, N, 32, 128), device, dtype, rng)


def _bench() -> tuple[BenchCase, ...]:
    two = [(S, 32, 128) for S in (64, 512, 2048, 8192, 32768)]
    two += [(8192, 32, 64), (8192, 8, 256), (4096, 128, 128), (8192, 1, 128)]
    two += [(8192, 32, D) for D in (80, 96, 192)]
    many = [(1, 256), (64, 4), (64, 64), (64, 512), (1024, 2), (1024, 8), (1024, 32), (4096, 4), (4096, 16)]
    many += [(16, 1024), (2048, 100)]
    cases = [
        BenchCase(name, f"S={S} H={H} D={D}", functools.partial(bench_two, S=S, H=H, D=D))
        for name in ("merge_state", "merge_state_in_place")
        for S, H, D in two
    ]
    return (
        *cases,
        *(BenchCase("merge_states", f"S={S} N={N}", functools.partial(bench_many, S=S, N=N)) for S, N in many),
    )


READS = {
    "2^31": "offsets-past-231",
    "past the row's end": "the-tail-of-d",
    "masked_lane": "padding-that-weighs-something",
    **read_about("where-things-lie"),
    "read_race": "in-place",
    "traffic": "values-read-twice",
}

LESSON = Lesson(
    "l4_merge_states", "FlashInfer's merge API", EXERCISES, (*MISTAKES, *OWN_MISTAKES, *RUN_MISTAKES), _bench(), READS
)
