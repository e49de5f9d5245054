"""Holds memory against what was seen to be written to it: by launched kernels, and by torch operations.

Whatever else writes (another thread, numpy, ctypes, torch with its modes switched off) is found by the bytes it leaves.
Must never change what it looks at. It keeps its own hold on the functions that it needs, which graded code could
replace for everybody else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from ctypes import c_char, memmove
from hashlib import sha1

import numpy as np
import torch

from drills.instruments.bytes_at import bytes_at
from drills.instruments.geometry import dtype, itemsize, offset, sizes, strides

LARGEST = 16 << 20
"""Bytes of the largest storage of which a copy is kept; of a larger one only a digest is."""

LARGEST_COPY = 256 << 20
"""Bytes of the largest storage that a launch is given a copy of."""

MOST = 4 << 30
"""Bytes of the largest storage that is looked at: beyond, it is address space rather than memory."""

_storage = torch.Tensor.untyped_storage
_nbytes, _pointer = torch.UntypedStorage.nbytes, torch.UntypedStorage.data_ptr
_frombuffer, _neg_view, _conj = torch.frombuffer, torch._neg_view, torch._conj
_as_strided, _is_neg, _is_conj = (getattr(torch._C.TensorBase, name) for name in ("as_strided", "is_neg", "is_conj"))
_device, _layout = torch.Tensor.device.__get__, torch.Tensor.layout.__get__


class Witness:
    """Copies of storages as they were when last seen to be written, by address. given: the call's inputs.

    Large inputs are left aside: what lies between their elements may be nothing but address space.
    """

    def __init__(self, given: Iterable[torch.Tensor] = ()) -> None:
        self.kept: dict[int, bytes] = {}
        self.sizes: dict[int, int] = {}
        given = list(given)
        self.aside = {place for place, size in map(memory, given) if size > LARGEST}
        self.remember(given)

    def remember(self, tensors: Iterable[torch.Tensor]) -> None:
        """What these tensors' storages hold now is as it should be."""
        for tensor in tensors:
            place, size = memory(tensor)
            if 0 < size <= MOST and place not in self.aside:
                self.kept[place], self.sizes[place] = seen(place, size), size

    def meet(self, tensors: Iterable[torch.Tensor]) -> None:
        """The same for those whose storage is not known yet: what is, has been looked at, and may be another since."""
        self.remember(tensor for tensor in tensors if self.sizes.get(memory(tensor)[0]) != memory(tensor)[1])

    def again(self, places: Iterable[int]) -> None:
        """The same for storages that are known, by address."""
        for place in places:
            if place in self.kept:
                self.kept[place] = seen(place, self.sizes[place])

    def changed(self, tensors: Iterable[torch.Tensor]) -> Iterator[torch.Tensor]:
        """Those whose storage is no longer as it was; remembered as it is now, so that each change counts once.

        Not before it has been told: who is told may be left by an exception.
        """
        for tensor in tensors:
            place, size = memory(tensor)
            if self.sizes.get(place) == size and self.kept[place] != seen(place, size):
                yield tensor
                self.again([place])

    def blind_to(self, tensor: torch.Tensor) -> bool:
        """Whether a tensor lies in a storage that is too large to be looked at."""
        return memory(tensor)[1] > MOST


class Private:
    """What a launch, or an operation, works on in place of memory that others reach: copies that nobody else knows.

    Whatever runs meanwhile (a thread, a handler of signals, what print calls) can change nothing of what a kernel reads
    and writes. Storages too large to be copied are used as they are.
    """

    def __init__(self, witness: Witness) -> None:
        self.witness = witness
        self.copies: dict[int, np.ndarray] = {}
        self.places: dict[int, int] = {}
        self.shifts: dict[int, np.uint64] = {}

    def shift(self, place: int) -> np.uint64:
        """What is added to an address in this storage to get the same place in its copy."""
        found = self.shifts.get(place)
        if found is None:
            size, far = self.witness.sizes.get(place, 0), 0
            if 0 < size <= LARGEST_COPY:
                data = self.witness.kept[place] if size <= LARGEST else bytes_at(place, size)
                self.copies[place] = np.frombuffer(bytearray(data), np.uint8)
                # `.ctypes` would ask a class in Python, which graded code can replace.
                self.places[place] = self.copies[place].__array_interface__["data"][0]
                far = (self.places[place] - place) % (1 << 64)
            found = self.shifts[place] = np.uint64(far)
        return found

    def tensor(self, tensor: torch.Tensor) -> torch.Tensor:
        """The same tensor in the copy; itself where there is none."""
        place, size = memory(tensor)
        self.shift(place)
        copy = self.copies.get(place)
        if copy is None or copy.size != size or size < itemsize(tensor):
            return tensor
        flat = _frombuffer(copy, dtype=dtype(tensor), count=size // itemsize(tensor))
        fresh = _as_strided(flat, sizes(tensor), strides(tensor), offset(tensor))
        fresh = _neg_view(fresh) if _is_neg(tensor) else fresh
        return _conj(fresh) if _is_conj(tensor) else fresh

    def put_back(self) -> list[int]:
        """The launch has ended: memory is as it left it. The storages that something else had written to."""
        found = []
        kept = self.witness.kept
        for place, copy in self.copies.items():
            size, mine = copy.size, self.places[place]
            if seen(place, size) != kept[place]:
                found.append(place)
            memmove(place, mine, size)
            kept[place] = seen(mine, size)
        return found


def seen(place: int, size: int) -> bytes:
    """What memory holds: its bytes, or, if these are many, a digest of them."""
    if size <= LARGEST:
        return bytes_at(place, size)
    return sha1((c_char * size).from_address(place), usedforsecurity=False).digest()


def memory(tensor: torch.Tensor) -> tuple[int, int]:
    """Address and bytes of a tensor's storage; (0, 0) where it is on a GPU, or has none."""
    if _device(tensor).type != "cpu" or _layout(tensor) is not torch.strided:
        return 0, 0
    storage = _storage(tensor)
    size = _nbytes(storage)
    return (_pointer(storage), size) if size else (0, 0)
