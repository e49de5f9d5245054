"""Cases of more than 2^31 elements, one or more for every exercise: an offset kept in 32 bits shows in them.

Results are compared on a few rows, among them the first, the last, and the one that holds element 2^31.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import torch

from drills.lessons.base import Args, BenchCase
from drills.lessons.cascade_bench import (
    DIM,
    HEADS,
    PAGE,
    chosen,
    make_cascade,
    make_levels,
    sample_cascade,
    sample_levels,
    table_of,
)

EDGE = 1 << 31
"""The first element whose offset does not fit into 32 bits."""


def _some(rows: int, row: int) -> list[int]:
    """Rows to compare, of `rows` rows of `row` elements."""
    edge = EDGE // row
    return sorted({0, 1, edge - 1, edge, edge + 1, rows // 2, rows - 2, rows - 1})


def _random(kinds: Sequence[tuple[tuple[int, ...], str]], device, dtype, rng) -> Args:
    """Tensors of these shapes: "x" normal in dtype, "s" normal in float32, "l" positive, "mask" bool."""
    out = []
    for shape, kind in kinds:
        one = torch.randn(shape, generator=rng, device=device, dtype=dtype if kind == "x" else torch.float32)
        out.append(one.abs() + 0.5 if kind == "l" else one > 0 if kind == "mask" else one)
    return tuple(out)


def _take(axes: Sequence[int | None], result_axis: int, rows: list[int], args: Args, results: tuple):
    """Arguments cut along `axes` (None: whole) and results along `result_axis`, at the rows to compare."""
    some = torch.tensor(rows, device=args[0].device)
    pairs = zip(args, [*axes, *[None] * len(args)], strict=False)
    cut = tuple(one if axis is None else one.index_select(axis, some) for one, axis in pairs)
    return cut, tuple(one.index_select(result_axis, some) for one in results)


def _case(exercise: str, kinds, axes, result_axis: int = 0, extra: tuple = ()) -> BenchCase:
    """A case of plain tensors. `axes`: which axis of each argument the result's rows lie along."""
    rows = next(one[0][at] for one, at in zip(kinds, axes, strict=True) if at is not None)
    shape = max((one[0] for one in kinds), key=math.prod)
    sample = functools.partial(_take, axes, result_axis, _some(rows, math.prod(shape) // rows))
    make = lambda device, dtype, rng: (*_random(kinds, device, dtype, rng), *extra)  # noqa: E731
    return BenchCase(exercise, " ".join(map(str, shape)), make, sample)


def _runs(device, dtype, rng) -> Args:
    """variable_length_merge_states: 560,000 rows in 1,100 runs of unequal length."""
    rows, runs = 560_000, 1_100
    cuts = torch.randint(0, rows, (runs + 1,), generator=rng, device=device).sort().values
    cuts[0], cuts[-1] = 3, rows - 5
    return *_random((((rows, 32, 128), "x"), ((rows, 32), "s")), device, dtype, rng), cuts


def _sample_runs(args: Args, results: tuple):
    v, s, cuts = args
    some = [0, 1, int((cuts < EDGE // 4096).sum()) - 1, len(cuts) - 2]
    rows = [torch.arange(int(cuts[i]), int(cuts[i + 1]), device=v.device) for i in some]
    counts = torch.tensor([0, *map(len, rows)], device=v.device).cumsum(0)
    picked = torch.cat(rows)
    return (v[picked], s[picked], counts), tuple(one[some] for one in results)


def _shared(device, dtype, rng) -> Args:
    """attend_shared: 2.2 million keys of 8 heads."""
    shapes = ((2, 32, 128), (2_200_000, 8, 128), (2_200_000, 8, 128))
    return _random([(shape, "x") for shape in shapes], device, dtype, rng)


def _sample_shared(args: Args, results: tuple):
    """The last query head and its KV head."""
    q, k, v = args
    return (q[:, -1:], k[:, -1:], v[:, -1:]), tuple(one[:, -1:] for one in results)


def _heads(args: Args, results: tuple):
    """partial_attention: the first and the last head."""
    q, k, v, splits = args
    return (q[[0, -1]], k[:, [0, -1]], v[:, [0, -1]], splits), tuple(one[:, [0, -1]] for one in results)


def _state_heads(args: Args, results: tuple):
    """partial_states: the first and the last head."""
    q, k, v, splits = args
    v_out, s_out = results
    ends = [0, -1]
    return (q[:, ends], k[:, ends], v[:, ends], splits), (v_out[:, :, ends], s_out[:, :, ends])


def _paged(device, dtype, rng) -> Args:
    """attend_paged: 64 requests with 70,400 pages together."""
    q, _, _, *pages = make_cascade(device, dtype, rng, requests=64, prefix=PAGE, own=17_600, kv_heads=8)
    return q, *pages


def _sample_paged(args: Args, results: tuple):
    q, kv_cache, *table = args
    some = chosen(len(q))
    return (q[some], kv_cache, *table_of(*table, some)), tuple(one[some] for one in results)


_X, _S = "x", "s"
_TWO = (((140_000, 128, 128), _X), ((140_000, 128), _S)) * 2
_LONG = (((560_000, 32, 128), _X),) * 2

CASES = (
    *(
        _case(exercise, (((rows, columns), _X),), (0,))
        for exercise in ("softmax_stats", "softmax", "lse", "lse2")
        for rows, columns in ((70_000, 32_768), (9_000, 262_144), (2_200_000, 1_000))
    ),
    _case("attend", (((70_000, 32_768), _X), ((32_768, 16), _X)), (0, None)),
    BenchCase(
        "partial_attention",
        "560000 32 128",
        lambda *how: (*_random((((32, 128), _X), *_LONG), *how), 64),
        _heads,
    ),
    _case("merge_pair", (((18_000_000,), _S), ((18_000_000,), "l"), ((18_000_000, 128), _X)) * 2, (0,) * 6),
    _case("merge_mlo", (((512, 33_000), _S), ((512, 33_000), "l"), ((512, 33_000, 128), _X)), (1, 1, 1)),
    _case("merge_natural", _TWO, (0,) * 4),
    _case("to_flashinfer", (((32, 70_000_000), _S),), (1,)),
    BenchCase(
        "partial_states",
        "2 560000 32 128",
        lambda *how: (*_random((((2, 32, 128), _X), *_LONG), *how), 64),
        _state_heads,
    ),
    _case("merge_state", _TWO, (0,) * 4),
    _case("merge_state_in_place", (*_TWO, ((140_000,), "mask")), (0,) * 5),
    _case("merge_states", (((1_100, 512, 32, 128), _X), ((1_100, 512, 32), _S)), (0, 0)),
    _case("merge_states", (((140_000, 4, 32, 128), _X), ((140_000, 4, 32), _S)), (0, 0)),
    _case("merge_states", (((16, 35_000, 32, 128), _X), ((16, 35_000, 32), _S)), (0, 0)),
    BenchCase("variable_length_merge_states", "560000 32 128", _runs, _sample_runs),
    BenchCase("attend_shared", "2200000 8 128", _shared, _sample_shared),
    BenchCase("attend_paged", "70400 2 16 8 128", _paged, _sample_paged),
    BenchCase(
        "cascade",
        f"B=64 P=8192 U=17600 Hq={HEADS} D={DIM}",
        functools.partial(make_cascade, requests=64, prefix=8192, own=17_600, kv_heads=8),
        sample_cascade,
    ),
    BenchCase(
        "multi_level_cascade",
        "B=64 keys=8192+17600",
        functools.partial(make_levels, requests=64, lengths=(8192, 17_600), groups=(1, 64), kv_heads=8),
        sample_levels,
    ),
)
"""Every exercise once at least."""
