"""Where a tensor lies in memory and how it is laid out, asked in a way that graded code cannot answer.

A tensor may be given a method of its own, and its class another one: `right.untyped_storage = result.untyped_storage`
would name one memory for another. These functions were taken hold of before any graded code was loaded.
"""

from __future__ import annotations

import torch

_Base = torch._C.TensorBase
numel, sizes, strides, offset, itemsize, pointer, storage, alias = (
    getattr(_Base, name)
    for name in ("numel", "size", "stride", "storage_offset", "element_size", "data_ptr", "untyped_storage", "detach")
)
dtype = _Base.dtype.__get__
_pointer, nbytes = torch.UntypedStorage.data_ptr, torch.UntypedStorage.nbytes


def address(tensor: torch.Tensor) -> int:
    """Identity of a tensor's storage."""
    return _pointer(storage(tensor))


def held(tensor: torch.Tensor) -> int:
    """Bytes of its storage."""
    return nbytes(storage(tensor))


def extent(tensor: torch.Tensor) -> int:
    """Elements from the first to the last of a tensor, gaps included."""
    if not numel(tensor):
        return 0
    return 1 + sum(step * (count - 1) for step, count in zip(strides(tensor), sizes(tensor), strict=True))
