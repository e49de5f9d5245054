"""Shapes, strides and sizes of tensors that travel: which can, how large they are, and how one is laid out again.

Knows nothing of messages. Believes no number that it is given.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from drills import reserve
from drills.sandbox.malformed import MAX_DEPTH, Malformed, Oversized
from drills.sandbox.raw import NAMES, base, dtype_of

_size, _stride, _storage_offset, _element_size, _narrow = base(
    "size", "stride", "storage_offset", "element_size", "narrow"
)
_layout, _device = torch._C.TensorBase.layout.__get__, torch._C.TensorBase.device.__get__

MAX_DIMS = 16
DTYPES = frozenset(NAMES)


@dataclass(frozen=True)
class Opaque:
    """Stands for a value that does not travel, a numpy array or a string say: only its type's name does."""

    type: str


@dataclass(frozen=True)
class Limits:
    """What one side accepts.

    json: bytes of the JSON part. blob: bytes of the safetensors part.
    expanded: bytes of all tensors together with broadcast (stride 0) dimensions written out.
    span: bytes from the first to the last element of each tensor, all together: address space, of which every page with
        an element on it becomes memory where the tensor is laid out again.
    tensors: how many tensors.
    """

    json: int
    blob: int
    expanded: int
    span: int
    tensors: int = 256


class Size(NamedTuple):
    """Of tensors together; both as in `Limits`."""

    expanded: int = 0
    span: int = 0


NOTHING = Size()


def check_tree(value: Any, limits: Limits, before: Size = NOTHING, depth: int = 0) -> Size:
    """`before` plus the size of all tensors in lists, tuples and dicts; raises `Oversized` where sending them would.

    Cheap, and safe on a tensor that claims to be huge: looks at no element.
    """
    if depth > MAX_DEPTH:
        raise Oversized(f"lists nested more than {MAX_DEPTH} deep")
    if isinstance(value, torch.Tensor) and can_travel(value):
        shape, stride, offset, itemsize = described(value)
        return check_layout(shape, stride, offset, itemsize, before, limits)
    if type(value) in (list, tuple, dict):
        for item in value.values() if type(value) is dict else value:
            before = check_tree(item, limits, before, depth + 1)
    return before


def type_name(value: Any) -> str:
    """A type as a learner would write it: "numpy.ndarray", "str"."""
    kind = type(value)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__.split('.')[0]}.{kind.__name__}"


def can_travel(tensor: torch.Tensor) -> bool:
    """Whether this tensor is plain memory of a dtype that safetensors knows."""
    return _layout(tensor) is torch.strided and dtype_of(tensor) in DTYPES and _device(tensor).type != "meta"


def described(tensor: torch.Tensor) -> tuple[list[int], list[int], int, int]:
    """Shape, stride, offset and the bytes of an element, asked in a way that graded code cannot answer."""
    return list(_size(tensor)), list(_stride(tensor)), _storage_offset(tensor), _element_size(tensor)


def check_layout(shape: list, stride: list, offset: int, itemsize: int, before: Size, limits: Limits) -> Size:
    """`before` plus the tensor's size; raises `Malformed`."""
    if len(shape) != len(stride) or len(shape) > MAX_DIMS or not all(map(is_whole, [*shape, *stride, offset])):
        raise Malformed("a tensor of no possible layout")
    expanded = before.expanded + math.prod(shape) * itemsize
    last = offset + sum((n - 1) * step for n, step in zip(shape, stride, strict=True)) if 0 not in shape else offset
    span = before.span + (last + 1) * itemsize
    if expanded > limits.expanded or span > limits.span:
        raise Oversized(f"a tensor of shape {shape}")
    return Size(expanded, span)


def is_whole(value: Any) -> bool:
    """Whether this is an int that a size can be."""
    return type(value) is int and 0 <= value < 2**62


def without_broadcast(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor with every broadcast dimension cut to one element."""
    for dim, (count, step) in enumerate(zip(_size(tensor), _stride(tensor), strict=True)):
        if step == 0 and count > 1:
            tensor = _narrow(tensor, dim, 0, 1)
    return tensor


def restore(dense: torch.Tensor, shape: list[int], stride: list[int], offset: int) -> torch.Tensor:
    """A tensor of this layout with the elements of `dense`; `Malformed` if they do not fit it."""
    want = [1 if step == 0 and n > 1 else n for n, step in zip(shape, stride, strict=True)]
    if list(dense.shape) != want:
        raise Malformed("a tensor that does not match its layout")
    if offset == 0 and list(dense.stride()) == stride:
        return dense
    last = sum((n - 1) * step for n, step in zip(shape, stride, strict=True)) if 0 not in shape else -1
    memory = reserve.empty(offset + last + 1, dense.dtype)
    tensor = memory.as_strided(shape, stride, offset)
    without_broadcast(tensor).copy_(dense)
    return tensor
