"""What a call returned, taken out of graded code's reach while it is still what the instruments saw.

Graded code can leave behind threads, collectors' hooks, methods replaced on a tensor or on its class: whatever runs
later may change a result before it is sent. So its bytes are those that were last seen to be written, and it is laid
out anew by functions that were taken hold of before any graded code ran.
"""

from __future__ import annotations

from typing import Any

import torch

from drills.instruments import witness
from drills.sandbox import layout
from drills.sandbox.layout import Opaque
from drills.sandbox.raw import base, dtype_of

_items = tuple.__iter__
_frombuffer, _Tensor = torch.frombuffer, torch.Tensor
_Plain = (torch.Tensor, torch.nn.Parameter)
_as_strided, _detach, _neg, _is_neg = base("as_strided", "detach", "neg", "is_neg")
_size, _stride, _storage_offset = base("size", "stride", "storage_offset")


def plain(returned: Any) -> Any:
    """A NamedTuple as the tuple that it is, with the items that it holds, whatever its class says of them."""
    return tuple(_items(returned)) if issubclass(type(returned), tuple) else returned


def seal(tree: Any, kept: dict[int, bytes], depth: int = 0) -> Any:
    """The tree with its tensors replaced. kept: the bytes of each storage by address, as the instruments know them.

    A subclass of Tensor says of itself what it likes: only its type's name travels.
    """
    if depth > layout.MAX_DEPTH:
        return tree  # which is too deep to be sent
    if type(tree) in _Plain:
        return _sealed(tree, kept)
    if type(tree) in (list, tuple):
        return type(tree)([seal(item, kept, depth + 1) for item in tree])
    if type(tree) is dict:
        return {name: seal(item, kept, depth + 1) for name, item in tree.items()}
    return Opaque(layout.type_name(tree)) if isinstance(tree, _Tensor) else tree


def _sealed(tensor: torch.Tensor, kept: dict[int, bytes]) -> torch.Tensor:
    """The tensor of these bytes; the tensor itself where nobody has kept any (on a GPU, or where it is too large)."""
    place, size = witness.memory(tensor)
    data = kept.get(place)
    if data is None or len(data) != size:
        return _detach(tensor)
    dtype = dtype_of(tensor)
    flat = _frombuffer(bytearray(data), dtype=dtype, count=size // dtype.itemsize)
    fresh = _as_strided(flat, _size(tensor), _stride(tensor), _storage_offset(tensor))
    return _neg(fresh) if _is_neg(tensor) else fresh
