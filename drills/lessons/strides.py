"""Arguments read as if they were contiguous: the one misconception that every lesson shares, and cases that show it.

Also tensors so far apart in memory that an offset needs 64 bits. Never used by graded code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from drills import reserve
from drills.lessons.base import Args

Formula = Callable[..., tuple]


def unstrided(x: Tensor) -> Tensor:
    """x read from its first element on as if it were contiguous, as far as its storage goes; else x itself."""
    if x.storage_offset() + x.numel() > x.untyped_storage().nbytes() // x.element_size():
        return x
    return x.as_strided(x.shape, torch.empty(x.shape, device="meta").stride())


def side_by_side(x: Tensor) -> Tensor:
    """x read as if its last axis had stride 1, as far as its storage goes; else x itself."""
    strides = (*x.stride()[:-1], 1)
    last = x.storage_offset() + sum((n - 1) * step for n, step in zip(x.shape, strides, strict=True))
    if not x.numel() or last >= x.untyped_storage().nbytes() // x.element_size():
        return x
    return x.as_strided(x.shape, strides)


def swapped(x: Tensor) -> Tensor:
    """A matrix read with its two strides swapped, as far as its storage goes; else x itself."""
    last = x.storage_offset() + sum((n - 1) * step for n, step in zip(x.shape, reversed(x.stride()), strict=True))
    inside = x.numel() and last < x.untyped_storage().nbytes() // x.element_size()
    return x.as_strided(x.shape, x.stride()[::-1]) if inside else x


def turned(x: Tensor) -> Tensor:
    """The same values; x.transpose(0, 1) is contiguous."""
    return x.transpose(0, 1).contiguous().transpose(0, 1)


def far_apart(x: Tensor, elements: int = 2**30 + 8, axis: int = 0) -> Tensor:
    """The same values, with this many elements of untouched memory from one index of an axis to the next.

    Address space, not memory: two steps of the default are more than 2^31 elements.
    """
    if axis:
        return far_apart(x.movedim(axis, 0), elements).movedim(0, axis)
    memory = reserve.empty(elements * (len(x) - 1) + x[0].numel(), x.dtype)
    return memory.as_strided(x.shape, (elements, *x[0].contiguous().stride())).copy_(x)


def at_most(args: Args, size: int) -> Args:
    """The same values in storages of so many bytes together, for a GPU: there address space is memory.

    The smallest tensors stay as they are, as long as there is room; the others are without gaps, not far apart.
    """
    tensors = [one for one in args if isinstance(one, Tensor)]
    kept: set[int] = set()
    for one in sorted(tensors, key=lambda one: one.untyped_storage().nbytes()):
        size -= 0 if one.untyped_storage().data_ptr() in kept else one.untyped_storage().nbytes()
        if size >= 0:
            kept.add(one.untyped_storage().data_ptr())
    return tuple(
        one.contiguous() if isinstance(one, Tensor) and one.untyped_storage().data_ptr() not in kept else one
        for one in args
    )


def read_about(anchor: str) -> dict[str, str]:
    """Where a lesson's page tells of strides: an entry of its `reads` for each phrase in what is said of wrong ones."""
    return dict.fromkeys(("is not contiguous", "were contiguous", "its own strides"), anchor)


def reading(right: Formula, positions: Sequence[int], how: Callable[[Tensor], Tensor] = unstrided) -> Formula:
    """`right`, with the arguments at these positions read as if they were contiguous, or another way."""

    def formula(*args):
        return right(*(how(x) if at in positions else x for at, x in enumerate(args)))

    return formula


def ignoring(right: Formula, *choices: Sequence[int]) -> dict:
    """The strides of all positions in `choices` ignored, or of one choice alone, or the last alone: for a Mistake."""
    every = [at for choice in choices for at in choice]
    ways = [reading(right, choice, how) for how in (unstrided, side_by_side) for choice in (every, *choices)]
    return {"formula": ways[0], "variants": tuple(ways[1:])}


def with_strides(draw: Callable[[torch.Generator], Args]) -> Callable[[torch.Generator], Args]:
    """The same cases with the first two axes of every tensor swapped in memory; a vector gets every second place."""

    def strided(rng: torch.Generator) -> Args:
        return tuple(_strided(x) if isinstance(x, Tensor) and x.is_floating_point() else x for x in draw(rng))

    return strided


def _strided(x: Tensor) -> Tensor:
    return turned(x) if x.dim() > 1 else torch.stack([x, x.flip(0)], -1).flatten()[::2]
