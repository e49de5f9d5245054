"""Small cases of l5 in which a mistake shows that ordinary ones hide. Every draw differs.

What the judge diagnoses with. Never used by graded code.
"""

from __future__ import annotations

import math

import torch

from drills.lessons.base import Args
from drills.lessons.paging import draw_cascade, draw_levels, draw_paged, draw_shared, random_levels, random_pages


def _scale(rng) -> float:
    return 0.5 + float(torch.rand((), generator=rng))


def with_scale(draw):
    """The same with a scale of its own."""
    return lambda rng: (*draw(rng), _scale(rng))


def with_negative_scale(draw):
    """The same with a scale below 0."""
    return lambda rng: (*draw(rng), -_scale(rng))


def with_scale_zero(draw):
    """The same with scale 0: every key weighs the same."""
    return lambda rng: (*draw(rng), 0.0)


def in_half(draw):
    """The same in float16."""
    return lambda rng: tuple(x.half() if x.is_floating_point() else x for x in draw(rng))


def with_five_columns(draw):
    """The same with D = 5, which is no power of two."""
    return lambda rng: tuple(x[..., :5].clone() if x.is_floating_point() else x for x in draw(rng))


def with_six_heads(draw, kv_heads=3):
    """The same with 6 query heads on 3 KV heads: G = 2, while `draw` may have as many KV heads as G.

    Levels keep their tables.
    """

    def wider(rng) -> Args:
        q, *rest = draw(rng)
        more = [
            torch.randn(*x.shape[:-2], kv_heads, x.shape[-1], generator=rng)
            if isinstance(x, torch.Tensor) and x.is_floating_point()
            else x
            for x in rest
        ]
        return torch.randn(len(q), 6, q.shape[-1], generator=rng), *more

    return wider


def draw_long_prefix(rng) -> Args:
    """One request, 4 query heads on 2 KV heads, 130 to 140 keys whose scores rise: the max moves in late blocks too."""
    keys = 130 + int(torch.randint(11, (), generator=rng))
    q, k, v = (torch.randn(n, heads, 8, generator=rng) for n, heads in ((1, 4), (keys, 2), (keys, 2)))
    q[..., 0] = 3.0
    k[..., 0] = torch.linspace(-3.0, 3.0, keys)[:, None]
    return q, k, v


def draw_long_run(rng) -> Args:
    """The same keys in the pages of one request."""
    q, k, v = draw_long_prefix(rng)
    cache, *table = random_pages([len(k)], 16, 2, 8, torch.float32, rng, beyond=3.0)
    pages = table[1].long()
    for place, x in ((0, k), (1, v)):
        filled = torch.cat([x, torch.full((-len(k) % 16, 2, 8), 3.0)])
        cache[pages, place] = filled.reshape(-1, 16, 2, 8)
    return q, cache, *table


def draw_equal_prefix(rng) -> Args:
    """1,000 or more keys of one score, in float16, whose values lose something in every step of a sum of halves."""
    keys = 1000 + int(torch.randint(16, (), generator=rng))
    column = 1 + 2.0 ** -torch.arange(2.0, 10.0).half() - torch.finfo(torch.float16).eps
    return torch.zeros(1, 2, 8).half(), torch.ones(keys, 1, 8).half(), column.expand(keys, 1, 8).clone()


def draw_equal_run(rng) -> Args:
    """The same in the pages of one request."""
    q, k, v = draw_equal_prefix(rng)
    cache, *table = random_pages([len(k)], 16, 1, 8, torch.float16, rng, beyond=3.0)
    cache[:, 1] = v[0]
    return q, cache, *table


def draw_huge_scores(rng) -> Args:
    """Scores of about 280 and, for another request, of -280."""
    q, k, v = draw_shared(rng)
    q[:, :, 0], k[..., 0] = 20.0, 40.0
    q[1, :, 0] = -20.0
    return q, k, v


def draw_no_prefix(rng) -> Args:
    q, k, v = draw_shared(rng)
    return q, k[:0], v[:0]


def draw_no_pages(rng) -> Args:
    """The first request has pages, the others have none."""
    q, kv_cache, indptr, indices, last = draw_paged(rng)
    indptr[2:] = indptr[1].clone()
    return q, kv_cache, indptr, indices, last


def draw_poisoned_pages(rng) -> Args:
    """NaN past the last page's length."""
    q, *_ = draw_paged(rng)
    lengths = (1 + 4 * torch.randint(3, (3,), generator=rng) + torch.randint(3, (3,), generator=rng)).tolist()
    return q, *random_pages(lengths, 4, 2, 8, torch.float32, rng, beyond=math.nan)


def draw_late_table(rng) -> Args:
    """indptr starts at 2; the two entries of `indices` before it belong to nobody."""
    q, *_ = draw_paged(rng)
    lengths = (1 + torch.randint(10, (3,), generator=rng)).tolist()
    return q, *random_pages(lengths, 4, 2, 8, torch.float32, rng, before=2, beyond=3.0)


def draw_suffix_missing(rng) -> Args:
    q, k, v, kv_cache, indptr, indices, last = draw_cascade(rng)
    indptr[2:] = indptr[1].clone()
    return q, k, v, kv_cache, indptr, indices, last


def draw_prefix_missing(rng) -> Args:
    q, k, v, *own = draw_cascade(rng)
    return q, k[:0], v[:0], *own


