"""What memory a tensor covers: which byte offsets hold one of its elements, and what to call a place in it.

Plain integers and numpy; knows neither torch nor Triton. Strides are in elements, addresses and extents in bytes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

ENUMERABLE = 1 << 22
"""Views whose strides overlap are checked element by element up to this many elements."""


@dataclass
class View:
    """One tensor's memory: elements of `itemsize` bytes at base + itemsize · (index · strides).

    low, high: first byte and the byte after the last; equal if there is no element.
    dense: every element between low and high belongs to it. contiguous: and they lie in index order.
    """

    base: int
    itemsize: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    low: int = field(init=False)
    high: int = field(init=False)
    dense: bool = field(init=False)
    contiguous: bool = field(init=False)

    def __post_init__(self) -> None:
        numel = math.prod(self.shape)
        dims = [(s, n) for s, n in zip(self.strides, self.shape, strict=True) if n > 1 and s != 0]
        span = 1 + sum(s * (n - 1) for s, n in dims) if numel else 0
        self.low = self.base
        self.high = self.base + span * self.itemsize
        self._dims = sorted(dims, reverse=True)
        self._nested = all(
            s >= 1 + sum(t * (m - 1) for t, m in self._dims[k + 1 :]) for k, (s, _) in enumerate(self._dims)
        )
        self.dense = self._nested and span == math.prod(n for _, n in self._dims) * min(numel, 1)
        self.contiguous = self.dense and dims == self._dims and span == numel
        self._offsets: np.ndarray | None = None

    @property
    def numel(self) -> int:
        """Number of elements, repeated ones counted as often as they are indexed."""
        return math.prod(self.shape)

    @property
    def overlapping(self) -> bool:
        """Whether two different indices can mean the same element, repeated dimensions (stride 0) aside."""
        return not self._nested

    def covers(self, addresses: np.ndarray, itemsize: int) -> np.ndarray:
        """For each address of an access of `itemsize` bytes, in any shape: whether it lies on an element.

        Exact for gaps between rows. An access of another width than the tensor's must start in an element and end
        inside the tensor.
        """
        start = addresses.astype(np.int64) - self.base
        inside = (start >= 0) & (start + itemsize <= self.high - self.base)
        if self.dense or not inside.any():
            return inside
        rest = start // self.itemsize
        if self._nested:
            for stride, size in self._dims:
                index = rest // stride
                inside = inside & (index < size)
                rest = rest - index * stride
            return inside & (rest == 0)
        offsets = self.offsets()
        return inside if offsets is None else inside & np.isin(rest, offsets)

    def offsets(self) -> np.ndarray | None:
        """Sorted distinct element offsets from the base; None if there are too many to write down."""
        if math.prod(n for _, n in self._dims) > ENUMERABLE:
            return None
        if self._offsets is None:
            found = np.zeros(min(self.numel, 1), dtype=np.int64)
            for stride, size in self._dims:
                found = (found[:, None] + stride * np.arange(size, dtype=np.int64)).ravel()
            self._offsets = np.unique(found)
        return self._offsets

    def index(self, offset: int) -> tuple[int, ...]:
        """Index of the element that lies `offset` elements from the base (0 in repeated dimensions)."""
        rest, found = offset, [0] * len(self.shape)
        for dim in sorted(range(len(self.shape)), key=lambda d: -self.strides[d]):
            if self.shape[dim] > 1 and self.strides[dim] > 0:
                found[dim], rest = divmod(rest, self.strides[dim])
        return tuple(found)

    def words(self, name: str) -> str:
        """The tensor as messages show it: v_a[40, 80], with its strides where they are not the obvious ones."""
        shape = ", ".join(map(str, self.shape))
        if self.contiguous or not self.numel:
            return f"{name}[{shape}]"
        return f"{name}[{shape}] (strides {', '.join(map(str, self.strides))})"


def overlap(a: View, b: View) -> bool:
    """Whether the two share a byte; exact up to a limit, then whether their extents meet."""
    low, high = max(a.low, b.low), min(a.high, b.high)
    if low >= high:
        return False
    if a.dense and b.dense:
        return True
    ours, theirs = a.offsets(), b.offsets()
    if ours is None or theirs is None:
        return True
    return bool(np.intersect1d(_bytes(a, ours), _bytes(b, theirs)).size)


def _bytes(view: View, offsets: np.ndarray) -> np.ndarray:
    return (view.base + view.itemsize * offsets[:, None] + np.arange(view.itemsize)).ravel()
