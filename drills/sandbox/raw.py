"""Tensors as bytes, in the format of safetensors, by functions that nobody can replace any more.

Graded code may put methods of its own on torch.Tensor, or functions of its own into safetensors and json. What is
used here was taken hold of when this module was loaded, before any graded code.
"""

from __future__ import annotations

from typing import Any

import torch

from drills.instruments.bytes_at import bytes_at
from drills.instruments.own_words import text

_Base = torch._C.TensorBase
_dtype = _Base.dtype.__get__
_numel, _data_ptr, _element_size, _size = _Base.numel, _Base.data_ptr, _Base.element_size, _Base.size

NAMES = {
    torch.float64: "F64", torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16", torch.bool: "BOOL",
    torch.uint8: "U8", torch.int8: "I8", torch.int16: "I16", torch.int32: "I32", torch.int64: "I64",
}  # fmt: skip
"""What safetensors calls the types that travel."""


def base(*names: str) -> tuple[Any, ...]:
    """Methods of torch.Tensor as torch made them."""
    return tuple(getattr(_Base, name) for name in names)


def dtype_of(tensor: torch.Tensor) -> torch.dtype:
    """Its dtype."""
    return _dtype(tensor)


def tensors(dense: list[torch.Tensor]) -> bytes:
    """Contiguous tensors on the CPU, named "0", "1" … as safetensors would write them; nothing for none."""
    if not dense:
        return b""
    header, parts, end = {}, [], 0
    for index, tensor in enumerate(dense):
        size = _numel(tensor) * _element_size(tensor)
        header[str(index)] = {
            "dtype": NAMES[_dtype(tensor)], "shape": list(_size(tensor)), "data_offsets": [end, end + size]
        }  # fmt: skip
        parts.append(bytes_at(_data_ptr(tensor), size) if size else b"")
        end += size
    head = text(header)
    head += b" " * (-len(head) % 8)
    return b"".join([len(head).to_bytes(8, "little"), head, *parts])
