"""What kernels are told rather than load: numbers, shapes, which memory they get, and what was put into it by hand.

Written down as text, an entry for each launch and for each copy of values, so that two calls can be held against each
other: where only the values of floats differ, kernels must be told the same. Otherwise they might be told a result.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from typing import Any

import numpy as np
import torch

from drills.instruments import own_words
from drills.instruments.bytes_at import bytes_at
from drills.instruments.constants import encode, exactly, fields_of
from drills.instruments.geometry import address, dtype, held, pointer, sizes, strides
from drills.instruments.ledger import Region
from drills.instruments.notes import Launch
from drills.instruments.provenance import COPY, KERNEL, Book, Provenance
from drills.instruments.witness import Witness

LONGEST = 200
"""Characters of one value; of a longer one the beginning and a digest."""

MOST_LEFT = 1000
PARTS = ("shape", "strides", "block_shape", "padding", "dtype")
"""What a tensor descriptor, or another dtype's view of a tensor, tells besides its memory."""

BY_HAND = np.array([flag != 0 and not flag & (KERNEL | COPY) for flag in range(256)])
UNSEEN = np.array([not flag & (KERNEL | COPY) for flag in range(256)])
"""By its flag: whether an element is told. The second for memory that was there before the call."""

LOWEST_ADDRESS = 1 << 16
"""Linux has nothing below. Where Python is at a fixed address (Debian's is), small tensors lie far below 4 GB."""

UNKNOWN = '{"other":'
"""Begins what `encode` says of an object that it does not know."""

OF_TORCH = (torch.dtype, torch.device, torch.layout, torch.memory_format)


class Left:
    """Workspaces that kernels of earlier calls wrote to, as they left them: what they hold says nothing of this call.

    Only those that were torch.empty at first: who keeps others from call to call means what they hold.
    """

    def __init__(self) -> None:
        self.held: dict[int, tuple[int, bytes]] = {}

    def keep(self, books: dict[int, Book], kept: dict[int, bytes], results: Iterable[torch.Tensor]) -> None:
        """A call has ended."""
        if len(self.held) > MOST_LEFT:
            self.held.clear()
        returned = set(map(address, results))
        for place, book in books.items():
            if book.kernel and not book.filled and place in kept and place not in returned:
                self.held[place] = len(kept[place]), _digest(kept[place])

    def knows(self, place: int, data: bytes) -> bool:
        """Whether this memory holds what it was left with."""
        return self.held.get(place) == (len(data), _digest(data))


