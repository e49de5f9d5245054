"""The least work that a call is: bytes of its inputs and results, each moved once, and operations where they count."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from drills.lessons.base import Args, Exercise


def tensors(tree: Any) -> Iterable[torch.Tensor]:
    """Every tensor in nested lists and tuples."""
    if isinstance(tree, torch.Tensor):
        yield tree
    elif isinstance(tree, (list, tuple)):
        for one in tree:
            yield from tensors(one)


def least_bytes(exercise: Exercise, args: Args, results: tuple) -> int:
    """Bytes of all arguments and of all results; an argument that is overwritten counts as both."""
    written = [args[out.inplace] for out in exercise.outputs if out.inplace is not None]
    moved = [*tensors(args), *tensors(results), *written]
    return sum(one.numel() * one.element_size() for one in moved)


def operations(exercise: Exercise, args: Args) -> int:
    """Operations of the matrix products: 4 · D for each pair of a query head and a key that it attends to."""
    if exercise.name not in ("cascade", "multi_level_cascade"):
        return 0
    q = args[0]
    batch, heads, dim = q.shape
    if exercise.name == "cascade":
        own = args[5].shape[0] * args[3].shape[2]
        return 4 * dim * heads * (batch * args[1].shape[0] + own)
    kv_cache, levels = args[1], args[2]
    pairs = 0
    for group_indptr, indptr, _, _ in levels:
        requests = group_indptr.diff().double()
        pairs += int((requests * indptr.diff().double()).sum()) * kv_cache.shape[2]
    return 4 * dim * heads * pairs
