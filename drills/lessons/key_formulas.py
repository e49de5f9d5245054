"""What l5's misconceptions about page tables yield, in float64: other keys than the ones that a request has.

Each takes kv_cache, indptr, indices, last_page_len and the request, and answers its keys and values. Never used by
graded code.
"""

from __future__ import annotations

import torch

from drills.lessons.attend_formulas import for_query_heads, paged
from drills.lessons.paging import gather, keys_of


def pages(indptr, indices, i: int):
    return indices[int(indptr[i]) : int(indptr[i + 1])]


def keys_sorted(kv_cache, indptr, indices, last_page_len, i):
    return gather(kv_cache, pages(indptr, indices, i).sort().values, int(last_page_len[i]))


def keys_without_table(kv_cache, indptr, indices, last_page_len, i):
    positions = torch.arange(int(indptr[i]), int(indptr[i + 1])).clamp(max=len(kv_cache) - 1)
    return gather(kv_cache, positions, int(last_page_len[i]))


def keys_of_full_pages(kv_cache, indptr, indices, last_page_len, i):
    return gather(kv_cache, pages(indptr, indices, i), kv_cache.shape[2])


def keys_without_last_page(kv_cache, indptr, indices, last_page_len, i):
    return gather(kv_cache, pages(indptr, indices, i)[:-1], kv_cache.shape[2])


def keys_but_a_full_last_page(kv_cache, indptr, indices, last_page_len, i):
    """last_page_len % page_size keys in the last page."""
    return gather(kv_cache, pages(indptr, indices, i), int(last_page_len[i]) % kv_cache.shape[2])


def keys_of_one_page_a_block(block: int):
    """Each block of keys in the page where its first one is, whatever follows that page in memory; past it all, 0."""

    def keys(kv_cache, indptr, indices, last_page_len, i):
        own, size = pages(indptr, indices, i), kv_cache.shape[2]
        length = (len(own) - 1) * size + int(last_page_len[i]) if len(own) else 0
        rows = kv_cache.reshape(-1, *kv_cache.shape[3:])
        key = torch.arange(length)
        first = key // block * block
        at = own.long()[first // size] * 2 * size + first % size + key - first
        rows = torch.cat([rows, torch.zeros_like(rows[:1])])
        k, v = (rows[one.clamp(max=len(rows) - 1)] for one in (at, at + size))
        return k, v

    return keys


def keys_one_short(kv_cache, indptr, indices, last_page_len, i):
    return gather(kv_cache, pages(indptr, indices, i), int(last_page_len[i]) - 1)


def keys_one_more(kv_cache, indptr, indices, last_page_len, i):
    return gather(kv_cache, pages(indptr, indices, i), min(kv_cache.shape[2], int(last_page_len[i]) + 1))


def keys_short_pages(kv_cache, indptr, indices, last_page_len, i):
    """Every page holds last_page_len keys."""
    size, last = kv_cache.shape[2], int(last_page_len[i])
    k, v = gather(kv_cache, pages(indptr, indices, i), size)
    held = torch.arange(len(k)) % size < last
    return k[held], v[held]


def keys_first_page_short(kv_cache, indptr, indices, last_page_len, i):
    """The first page holds last_page_len keys, not the last one."""
    size, last = kv_cache.shape[2], int(last_page_len[i])
    k, v = gather(kv_cache, pages(indptr, indices, i), size)
    held = torch.arange(len(k)) >= size
    held[:last] = True
    return k[held], v[held]


def keys_from_entry_zero(kv_cache, indptr, indices, last_page_len, i):
    """As if indptr started at 0: entries before indptr[0] are taken for the first request's."""
    return keys_of(kv_cache, indptr - indptr[0], indices, last_page_len, i)


def keys_from_first_entry(kv_cache, indptr, indices, last_page_len, i):
    """Every request's pages begin at the first entry of `indices`."""
    return gather(kv_cache, indices[: int(indptr[i + 1])], int(last_page_len[i]))


def keys_swapped(kv_cache, indptr, indices, last_page_len, i):
    k, v = keys_of(kv_cache, indptr, indices, last_page_len, i)
    return v, k


def keys_first_page_only(kv_cache, indptr, indices, last_page_len, i):
    """One page a request, whole if it is not the last one."""
    own = pages(indptr, indices, i)
    return gather(kv_cache, own[:1], int(last_page_len[i]) if len(own) == 1 else kv_cache.shape[2])


def keys_heads_first_page(kv_cache, indptr, indices, last_page_len, i):
    """A page addressed as [2, Hkv, page_size, D]."""
    count, two, size, heads, dim = kv_cache.shape
    kv_cache = kv_cache.reshape(count, two, heads, size, dim).transpose(2, 3)
    return keys_of(kv_cache, indptr, indices, last_page_len, i)


def keys_pairs_inside(kv_cache, indptr, indices, last_page_len, i):
    """A page addressed as [page_size, 2, Hkv, D]."""
    count, two, size, heads, dim = kv_cache.shape
    kv_cache = kv_cache.reshape(count, size, two, heads, dim).transpose(1, 2)
    return keys_of(kv_cache, indptr, indices, last_page_len, i)


def keys_for_both(kv_cache, indptr, indices, last_page_len, i):
    k, _ = keys_of(kv_cache, indptr, indices, last_page_len, i)
    return k, k


def with_keys(keys):
    """attend_paged with another idea of which keys a request has."""

    def formula(q, kv_cache, indptr, indices, last_page_len, scale=None):
        return paged(q, kv_cache, indptr, indices, last_page_len, scale, keys=keys)

    return formula


def weight_zero_is_no_mask(q, kv_cache, indptr, indices, last_page_len, scale=None):
    """Slots past the last page's length get the weight 0, and 0 * NaN is NaN."""
    v, s = paged(q, kv_cache, indptr, indices, last_page_len, scale)
    for i in range(len(q)):
        _, values = keys_of_full_pages(kv_cache, indptr, indices, last_page_len, i)
        unused = values[(len(values) // kv_cache.shape[2] - 1) * kv_cache.shape[2] + int(last_page_len[i]) :]
        v[i] += (0.0 * for_query_heads(q, unused.double())).sum(0) if len(values) else 0.0
    return v, s
