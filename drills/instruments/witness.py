"""Holds memory against what was seen to be written to it: by launched kernels, and by torch operations.

Whatever else writes (another thread, numpy, ctypes, torch with its modes switched off) is found by the bytes it leaves.
Must never change what it looks at. It keeps its own hold on the functions that it needs, which graded code could
replace for everybody else.
"""

from __future__ import annotations

from collections.abc import Iterable
from ctypes import string_at

import torch

LARGEST = 16 << 20
"""Bytes of the largest storage that is watched: a copy of more would cost."""

_storage = torch.Tensor.untyped_storage
_nbytes, _pointer = torch.UntypedStorage.nbytes, torch.UntypedStorage.data_ptr
_device, _layout = torch.Tensor.device.__get__, torch.Tensor.layout.__get__


class Witness:
    """Copies of storages as they were when last seen to be written, by address."""

    def __init__(self) -> None:
        self.kept: dict[int, bytes] = {}

    def remember(self, tensors: Iterable[torch.Tensor]) -> None:
        """What these tensors' storages hold now is as it should be."""
        for tensor in tensors:
            place, size = memory(tensor)
            if size:
                self.kept[place] = string_at(place, size)

    def again(self, places: Iterable[int]) -> None:
        """The same for storages that are known, by address."""
        for place in places:
            if place in self.kept:
                self.kept[place] = string_at(place, len(self.kept[place]))

    def changed(self, tensors: Iterable[torch.Tensor]) -> list[torch.Tensor]:
        """Those whose storage is no longer as it was; remembered as it is now, so that each change counts once."""
        found = []
        for tensor in tensors:
            place, size = memory(tensor)
            before = self.kept.get(place)
            if before is not None and len(before) == size and before != string_at(place, size):
                found.append(tensor)
                self.again([place])
        return found


def memory(tensor: torch.Tensor) -> tuple[int, int]:
    """Address and bytes of a tensor's storage; (0, 0) where it is on a GPU, has none, or is too large to look at."""
    if _device(tensor).type != "cpu" or _layout(tensor) is not torch.strided:
        return 0, 0
    storage = _storage(tensor)
    size = _nbytes(storage)
    return (_pointer(storage), size) if 0 < size <= LARGEST else (0, 0)
