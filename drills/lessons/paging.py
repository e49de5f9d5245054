"""Page tables in float64: what l5's oracle, its mistakes, its draws and its tests are written with.

Plain torch that a learner can read: keys are gathered first. Never used by graded code.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Sequence

import torch
from torch import Tensor

State = tuple[Tensor, Tensor]
"""(v[Hq, D], s[Hq]) of one request, or with a leading B of all: float64, s base 2."""


def default_scale(q: Tensor, scale: float | None) -> float:
    """1/√D unless given."""
    return q.shape[-1] ** -0.5 if scale is None else scale


def attend(q: Tensor, k: Tensor, v: Tensor, scale: float | None = None, kv_head=None) -> State:
    """Attention of one request, q[Hq, D], or several, q[B, Hq, D], to k, v[n, Hkv, D]; no key gives (0, -inf).

    kv_head: query head h, G, Hkv → the KV head that it uses; None for h // G.
    """
    if not k.shape[0]:
        v = torch.zeros_like(q, dtype=torch.float64)
        return v, torch.full_like(v[..., 0], -math.inf)
    q, k, v = q.double(), k.double(), v.double()
    heads, kv_heads = q.shape[-2], k.shape[1]
    group = heads // kv_heads
    chosen = [h // group if kv_head is None else kv_head(h, group, kv_heads) for h in range(heads)]
    k, v = k[:, chosen], v[:, chosen]
    scores = torch.einsum("...hd,nhd->...hn", q, k) * default_scale(q, scale)
    return torch.einsum("...hn,nhd->...hd", torch.softmax(scores, -1), v), torch.logsumexp(scores, -1) / math.log(2)


def attend_each(q: Tensor, kinds: Sequence[Hashable], keys: Callable[[int], tuple], scale: float | None) -> State:
    """Attention of every request, q[B, Hq, D]. Requests of one kind have the same keys.

    keys: request → its k, v[n, Hkv, D].
    """
    v = torch.zeros(q.shape, dtype=torch.float64, device=q.device)
    s = torch.zeros(q.shape[:-1], dtype=torch.float64, device=q.device)
    for kind in dict.fromkeys(kinds):
        these = [i for i, one in enumerate(kinds) if one == kind]
        v[these], s[these] = attend(q[these], *keys(these[0]), scale)
    return v, s


def merge(*states: State) -> State:
    """States of the same rows as one: weights 2^s; an empty state's v is not used; no state left gives (0, -inf)."""
    s = torch.stack([one[1] for one in states])
    v = torch.stack([one[0] for one in states])
    top = s.amax(0)
    weight = torch.exp2(s - torch.where(top == -math.inf, torch.zeros_like(top), top))
    total = weight.sum(0)
    v = torch.where(weight[..., None] > 0, v, torch.zeros_like(v))
    safe = torch.where(total > 0, total, torch.ones_like(total))
    return (weight[..., None] * v).sum(0) / safe[..., None], top + torch.log2(safe)


def stack(states: list[State], q: Tensor) -> State:
    """The states of all requests as one pair; q[B, Hq, D] gives the shapes when B is 0."""
    if not states:
        return torch.zeros(q.shape, dtype=torch.float64), torch.zeros(q.shape[:2], dtype=torch.float64)
    return torch.stack([one[0] for one in states]), torch.stack([one[1] for one in states])


def keys_of(kv_cache: Tensor, indptr: Tensor, indices: Tensor, last_page_len: Tensor, i: int) -> tuple[Tensor, Tensor]:
    """Keys and values [n, Hkv, D] of run i of pages, in logical order."""
    return gather(kv_cache, indices[int(indptr[i]) : int(indptr[i + 1])], int(last_page_len[i]))


def gather(kv_cache: Tensor, pages: Tensor, last: int) -> tuple[Tensor, Tensor]:
    """Keys and values [n, Hkv, D] of `pages`, of which the last holds `last`."""
    count = (len(pages) - 1) * kv_cache.shape[2] + last if len(pages) else 0
    k, v = kv_cache[pages.long(), 0], kv_cache[pages.long(), 1]
    return k.flatten(0, 1)[:count], v.flatten(0, 1)[:count]


def owners(indptr: Tensor) -> list[int | None]:
    """Of each run of pages its number; None of one without pages."""
    return [i if a < b else None for i, (a, b) in enumerate(itertools.pairwise(indptr.tolist()))]


def group_of(group_indptr: Tensor | list[int], request: int) -> int | None:
    """The group that a request is in at one level; None if in none."""
    for g in range(len(group_indptr) - 1):
        if int(group_indptr[g]) <= request < int(group_indptr[g + 1]):
            return g
    return None


