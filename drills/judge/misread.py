"""Is a wrong result the right one for an argument read by other strides than its own? Then whose strides were they?

The oracle answers: an argument is read as if some of its strides were those of a contiguous tensor, or those of another
argument of its shape, and the result must be the one that came out. Reads no memory that the argument does not have.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

import torch
from torch import Tensor

from drills.judge.compare import Comparison
from drills.judge.signature import parameters
from drills.lessons.base import Args, Exercise

LARGEST = 1 << 16
"""Elements of all arguments together: beyond, the oracle is too slow to be asked so often."""

WRONG_STRIDES = "read with a stride that is not its own"
"""In every sentence of this module."""

Strides = tuple[int, ...]


def misread(exercise: Exercise, args: Args, shown: Comparison) -> str:
    """One sentence on the strides that explain `shown`, the fewest wrong ones that do; "" if none do."""
    written = {output.inplace for output in exercise.outputs}
    tensors = {name: one for name, one in zip(parameters(exercise), args, strict=False) if isinstance(one, Tensor)}
    read = [name for at, name in enumerate(parameters(exercise)) if name in tensors and at not in written]
    read = [name for name in read if tensors[name].dtype not in (torch.int32, torch.int64)]  # oracles trust tables
    if sum(one.numel() for one in tensors.values()) > LARGEST:
        return ""
    alike = {tensors[name].shape: [one for one in read if tensors[one].shape == tensors[name].shape] for name in read}
    for names in (*([name] for name in read), *(many for many in alike.values() if len(many) > 1)):
        for taken, says in readings(names, tensors):
            seen = {name: _read(tensors[name], strides) for name, strides in taken.items()}
            if any(one is None for one in seen.values()):
                continue
            others = [seen.get(name, value) for name, value in zip(parameters(exercise), args, strict=False)]
            if explains(exercise, (*others, *args[len(others) :]), shown):
                return says
    return ""


def readings(names: Sequence[str], tensors: dict[str, Tensor]) -> Iterator[tuple[dict[str, Strides], str]]:
    """Other strides for these tensors of one shape, and what to say of them: the fewest changes first."""
    first = tensors[names[0]]
    packed = torch.empty(first.shape, device="meta").stride()
    who = f"{names[0]} was" if len(names) == 1 else f"{' and '.join(names)} were each"
    differ = [{tensors[one].stride(axis) for one in names} != {packed[axis]} for axis in range(first.dim())]
    odd = [axis for axis, n in enumerate(first.shape) if n > 1 and differ[axis]]
    counts = sorted({1, 2, len(odd)} & set(range(1, len(odd) + 1)))  # one or two are forgotten, or all
    for axes in (axes for count in counts for axes in combinations(odd, count)):
        taken = {name: _mixed(tensors[name].stride(), packed, axes) for name in names}
        if len(axes) == 1:
            what = f"stride({axes[0]}) is {first.stride(axes[0])}, and {packed[axes[0]]} was taken"
        else:
            what = f"stride() is {first.stride()}, and {taken[names[0]]} was taken"
        advice = f"as if {names[0]} were contiguous. Multiply by its strides, or call .contiguous() first."
        yield taken, f"{who} {WRONG_STRIDES}: {names[0]}.{what}, {advice}"
    for other, one in tensors.items():
        if len(names) == 1 and one.shape == first.shape and one.stride() not in (first.stride(), packed):
            what = f"stride() is {first.stride()}, and {other}'s, {one.stride()}, was taken."
            advice = "Pass each tensor its own strides."
            yield {names[0]: one.stride()}, f"{who} {WRONG_STRIDES}: {names[0]}.{what} {advice}"


def explains(exercise: Exercise, args: Args, shown: Comparison) -> bool:
    """Is what came out the oracle's result for these arguments, as closely as the right one would have to be?"""
    predicted = exercise.oracle(*args)[shown.index].to("cpu", torch.float64)
    if predicted.shape != shown.got.shape:
        return False
    limit = 2 * shown.limit.max()
    same = (shown.got == predicted) | (shown.got.isnan() & predicted.isnan())
    close = same | ((shown.got - predicted).abs() <= limit)
    other = (shown.expected != predicted) & ((shown.expected - predicted).abs() > limit)
    return bool(close.all()) and bool(other.any())


def _mixed(own: Strides, packed: Strides, axes: Sequence[int]) -> Strides:
    return tuple(packed[axis] if axis in axes else step for axis, step in enumerate(own))


def _read(x: Tensor, strides: Strides) -> Tensor | None:
    """x by other strides; None if they lead out of its memory."""
    last = x.storage_offset() + sum((n - 1) * step for n, step in zip(x.shape, strides, strict=True))
    inside = x.numel() and last < x.untyped_storage().nbytes() // x.element_size()
    return x.as_strided(x.shape, strides) if inside else None
