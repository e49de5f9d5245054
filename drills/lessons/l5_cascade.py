"""Lesson 5, cascade attention: its exercises, their float64 oracle and bytes floor.

The mistakes that are recognized stand in cascade_mistakes.py, the maths of page tables in paging.py, the bench shapes
in cascade_bench.py.
"""

from __future__ import annotations

import itertools

import torch

from drills.lessons.attend_mistakes import ADDRESS
from drills.lessons.base import Exercise, Lesson, Output
from drills.lessons.cascade_bench import CASES
from drills.lessons.cascade_mistakes import MISTAKES
from drills.lessons.paging import (
    attend,
    attend_each,
    draw_cascade,
    draw_levels,
    draw_paged,
    draw_shared,
    group_of,
    keys_of,
    largest_score,
    owners,
)
from drills.lessons.strides import read_about


def attend_shared_oracle(q, k, v, scale=None):
    """Every request's queries against the one prefix."""
    return attend(q, k, v, scale)


def attend_paged_oracle(q, kv_cache, indptr, indices, last_page_len, scale=None):
    """Each request's queries against its own pages."""
    return attend_each(q, owners(indptr), lambda i: keys_of(kv_cache, indptr, indices, last_page_len, i), scale)


def cascade_oracle(q, k_shared, v_shared, kv_cache, indptr, indices, last_page_len, scale=None):
    """Flat attention: the prefix and the own keys of a request in one softmax."""

    def keys(i: int) -> tuple:
        k, v = keys_of(kv_cache, indptr, indices, last_page_len, i)
        return torch.cat([k_shared, k]), torch.cat([v_shared, v])

    return attend_each(q, owners(indptr), keys, scale)


def multi_level_oracle(q, kv_cache, levels, scale=None):
    """Flat attention: all levels' keys of a request in one softmax."""
    bounds = [level[0].tolist() for level in levels]
    groups = [tuple(group_of(bound, i) for bound in bounds) for i in range(len(q))]

    def keys(i: int) -> tuple:
        nothing = (kv_cache[:0, 0].flatten(0, 1),) * 2
        runs = [keys_of(kv_cache, *level[1:], g) for level, g in zip(levels, groups[i], strict=True) if g is not None]
        return tuple(torch.cat(parts) for parts in zip(nothing, *runs, strict=True))

    return attend_each(q, groups, keys, scale)


def _bound_shared(q, k, v, scale=None) -> float:
    return largest_score(q, k, scale=scale)


def _bound_paged(q, kv_cache, indptr, indices, last_page_len, scale=None) -> float:
    return largest_score(q, kv_cache[:, 0], scale=scale)


def _bound_cascade(q, k_shared, v_shared, kv_cache, indptr, indices, last_page_len, scale=None) -> float:
    return largest_score(q, k_shared, kv_cache[:, 0], scale=scale)


def _bound_levels(q, kv_cache, levels, scale=None) -> float:
    return largest_score(q, kv_cache[:, 0], scale=scale)


def _bytes(*tensors: torch.Tensor) -> int:
    return sum(t.numel() * t.element_size() for t in tensors)


def _own_keys(kv_cache, indptr, indices, last_page_len) -> int:
    """Bytes of the keys and values that runs of pages hold, a page that several runs share counted once a run."""
    runs = range(len(indptr) - 1)
    return sum(_bytes(*keys_of(kv_cache, indptr, indices, last_page_len, i)) for i in runs)


def _once_shared(q, k, v, scale=None) -> int:
    return _bytes(k, v)


def _once_cascade(q, k_shared, v_shared, kv_cache, indptr, indices, last_page_len, scale=None) -> int:
    return _bytes(k_shared, v_shared)


def _must_read_shared(q, k, v, scale=None) -> int:
    """All of it, unless there is no query or no key: then the results are known."""
    return _bytes(q, k, v) if q.numel() and k.numel() else 0


def _must_read_paged(q, kv_cache, indptr, indices, last_page_len, scale=None) -> int:
    pages = torch.cat([indices[int(a) : int(b)] for a, b in itertools.pairwise(indptr)] or [indices[:0]])
    return _own_keys(kv_cache, indptr, indices, last_page_len) if len(pages.unique()) == len(pages) else 0


def _must_read_cascade(q, k_shared, v_shared, *pages) -> int:
    return _bytes(k_shared, v_shared) + _must_read_paged(q, *pages) if q.numel() else 0


_PARTIAL = (Output("v", "value", "float32"), Output("s", "lse", "float32"))
_FINAL = (Output("v", "value"), Output("s", "lse", "float32"))
_MORE_ROWS = "Give a program all query rows of a KV head, up to 64: each further block of rows reads {} again."
_PAGES = "kv_cache[pages, 2, page_size, Hkv, D], indptr[B + 1], indices[n], last_page_len[B]"

EXERCISES = (
    Exercise(
        name="attend_shared",
        signature="attend_shared(q[B, Hq, D], k[P, Hkv, D], v[P, Hkv, D], scale=None) -> (v[B, Hq, D], s[B, Hq])",
        oracle=attend_shared_oracle,
        outputs=_PARTIAL,
        reads=0,
        score_bound=_bound_shared,
        draw=draw_shared,
        floor=_once_shared,
        limit=1.5,
        counted=("k", "v"),
        read_again=_MORE_ROWS,
        must_read=_must_read_shared,
    ),
    Exercise(
        name="attend_paged",
        signature=f"attend_paged(q[B, Hq, D], {_PAGES}, scale=None) -> (v[B, Hq, D], s[B, Hq])",
        oracle=attend_paged_oracle,
        outputs=_PARTIAL,
        reads=0,
        score_bound=_bound_paged,
        draw=draw_paged,
        must_read=_must_read_paged,
    ),
    Exercise(
        name="cascade",
        signature=f"cascade(q[B, Hq, D], k_shared[P, Hkv, D], v_shared[P, Hkv, D], {_PAGES}, scale=None)"
        " -> (v[B, Hq, D], s[B, Hq])",
        oracle=cascade_oracle,
        outputs=_FINAL,
        reads=0,
        score_bound=_bound_cascade,
        draw=draw_cascade,
        floor=_once_cascade,
        limit=1.5,
        counted=("k_shared", "v_shared"),
        read_again=_MORE_ROWS,
        must_read=_must_read_cascade,
    ),
    Exercise(
        name="multi_level_cascade",
        signature="multi_level_cascade(q[B, Hq, D], kv_cache[pages, 2, page_size, Hkv, D], levels, scale=None)"
        " -> (v[B, Hq, D], s[B, Hq])",
        oracle=multi_level_oracle,
        outputs=_FINAL,
        reads=0,
        score_bound=_bound_levels,
        draw=draw_levels,
    ),
)


READS = {"masked_lane": "the-last-block", "traffic": "rows-of-a-kv-head", **read_about(ADDRESS)}

LESSON = Lesson("l5_cascade", "Cascade", EXERCISES, MISTAKES, CASES, READS)