def largest_score(q: Tensor, *keys: Tensor, scale: float | None = None) -> float:
    """A bound of |score| and |s| in base 2, for tolerances: max‖q‖ · max‖k‖ · scale · log₂e + log₂(keys)."""
    norms = [float(k.double().nan_to_num(0.0).norm(dim=-1).amax()) for k in keys if k.numel()]
    if not norms or not q.numel():
        return 0.0
    count = sum(k.numel() // k.shape[-1] for k in keys)
    bound = float(q.double().norm(dim=-1).amax()) * max(norms) * abs(default_scale(q, scale))
    return bound / math.log(2) + math.log2(count + 1)


def random_pages(
    lengths: list[int], page_size: int, kv_heads: int, dim: int, dtype: torch.dtype, rng: torch.Generator,
    *, spare: int = 2, before: int = 0, index: torch.dtype = torch.int32, beyond: float = math.nan,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """A shuffled cache with one run of pages a length: (kv_cache, indptr, indices, last_page_len).

    spare: pages that nobody owns. before: entries of `indices` ahead of indptr[0], and as many after the last run.
    beyond: what slots past a last page's length hold. last_page_len of an empty run is 99, and must not be looked at.
    """
    counts = [-(-length // page_size) for length in lengths]
    total = sum(counts) + spare
    kv_cache = torch.randn(total, 2, page_size, kv_heads, dim, generator=rng).to(dtype)
    order = torch.randperm(total, generator=rng)
    unused = order[sum(counts) :].repeat(before + 1)[:before]
    indptr = torch.tensor([0, *counts]).cumsum(0) + len(unused)
    indices = torch.cat([unused, order[: sum(counts)], unused])
    last = torch.tensor([n - (c - 1) * page_size if c else 99 for n, c in zip(lengths, counts, strict=True)])
    for i, count in enumerate(counts):
        if count:
            kv_cache[indices[indptr[i + 1] - 1], :, int(last[i]) :] = beyond
    return kv_cache, indptr.to(index), indices.to(index), last.to(index)


def random_levels(
    bounds: list[list[int]], lengths: list[list[int]], page_size: int, kv_heads: int, dim: int, dtype: torch.dtype,
    rng: torch.Generator, *, beyond: float = math.nan,
) -> tuple[Tensor, list[tuple[Tensor, Tensor, Tensor, Tensor]]]:  # fmt: skip
    """One cache and a list of levels: level i has group_indptr bounds[i] and lengths[i][g] keys in its group g.

    A level's kv_indices are its own, and its kv_indptr starts past the first of them as soon as there is room.
    """
    flat = [length for level in lengths for length in level]
    kv_cache, indptr, indices, last = random_pages(flat, page_size, kv_heads, dim, dtype, rng, beyond=beyond)
    levels, first = [], 0
    for bound, level in zip(bounds, lengths, strict=True):
        end = first + len(level)
        group_indptr = torch.tensor(bound, dtype=indptr.dtype)
        cut = (int(indptr[first]) + 1) // 2
        levels.append((group_indptr, indptr[first : end + 1] - cut, indices[cut:].clone(), last[first:end].clone()))
        first = end
    return kv_cache, levels


def _normal(rng: torch.Generator, *shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(*shape, generator=rng).to(dtype)


def _up_to(rng: torch.Generator, most: int, count: int) -> list[int]:
    """`count` lengths from 1 to `most`."""
    return torch.randint(1, most + 1, (count,), generator=rng).tolist()


def draw_shared(rng) -> tuple:
    """Three requests, 4 query heads on 2 KV heads, 5 to 12 keys."""
    keys = 4 + _up_to(rng, 8, 1)[0]
    return _normal(rng, 3, 4, 8), _normal(rng, keys, 2, 8), _normal(rng, keys, 2, 8)


def draw_paged(rng) -> tuple:
    """Three requests with own pages of 4 slots; garbage, not NaN, past the last one, so that a reader of it is seen."""
    lengths = [n if n % 4 else n + 1 for n in _up_to(rng, 10, 3)]
    return _normal(rng, 3, 4, 8), *random_pages(lengths, 4, 2, 8, torch.float32, rng, beyond=3.0)


def draw_cascade(rng) -> tuple:
    """A prefix of 6 keys and three suffixes."""
    q, *pages = draw_paged(rng)
    return q, _normal(rng, 6, 2, 8), _normal(rng, 6, 2, 8), *pages


def draw_levels(rng) -> tuple:
    """Four requests: one prefix for all, one for each half, one for each."""
    bounds = [[0, 4], [0, 2, 4], [0, 1, 2, 3, 4]]
    lengths = [_up_to(rng, 9, 1), _up_to(rng, 9, 2), _up_to(rng, 9, 4)]
    return _normal(rng, 4, 4, 8), *random_levels(bounds, lengths, 4, 2, 8, torch.float32, rng, beyond=3.0)