def draw_outsider(rng) -> Args:
    q, kv_cache, levels = draw_levels(rng)
    group_indptr, *own = levels[1]
    return q, kv_cache, [levels[0], (group_indptr.clamp(max=3), *own), levels[2]]


def draw_half_levels(rng) -> Args:
    q, kv_cache, levels = draw_levels(rng)
    return q.half(), kv_cache.half(), levels


def values_that_cancel(rng) -> torch.Tensor:
    """Values [4, 16] in float16. The mean of the first two lies between two halves, that of all four is about 0.02."""
    first = (1200 + 2 * torch.randint(100, (1,), generator=rng) + 4 * torch.randperm(16, generator=rng)) / 1024
    left = (20 + 2 * torch.arange(16.0)) / 1024
    return torch.stack([first, first + 1 / 1024, left - first, left - first]).half()


def draw_sides_that_cancel(rng) -> Args:
    """Two requests of equal keys, two of the prefix and two of their own. A side that is rounded to a half shows."""
    values = values_that_cancel(rng)
    kv_cache, indptr, indices, last = random_pages([2, 2], 4, 1, 16, torch.float16, rng)
    kv_cache[indices.long(), 1, :2, 0] = values[2:]
    nothing = torch.zeros(2, 1, 16).half()
    return nothing, nothing.clone(), values[:2, None], kv_cache, indptr, indices, last


def draw_levels_that_cancel(rng) -> Args:
    """The same as two levels."""
    values = values_that_cancel(rng)
    kv_cache, levels = random_levels([[0, 2], [0, 2]], [[2], [2]], 4, 1, 16, torch.float16, rng)
    for (_, indptr, indices, _), own in zip(levels, values.split(2), strict=True):
        kv_cache[int(indices[int(indptr[0])]), 1, :2, 0] = own
    return torch.zeros(2, 1, 16).half(), kv_cache, levels


def with_two_columns(draw):
    """The same with D = 2: each product that is added to a score in the thousands rounds it, and s has little room.

    So few values must not cancel: who draws this takes those of one sign.
    """
    return lambda rng: tuple(x[..., :2].clone() if x.is_floating_point() else x for x in draw(rng))


def draw_far_prefix(rng) -> Args:
    """Scores of 170,000 for every second query head, of -170,000 for the others."""
    q, k, v = with_two_columns(draw_shared)(rng)
    q[:, ::2, 0], q[:, 1::2, 0], k[..., 0] = 400.0, -400.0, 600.0
    return q, k, v.abs()


def draw_far_sides(rng) -> Args:
    """The own side is far above the prefix for every second query head, far below for the others."""
    q, k, v, kv_cache, *table = with_two_columns(draw_cascade)(rng)
    q[:, ::2, 0], q[:, 1::2, 0] = 100.0, -100.0
    k[..., 0], kv_cache[:, 0, ..., 0], kv_cache[:, 1] = -300.0, 300.0, kv_cache[:, 1].abs()
    return q, k, v.abs(), kv_cache, *table


def draw_far_levels(rng) -> Args:
    """Two levels for both requests, the second far above the first for one query head, far below for the other."""
    kv_cache, levels = random_levels([[0, 2], [0, 2]], [[5], [3]], 4, 1, 2, torch.float32, rng)
    q = torch.randn(2, 2, 2, generator=rng)
    q[:, 0, 0], q[:, 1, 0] = 100.0, -100.0
    for (_, indptr, indices, _), key in zip(levels, (-300.0, 300.0), strict=True):
        kv_cache[indices[int(indptr[0]) : int(indptr[1])].long(), 0, ..., 0] = key
    kv_cache[:, 1] = kv_cache[:, 1].abs()
    return q, kv_cache, levels


def draw_full_last_pages(rng) -> Args:
    """Requests of one, two and three pages, all of them full."""
    return torch.randn(3, 4, 8, generator=rng), *random_pages([4, 8, 12], 4, 2, 8, torch.float32, rng)


def draw_uneven_groups(rng) -> Args:
    """Groups of one and of three requests, and one request in no group of the last level."""
    q, kv_cache, (first, (halves, *two), (_, *four)) = draw_levels(rng)
    order = torch.tensor([0, 1, 4]).to(halves), torch.tensor([0, 1, 1, 2, 3]).to(halves)
    return q, kv_cache, [first, (order[0], *two), (order[1], *four)]


def draw_early_end(rng) -> Args:
    """The groups of the last level end with request 1: two requests are in none."""
    q, kv_cache, (*others, (four, *own)) = draw_levels(rng)
    return q, kv_cache, [*others, (torch.tensor([0, 1, 1, 1, 2]).to(four), *own)]


def draw_as_many_groups(rng) -> Args:
    """One level, with as many groups as requests, but not one for each: the third is empty."""
    q, kv_cache, (*_, (four, *own)) = draw_levels(rng)
    return q, kv_cache, [(torch.tensor([0, 2, 3, 3, 4]).to(four), *own)]


def draw_late_groups(rng) -> Args:
    """The groups of the second level begin at request 1: the first request is in none."""
    q, kv_cache, (first, (halves, *two), last) = draw_levels(rng)
    return q, kv_cache, [first, (torch.tensor([1, 2, 3]).to(halves), *two), last]