class Told:
    """Of one call. entries: the text; nothing is written down of kernels that are not interpreted."""

    def __init__(self, provenance: Provenance, witness: Witness, interpreted: bool) -> None:
        self.provenance, self.witness, self.interpreted = provenance, witness, interpreted
        self.entries: list[str] = []
        self.numbers: dict[int, int] = {}
        self.contents: dict[int, tuple[Book, int, str]] = {}
        self.unknown = 0
        self.inputs: dict[int, tuple[str, int]] = {}
        for name, tensor in provenance.inputs.items():
            self.inputs.setdefault(address(tensor), (name, pointer(tensor)))

    def launch(self, launch: Launch, values: dict[str, Any], regions: dict[str, Region]) -> None:
        """A launch begins. values: what its parameters get; of tensors, of which regions are, kernels see no more."""
        x, y, z = launch.grid
        parts = [f"{launch.kernel}, line {launch.line}; grid = ({x}, {y}, {z})"]
        for name, value in values.items():
            region = regions.get(name)
            if region is not None and isinstance(value, torch.Tensor):
                parts.append(f"{name} = {self._place(region.storage, region.view.base)}")
            else:
                parts.append(f"{name} = {_short(self.text(value))}")
        self.entries.append("; ".join(parts))

    def pointed(self, kernel: str, places: list[int]) -> None:
        """A launch is over, and its kernel has reached these storages by an address that no parameter was.

        Where they are, the address has told. Of them, only what was put there by hand is told: the values may decide
        which of the others a kernel needs.
        """
        filled = sorted(filter(None, map(self._contents, places)))
        if filled:
            self.entries.append("; ".join([kernel, *(f"memory behind a pointer ={one}" for one in filled)]))

    def operation(self, name: str, args: Any) -> None:
        """Torch moves values, or writes to an input."""
        if self.interpreted:
            self.entries.append(f"{name}; arguments = {_short(self.text(args))}")

    def returned(self, tensors: dict[str, torch.Tensor]) -> None:
        """The call's results."""
        if self.interpreted:
            self.entries.append("; ".join(["return", *(f"{name} = {self._tensor(t)}" for name, t in tensors.items())]))

    def text(self, value: Any) -> str:
        """One value, tensors by where they lie."""
        kind = type(value)
        if kind is int:
            return self._address(value) if value >= LOWEST_ADDRESS else repr(value)
        if kind in (float, bool) or value is None:
            return exactly(value)
        if isinstance(value, torch.Tensor):
            return self._tensor(value)
        if isinstance(value, (tuple, list)):
            return f"({', '.join(map(self.text, value))}){''.join(fields_of(value))}"
        if isinstance(value, dict):
            return f"({', '.join(f'{name} {self.text(one)}' for name, one in value.items())})"
        if isinstance(value, OF_TORCH):
            return str(value)
        base = getattr(value, "base", None)
        if isinstance(base, torch.Tensor):
            return f"{self._tensor(base)} {self.text([getattr(value, part, None) for part in PARTS])}"
        if kind.__name__ == "constexpr":
            return f"constexpr {self.text(value.value)}"
        made = own_words.text(encode(value)).decode()
        if UNKNOWN in made:
            self.unknown += 1  # of which nothing can be said: it may hold anything
            return f"{made} {id(self)} {self.unknown}"
        return made

    def _tensor(self, tensor: torch.Tensor) -> str:
        layout = f"{dtype(tensor)}{list(sizes(tensor))}{list(strides(tensor))}"
        return f"{self._place(address(tensor), pointer(tensor))} {layout}"

    def _place(self, place: int, at: int) -> str:
        """Where an address in this storage is, and what of the storage was put there by hand."""
        if place in self.inputs:
            name, start = self.inputs[place]
            return f"{name}{at - start:+d}"
        return f"{self._memory(place)}{at - place:+d}{self._contents(place)}"

    def _memory(self, place: int) -> str:
        if place in self.inputs:
            return self.inputs[place][0]
        return f"memory {self.numbers.setdefault(place, len(self.numbers))}" if place else "nothing"

    def _start(self, place: int) -> int:
        return self.inputs[place][1] if place in self.inputs else place

    def _address(self, value: int) -> str:
        """An integer, or the place that it is the address of."""
        for place, size in self._places():
            if place <= value < place + size:
                return f"{self._memory(place)}{value - self._start(place):+d}"
        return repr(value)

    def _places(self) -> list[tuple[int, int]]:
        known = [*self.provenance.inputs.values(), *(book.keep for book in self.provenance.books.values())]
        return [(address(one), held(one)) for one in known]

    def _contents(self, place: int) -> str:
        """A digest of what was put there by neither kernels nor copies of inputs; "" where there is nothing such.

        What has been told once stays told until more is put there: kernels may overwrite some of it, and the values
        may decide what.
        """
        book = self.provenance.book(place)
        if book is None or not book.filled or place in self.inputs:
            return ""
        known, fills, text = self.contents.get(place, (None, 0, ""))
        if known is not book or fills != book.fills:
            text = self._put_by_hand(place, book)
            self.contents[place] = book, book.fills, text
        return text

    def _put_by_hand(self, place: int, book: Book) -> str:
        data = self._bytes(place, held(book.keep))
        if book.flags is None:
            return f" {_digest(data).hex()}"
        told = (UNSEEN if book.brought else BY_HAND)[book.flags.numpy()]
        if not told.any():
            return ""
        values = np.frombuffer(data, np.uint8, told.size * book.itemsize).reshape(told.size, book.itemsize)[told]
        rest = data[told.size * book.itemsize :]
        return f" {_digest(np.packbits(told).tobytes(), self._without_addresses(values), rest).hex()}"

    def _bytes(self, place: int, size: int) -> bytes:
        """What was there when the launch began, if one runs."""
        data = self.witness.kept.get(place, b"")
        return data if len(data) == size else bytes_at(place, size)

    def _without_addresses(self, values: np.ndarray) -> bytes:
        """Elements as bytes; in place of an address, which is another in every call, where it points to."""
        if values.shape[1] != 8:
            return values.tobytes()
        numbers = np.ascontiguousarray(values).view(np.int64).ravel()
        if not (numbers >= LOWEST_ADDRESS).any():
            return values.tobytes()
        found = []
        for place, size in self._places():
            here = (numbers >= place) & (numbers < place + size)
            if here.any():
                found.append(f"{self._memory(place)} at {np.flatnonzero(here).tolist()}")
                numbers = np.where(here, numbers - self._start(place), numbers)
        return numbers.tobytes() + " ".join(found).encode()


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}… {_digest(text.encode(errors='replace')).hex()}"


def _digest(*parts: bytes) -> bytes:
    made = blake2b(digest_size=16)
    for part in parts:
        made.update(part)
    return made.digest()
