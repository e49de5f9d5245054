"""What l5's misconception that query head h has KV head h // Hkv yields, in float64: the right divisor is G.

h // Hkv may reach Hkv and beyond. An address with such a head is that of the next key, so that is what is read.
Never used by graded code.
"""

from __future__ import annotations

import torch
from torch import Tensor

from drills.lessons.paging import State, attend, group_of, merge, stack


def shared(q, k, v, scale=None) -> State:
    """attend_shared."""
    keys = torch.arange(len(k))
    return stack([attend(one, _at(k, keys, len(one)), _at(v, keys, len(one)), scale) for one in q], q)


def paged(q, kv_cache, indptr, indices, last_page_len, scale=None) -> State:
    """attend_paged."""
    return stack([_own(one, kv_cache, indptr, indices, last_page_len, i, scale) for i, one in enumerate(q)], q)


def cascade(q, k_shared, v_shared, kv_cache, indptr, indices, last_page_len, scale=None) -> State:
    """cascade, on both sides."""
    own = paged(q, kv_cache, indptr, indices, last_page_len, scale)
    return merge(shared(q, k_shared, v_shared, scale), own)


def levels(q, kv_cache, levels, scale=None) -> State:
    """multi_level_cascade, at every level."""
    empty = torch.zeros_like(q[0], dtype=torch.float64), torch.full(q.shape[1:2], -torch.inf, dtype=torch.float64)
    states = [stack([empty] * len(q), q)]
    for bounds, *table in levels:
        groups = [group_of(bounds, i) for i in range(len(q))]
        rows = [empty if g is None else _own(one, kv_cache, *table, g, scale) for one, g in zip(q, groups, strict=True)]
        states.append(stack(rows, q))
    return merge(*states)


def _own(q, kv_cache, indptr, indices, last_page_len, i, scale) -> State:
    """One request's attention to run i of pages."""
    size = kv_cache.shape[2]
    pages = indices[int(indptr[i]) : int(indptr[i + 1])].long()
    count = (len(pages) - 1) * size + int(last_page_len[i]) if len(pages) else 0
    slots = kv_cache.flatten(0, 2)
    first = pages * 2 * size
    k, v = (
        _at(slots, (start[:, None] + torch.arange(size)).flatten()[:count], len(q)) for start in (first, first + size)
    )
    return attend(q, k, v, scale)


def _at(x: Tensor, rows: Tensor, heads: int) -> Tensor:
    """x[n, Hkv, D] at these rows, for every query head at KV head h // Hkv: [rows, heads, D]."""
    kv_heads = x.shape[1]
    at = rows[:, None] * kv_heads + torch.arange(heads) // kv_heads
    return x.flatten(0, 1)[at.clamp(max=max(0, len(x) * kv_heads - 1))]
