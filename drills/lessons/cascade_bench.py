"""Lesson 5's benchmark shapes: decode steps of many requests that share a prefix, as `cascade` and as levels.

A few requests of each are compared with the oracle: all of them in float64 would take longer than the timing.
"""

from __future__ import annotations

import functools
import itertools

import torch

from drills.lessons.base import Args, BenchCase
from drills.lessons.paging import group_of

HEADS, DIM, PAGE = 32, 128, 16


def make_cascade(device, dtype, rng, *, requests: int, prefix: int, own: int, kv_heads: int) -> Args:
    """Arguments of `cascade`: 32 query heads of 128, pages of 16 slots in shuffled order."""

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=rng, device=device, dtype=dtype)

    pages = requests * own // PAGE
    return (
        normal(requests, HEADS, DIM),
        normal(prefix, kv_heads, DIM),
        normal(prefix, kv_heads, DIM),
        normal(pages, 2, PAGE, kv_heads, DIM),
        torch.arange(0, pages + 1, own // PAGE, dtype=torch.int32, device=device),
        torch.randperm(pages, generator=rng, device=device).to(torch.int32),
        torch.full((requests,), PAGE, dtype=torch.int32, device=device),
    )


def make_levels(device, dtype, rng, *, requests: int, lengths: tuple[int, ...], groups: tuple[int, ...], kv_heads: int):
    """Arguments of `multi_level_cascade`: level i has groups[i] equal groups, each with lengths[i] keys."""
    counts = [g * n // PAGE for g, n in zip(groups, lengths, strict=True)]
    kv_cache = torch.randn(sum(counts), 2, PAGE, kv_heads, DIM, generator=rng, device=device, dtype=dtype)
    order = torch.randperm(sum(counts), generator=rng, device=device).to(torch.int32)
    levels, first = [], 0
    for count, g, n in zip(counts, groups, lengths, strict=True):
        level = (
            torch.arange(0, requests + 1, requests // g, dtype=torch.int32, device=device),
            torch.arange(0, count + 1, n // PAGE, dtype=torch.int32, device=device),
            order[first : first + count],
            torch.full((g,), PAGE, dtype=torch.int32, device=device),
        )
        levels.append(level)
        first += count
    return torch.randn(requests, HEADS, DIM, generator=rng, device=device, dtype=dtype), kv_cache, levels


def chosen(batch: int) -> list[int]:
    return sorted({0, batch // 2, batch - 1})


def table_of(indptr, indices, last_page_len, runs: list[int | None]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The page table of some runs only; None is a run without pages."""
    pages = [indices[:0] if i is None else indices[int(indptr[i]) : int(indptr[i + 1])] for i in runs]
    counts = torch.tensor([0, *(len(one) for one in pages)])
    last = torch.stack([last_page_len[0 if i is None else i] for i in runs])
    return counts.cumsum(0).to(indptr), torch.cat(pages), last


def sample_cascade(args: Args, results: tuple) -> tuple[Args, tuple]:
    """The first, the middle and the last request."""
    q, k, v, kv_cache, *table = args
    some = chosen(len(q))
    return (q[some], k, v, kv_cache, *table_of(*table, some)), tuple(one[some] for one in results)


def sample_levels(args: Args, results: tuple) -> tuple[Args, tuple]:
    """The first, the middle and the last request, each a group of its own at every level."""
    q, kv_cache, levels = args
    some = chosen(len(q))
    alone = torch.arange(len(some) + 1, device=q.device)
    picked = [(alone, *table_of(*level[1:], [group_of(level[0], i) for i in some])) for level in levels]
    return (q[some], kv_cache, picked), tuple(one[some] for one in results)


def _cases() -> tuple[BenchCase, ...]:
    cases = []
    sizes = ((8, 32), (1, 16, 64, 256), (1024, 8192, 32768), (128, 1024))
    for kv_heads, requests, prefix, own in itertools.product(*sizes):
        shape = {"requests": requests, "prefix": prefix, "own": own, "kv_heads": kv_heads}
        label = f"Hkv={kv_heads} B={requests} P={prefix} U={own}"
        cases.append(BenchCase("cascade", label, functools.partial(make_cascade, **shape), sample_cascade))
    for kv_heads, requests in itertools.product((8, 32), (16, 64, 256)):
        for lengths, groups in (((8192, 128), (1, requests)), ((8192, 1024, 128), (1, 8, requests))):
            shape = {"requests": requests, "lengths": lengths, "groups": groups, "kv_heads": kv_heads}
            label = f"Hkv={kv_heads} B={requests} keys={'+'.join(map(str, lengths))}"
            make = functools.partial(make_levels, **shape)
            cases.append(BenchCase("multi_level_cascade", label, make, sample_levels))
    return tuple(cases)


CASES = _cases()
