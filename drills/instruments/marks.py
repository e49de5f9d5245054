"""A map from element numbers to small integers over a range that may be far larger than memory.

Numpy only. Indices are a range (start, stop) or an array of integers.
"""

from __future__ import annotations

import numpy as np

FLAT = 1 << 24
"""Up to this many elements the map is one array (the system hands out its pages as they are touched)."""

PAGE = 1 << 12

Index = tuple[int, int] | np.ndarray


class Marks:
    """Numbers 0 to size - 1, each with a value, 0 at first."""

    def __init__(self, size: int, dtype: type = np.int32) -> None:
        self.dtype = dtype
        self.flat = np.zeros(size, dtype) if size <= FLAT else None
        self.pages: dict[int, np.ndarray] = {}

    def get(self, index: Index) -> np.ndarray:
        """Values at `index`."""
        if self.flat is not None:
            return self.flat[slice(*index)] if isinstance(index, tuple) else self.flat[index]
        numbers = numbered(index)
        found = np.zeros(numbers.size, self.dtype)
        for page, where in self._by_page(numbers):
            if page in self.pages:
                found[where] = self.pages[page][numbers[where] % PAGE]
        return found

    def put(self, index: Index, value: int) -> None:
        """Set the values at `index`."""
        if self.flat is not None:
            if isinstance(index, tuple):
                self.flat[slice(*index)] = value
            else:
                self.flat[index] = value
            return
        numbers = numbered(index)
        for page, where in self._by_page(numbers):
            values = self.pages.setdefault(page, np.zeros(PAGE, self.dtype))
            values[numbers[where] % PAGE] = value

    def count(self) -> int:
        """How many elements have a value other than 0."""
        if self.flat is not None:
            return int(np.count_nonzero(self.flat))
        return sum(int(np.count_nonzero(values)) for values in self.pages.values())

    @staticmethod
    def _by_page(numbers: np.ndarray) -> list[tuple[int, np.ndarray]]:
        pages = numbers // PAGE
        return [(int(page), pages == page) for page in np.unique(pages)]


def numbered(index: Index) -> np.ndarray:
    """The index as an array."""
    return np.arange(*index, dtype=np.int64) if isinstance(index, tuple) else index


def distinct(index: Index) -> int:
    """How many different elements an index names."""
    if isinstance(index, tuple):
        return index[1] - index[0]
    return index.size if increasing(index) else int(np.unique(index).size)


def increasing(index: np.ndarray) -> bool:
    """Whether each number is larger than the one before it."""
    return bool((index[1:] > index[:-1]).all())


def shifted(index: Index, by: int) -> Index:
    """The index with `by` added to every number."""
    return (index[0] + by, index[1] + by) if isinstance(index, tuple) else index.astype(np.int64) + by
