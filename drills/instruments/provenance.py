"""Where each element of a tensor came from: a kernel, a fill, a copy of something, or anywhere else.

Follows storages that the graded function allocates. Flags are kept in a shadow of one byte an element, so that the same
views and copies can be applied to them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import torch

from drills.instruments.geometry import address, alias, extent, held, itemsize, numel, offset, pointer, sizes, strides
from drills.instruments.ledger import Region
from drills.instruments.marks import shifted

KERNEL, FILL, COPY, OTHER = 1, 2, 4, 8
"""Stored by a launched kernel; filled with a constant; copied from an input; computed by torch or brought in."""

SHADOWED = 1 << 28
"""Storages of more elements than this have no shadow: what a kernel touched of them counts as written whole."""


@dataclass
class Book:
    """What is known of one storage. flags: one a element of `itemsize` bytes; None if it is too large.

    keep: a tensor in it, which nobody else has. brought: nobody saw it being allocated. filled: some of it was, by
    anything but kernels. fills: how often since.
    """

    itemsize: int
    flags: torch.Tensor | None
    keep: torch.Tensor
    name: str = ""
    kernel: bool = False
    brought: bool = False
    filled: bool = False
    fills: int = 0


@dataclass
class Provenance:
    """Books by storage address. inputs: the tensors of the call by name. values: storages that hold floats of the
    inputs or of kernels, or what was made of them.
    """

    inputs: dict[str, torch.Tensor]
    books: dict[int, Book] = field(default_factory=dict)
    values: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.values = {address(t) for t in self.inputs.values() if t.dtype.is_floating_point}
        self.inputs = {name: alias(one) for name, one in self.inputs.items()}
        self.given = {address(one): one for one in self.inputs.values()}
        self.places = {name: address(one) for name, one in self.inputs.items()}

    def book(self, place: int) -> Book | None:
        """What is known of the storage at this address; nothing of one that has been moved from there."""
        found = self.books.get(place)
        if found is not None and address(found.keep) != place:
            del self.books[place]
            return None
        return found

    def moved(self) -> list[str]:
        """Inputs whose storage is no longer where it was."""
        return [name for name, place in self.places.items() if address(self.inputs[name]) != place]

    def is_disguised(self, tensor: torch.Tensor) -> bool:
        """Whether its storage begins where one begins that is known, but is another: torch made them of one memory."""
        place = address(tensor)
        book = self.book(place)
        known = self.given.get(place) if book is None else book.keep
        return known is not None and address(known) == place and held(known) != held(tensor)

    def allocated(self, tensor: torch.Tensor, flag: int, name: str = "") -> None:
        """A new storage, all of it of one kind (0: not written yet)."""
        if not held(tensor):
            return
        count = held(tensor) // itemsize(tensor)
        flags = torch.full((count,), flag, dtype=torch.uint8) if count <= SHADOWED else None
        self.books[address(tensor)] = Book(itemsize(tensor), flags, alias(tensor), name, filled=flag != 0)

    def met(self, tensor: torch.Tensor) -> bool:
        """A launch uses a tensor: floats in it are values from now on. Whether it is from before the call.

        Such a tensor (a cached buffer) counts as not written in this call.
        """
        if tensor.dtype.is_floating_point:
            self.values.add(address(tensor))
        if self.book(address(tensor)) is not None or self.source(tensor):
            return False
        self.allocated(tensor, 0)
        book = self.book(address(tensor))
        if book is not None:
            book.brought = book.filled = True
        return book is not None

    def flags(self, tensor: torch.Tensor) -> torch.Tensor:
        """One flag an element, of the tensor's shape: a view that can be written where a book exists."""
        book = self.book(address(tensor))
        if book is None:
            kind = COPY if self.source(tensor) else OTHER
        elif book.flags is None or book.itemsize != itemsize(tensor):
            kind = KERNEL if book.kernel else self._all(book)
        else:
            return book.flags.as_strided(sizes(tensor), strides(tensor), offset(tensor))
        return torch.full(tuple(sizes(tensor)), kind, dtype=torch.uint8)

    def copied(self, tensor: torch.Tensor) -> torch.Tensor:
        """The flags of a copy of it: in another type than it was allocated in, all filled if anything is."""
        book = self.book(address(tensor))
        if book is None or book.flags is None or book.itemsize == itemsize(tensor):
            return self.flags(tensor)
        filled = (book.flags > 0) & (book.flags & (KERNEL | COPY) == 0)
        return torch.full(tuple(sizes(tensor)), FILL, dtype=torch.uint8) if bool(filled.any()) else self.flags(tensor)

    def set(self, tensor: torch.Tensor, flags: int | torch.Tensor) -> None:
        """Overwrite the flags of a tensor's elements; without a book there is nothing to write."""
        book = self.book(address(tensor))
        if book is None or book.flags is None:
            return
        book.filled = True
        book.fills += 1
        if book.itemsize != itemsize(tensor):
            book.flags.fill_(flags if isinstance(flags, int) else OTHER)
        else:
            self.flags(tensor).copy_(torch.as_tensor(flags, dtype=torch.uint8))

    def stored(self, region: Region) -> None:
        """A launch stored to this region."""
        accesses = [*region.stores, *region.atomics]
        if not accesses:
            return
        book = self.book(region.storage)
        if book is None:
            return
        book.kernel = True
        if book.flags is None or book.itemsize != region.view.itemsize:
            return
        flags = book.flags.numpy()
        start = (region.view.low - region.storage) // book.itemsize
        for access in accesses:
            index = shifted(access.index, start)
            if isinstance(index, tuple):
                flags[slice(*index)] |= KERNEL
            else:
                flags[index] |= np.uint8(KERNEL)

    def handed(self, region: Region) -> None:
        """A launch that nobody could watch was given this region."""
        book = self.book(region.storage)
        if book is not None:
            book.kernel = True
            if book.flags is not None:
                book.flags |= KERNEL

    def source(self, tensor: torch.Tensor) -> str:
        """The input that a tensor is a view or a copy of; "" if it is neither."""
        book = self.book(address(tensor))
        if book is not None:
            return book.name
        start = pointer(tensor)
        named = [(name, self.inputs[name]) for name, place in self.places.items() if place == address(tensor)]
        for name, one in named:
            if pointer(one) <= start < pointer(one) + max(1, extent(one)) * itemsize(one):
                return name
        return named[0][0] if named else ""

    def data(self, tensor: torch.Tensor) -> int:
        """How many of its elements come from the inputs, as far as anybody saw, or are not written yet.

        The others are constants, as in padding, or were computed where nobody looks.
        """
        if self.source(tensor):
            return numel(tensor)
        book = self.book(address(tensor))
        if book is None:
            return 0
        if book.flags is not None and not (book.filled or book.brought):
            return numel(tensor)
        flags = self.flags(tensor)
        good = flags & (KERNEL | COPY) if book.brought else (flags == 0) | (flags & (KERNEL | COPY) > 0)
        return int(torch.count_nonzero(good))

    def is_given(self, tensor: torch.Tensor) -> bool:
        """Whether it lies in an input's memory."""
        return address(tensor) in self.given

    def is_value(self, tensor: torch.Tensor) -> bool:
        """Whether a tensor holds values, or what was made of values, rather than indices and constants."""
        return address(tensor) in self.values

    @staticmethod
    def _all(book: Book) -> int:
        return OTHER if book.flags is None else int(book.flags.max()) if book.flags.numel() else 0
