"""Which strides did an access outside its tensor take for the tensor's own? Told only where nothing else fits.

The lanes of a block step through memory by a stride; where its first lane lies, whole numbers of steps along the axes
have led. Strides that explain both are looked for: those of a contiguous tensor along some of the axes, and those of
another tensor. An index past the end of an axis, by the right strides, is no wrong stride.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations

import numpy as np

from drills.instruments.ledger import Region

MOST_PLACES = 1 << 16
"""Index tuples that are looked at for one set of strides."""

Strides = tuple[int, ...]


class TooMany(Exception):
    """More index tuples than are looked at: nothing can be said."""


@dataclass(frozen=True)
class Walk:
    """A block's elements: the first lane's, counted from the tensor's first, and (lanes, step) of each axis that moves.

    The longest step comes first. live: for every lane whether it is in use, along these axes.
    """

    first: int
    axes: tuple[tuple[int, int], ...]
    live: np.ndarray


def strides_taken(
    region: Region, addresses: np.ndarray, mask: np.ndarray | None, lost: int, others: Iterable[Region]
) -> str:
    """One sentence on the strides that were taken for the tensor's, and whose they are; "" where that is not plain.

    lost: the first address outside. Of a block that is uneven as a whole, its lines through that lane are looked at,
    and the lane alone.
    """
    others = list(others)
    live = np.ones(addresses.shape, bool) if mask is None else np.broadcast_to(mask != 0, addresses.shape)
    whole = walk(addresses, live, region.view.base, region.view.itemsize)
    blocks = [whole] if whole else []
    if whole is None:
        lane = tuple(map(int, np.argwhere(live & (addresses == lost))[0]))
        lines = [(*lane[:axis], slice(None), *lane[axis + 1 :]) for axis in range(addresses.ndim)]
        for line in (*lines, (*lane, ...)):
            blocks.append(walk(addresses[line], live[line], region.view.base, region.view.itemsize))
    try:
        return next(filter(None, (_told(region, block, others) for block in blocks if block)), "")
    except TooMany:
        return ""


def _told(region: Region, block: Walk, others: Sequence[Region]) -> str:
    view = region.view
    if not block.axes and sum(n > 1 for n in view.shape) > 1:
        return ""  # one lane alone, and many ways that lead there
    ways = (block, joined(block))

    def fit(strides: Strides, past: bool = False) -> bool:
        return any(explains(way, view.shape, strides, past) for way in ways)

    if fit(view.strides, past=True):
        return ""
    packed = contiguous(view.shape)
    odd = [axis for axis, n in enumerate(view.shape) if n > 1 and view.strides[axis] != packed[axis]]
    mixed = {
        axes: tuple(packed[axis] if axis in axes else step for axis, step in enumerate(view.strides))
        for count in range(1, len(odd) + 1)
        for axes in combinations(odd, count)
    }
    fits = [axes for axes, strides in mixed.items() if fit(strides)]
    known = {view.strides, *mixed.values()}
    alike = [one for one in others if len(one.view.strides) == len(packed) and one.view.strides not in known]
    theirs = [one for one in alike if fit(one.view.strides)]
    if fits and not theirs and all(set(fits[0]) <= set(axes) for axes in fits):
        return _as_contiguous(region.shown, view.strides, mixed[fits[0]], fits[0])
    if theirs and not fits and len({one.view.strides for one in theirs}) == 1:
        return (
            f"{region.shown}.stride() is {view.strides}, but here {theirs[0].view.strides} is taken for it, which is "
            f"{theirs[0].shown}'s: pass each tensor its own strides."
        )
    return ""


def walk(addresses: np.ndarray, live: np.ndarray, base: int, itemsize: int) -> Walk | None:
    """The access as steps from its first lane; None if its lanes do not follow on evenly."""
    at = addresses.astype(np.int64) - base
    if not at.size or bool((at % itemsize).any()):
        return None
    at //= itemsize
    origin = (0,) * at.ndim
    expected, axes = np.full(at.shape, at[origin]), []
    for axis, lanes in enumerate(at.shape):
        step = int(at[(*origin[:axis], 1, *origin[axis + 1 :])] - at[origin]) if lanes > 1 else 0
        expected = expected + step * np.arange(lanes).reshape([-1 if one == axis else 1 for one in range(at.ndim)])
        axes.append((lanes, step))
    if not bool((at == expected).all()):
        return None
    still = tuple(axis for axis, (_, step) in enumerate(axes) if not step)
    moving = [one for one in axes if one[1]]
    order = sorted(range(len(moving)), key=lambda axis: -abs(moving[axis][1]))
    return Walk(int(at[origin]), tuple(moving[axis] for axis in order), live.any(axis=still).transpose(order))


def joined(block: Walk) -> Walk:
    """The same, with axes that follow on from one another as one: a row of 8 times 4 lanes is a row of 32."""
    axes: list[tuple[int, int]] = []
    for lanes, step in block.axes:
        if axes and axes[-1][1] == lanes * step:
            axes[-1] = (axes[-1][0] * lanes, step)
        else:
            axes.append((lanes, step))
    return Walk(block.first, tuple(axes), block.live.reshape([lanes for lanes, _ in axes]))


def explains(block: Walk, shape: tuple[int, ...], strides: Strides, past: bool = False) -> bool:
    """Can the block be one of this shape and these strides? Blocks begin at a whole number of blocks.

    past: indices may run past the end of their axes, as far again as these are long and a block more.
    """
    every = range(len(shape))
    for walked in permutations(every, len(block.axes)):
        if any(strides[axis] != step for axis, (_, step) in zip(walked, block.axes, strict=True)):
            continue
        lanes = {axis: count for axis, (count, _) in zip(walked, block.axes, strict=True)}
        ends = {axis: shape[axis] * (2 if past else 1) + (lanes.get(axis, 0) if past else 0) for axis in every}
        for index in _places(block.first, {axis: (strides[axis], ends[axis], lanes.get(axis, 1)) for axis in every}):
            if past or _inside(block.live, [shape[axis] - index[axis] for axis in walked]):
                return True
    return False


def contiguous(shape: tuple[int, ...]) -> Strides:
    """The strides of a contiguous tensor."""
    return tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))


def _places(first: int, axes: dict[int, tuple[int, int, int]]) -> Iterator[dict[int, int]]:
    """Index tuples that lead to an element. axes: axis → its stride, where its indices end, and the step of these.

    TooMany if they are more than can be looked at.
    """
    ranges = {axis: np.arange(0, end, step, dtype=np.int64) for axis, (_, end, step) in axes.items()}
    if math.prod(len(one) for one in ranges.values()) > MOST_PLACES:
        raise TooMany
    grids = np.meshgrid(*ranges.values(), indexing="ij")
    total = sum((grid * axes[axis][0] for axis, grid in zip(ranges, grids, strict=True)), np.int64(0))
    for place in np.argwhere(np.asarray(total == first)):
        yield {axis: int(grid[tuple(place)]) for axis, grid in zip(ranges, grids, strict=True)}


def _inside(live: np.ndarray, room: list[int]) -> bool:
    """Is no lane in use beyond the room that is left along its axis?"""
    return not any(live.take(range(max(left, 0), live.shape[axis]), axis).any() for axis, left in enumerate(room))


def _as_contiguous(name: str, own: Strides, taken: Strides, axes: tuple[int, ...]) -> str:
    if len(axes) == 1:
        what = f"{name}.stride({axes[0]}) is {own[axes[0]]}, but here {taken[axes[0]]} is taken for it"
    else:
        what = f"{name}.stride() is {own}, but here {taken} is taken for it"
    return f"{what}, as if {name} were contiguous: multiply by its strides, or call .contiguous() in the wrapper."
