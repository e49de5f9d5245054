"""The wire between the trusted parent and the worker: one message is a JSON part and a safetensors part.

Must never unpickle, evaluate or import anything that came over the wire. Whatever the other side sends, decoding
ends with a message or with `Malformed`.
"""

from __future__ import annotations

import json
import math
import struct
from dataclasses import dataclass
from typing import Any

import torch
from safetensors.torch import load, save

MAGIC = b"drl1"
HEADER = struct.Struct("<4sIQ")
MAX_DEPTH = 16
MAX_DIMS = 16
DTYPES = {
    torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.bool,
    torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64,
}  # fmt: skip


class Malformed(Exception):
    """What came over the wire is no message."""


class Oversized(Malformed):
    """A message, or a tensor in it, is larger than its limit."""


@dataclass(frozen=True)
class Opaque:
    """Stands for a value that does not travel, a numpy array or a string say: only its type's name does."""

    type: str


@dataclass(frozen=True)
class Limits:
    """What one side accepts.

    json: bytes of the JSON part. blob: bytes of the safetensors part.
    expanded: bytes of all tensors together with broadcast (stride 0) dimensions written out.
    span: bytes between the first and the last element of one tensor; address space, not memory.
    tensors: how many tensors.
    """

    json: int
    blob: int
    expanded: int
    span: int
    tensors: int = 256


CALL = Limits(json=8 << 20, blob=512 << 20, expanded=1 << 40, span=1 << 44)
"""What the worker accepts from the parent."""

REPLY = Limits(json=8 << 20, blob=64 << 20, expanded=64 << 20, span=256 << 20)
"""What the parent accepts from the worker."""


@dataclass(frozen=True)
class Message:
    """head: any JSON object. tree: tensors, numbers, strings, None and Opaque in lists, tuples and dicts."""

    head: dict[str, Any]
    tree: Any = None


def encode(message: Message, limits: Limits) -> bytes:
    """The bytes of a message. Each distinct element of a tensor travels once, whatever its strides.

    Raises `Oversized` where the other side would.
    """
    packer = _Packer(limits)
    tree = packer.pack(message.tree, 0)
    text = json.dumps({"head": message.head, "tree": tree, "tensors": packer.layouts}, separators=(",", ":")).encode()
    blob = save(packer.dense) if packer.dense else b""
    check_sizes(len(text), len(blob), limits)
    return HEADER.pack(MAGIC, len(text), len(blob)) + text + blob


def sizes(header: bytes, limits: Limits) -> tuple[int, int]:
    """Bytes of the JSON part and of the safetensors part that follow this header."""
    magic, text, blob = HEADER.unpack(header)
    if magic != MAGIC:
        raise Malformed("bytes that are no message")
    check_sizes(text, blob, limits)
    return text, blob


def check_sizes(text: int, blob: int, limits: Limits) -> None:
    """Raises `Oversized` if a part is larger than its limit."""
    if text > limits.json or blob > limits.blob:
        raise Oversized(f"{(text + blob) / 2**20:.0f} MiB, the limit is {(limits.json + limits.blob) >> 20} MiB")


def decode(text: bytes, blob: bytes, limits: Limits) -> Message:
    """The message in these two parts. Raises `Malformed`, and nothing else."""
    try:
        outer = json.loads(text)
        head, layouts = outer["head"], outer["tensors"]
        if not isinstance(head, dict) or not isinstance(layouts, list):
            raise Malformed("a message without a head")
        dense = load(bytes(blob)) if len(blob) else {}
        return Message(head, _Unpacker(layouts, dense, limits).unpack(outer["tree"], 0))
    except Malformed:
        raise
    except Exception as error:
        raise Malformed(f"a message that cannot be read ({type(error).__name__})") from error


def copy(message: Message, limits: Limits) -> Message:
    """The message as the other side would have it."""
    data = encode(message, limits)
    text, _ = sizes(data[: HEADER.size], limits)
    return decode(data[HEADER.size : HEADER.size + text], data[HEADER.size + text :], limits)


class _Packer:
    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.layouts: list[list] = []
        self.dense: dict[str, torch.Tensor] = {}
        self.expanded = 0
        self.seen: dict[int, tuple[int, torch.Tensor]] = {}

    def pack(self, value: Any, depth: int) -> Any:
        if depth > MAX_DEPTH:
            raise Oversized(f"lists nested more than {MAX_DEPTH} deep")
        if value is None or type(value) in (bool, int, float, str):
            return value
        if isinstance(value, torch.Tensor):
            return self.pack_tensor(value)
        if type(value) in (list, tuple):
            key = "l" if type(value) is list else "t"
            return {key: [self.pack(item, depth + 1) for item in value]}
        if type(value) is dict and all(type(name) is str for name in value):
            return {"d": {name: self.pack(item, depth + 1) for name, item in value.items()}}
        return {"o": value.type if isinstance(value, Opaque) else type_name(value)}

    def pack_tensor(self, tensor: torch.Tensor) -> dict:
        if id(tensor) in self.seen:
            return {"x": self.seen[id(tensor)][0]}
        if not can_travel(tensor):
            return {"o": f"a {tensor.layout} tensor of {tensor.dtype}"}
        shape, stride, offset = list(tensor.shape), list(tensor.stride()), tensor.storage_offset()
        self.expanded = check_layout(shape, stride, offset, tensor.element_size(), self.expanded, self.limits)
        index = len(self.layouts)
        if index >= self.limits.tensors:
            raise Oversized(f"more than {self.limits.tensors} tensors")
        self.seen[id(tensor)] = (index, tensor)
        self.layouts.append([shape, stride, offset])
        dense = _without_broadcast(tensor.detach()).contiguous().cpu()
        self.dense[str(index)] = dense.clone() if index and _shares(dense, self.dense) else dense
        return {"x": index}


class _Unpacker:
    def __init__(self, layouts: list, dense: dict[str, torch.Tensor], limits: Limits) -> None:
        if len(layouts) > limits.tensors or dense.keys() != {str(index) for index in range(len(layouts))}:
            raise Malformed("tensors that do not match their table")
        self.tensors: list[torch.Tensor] = []
        expanded = 0
        for index, (shape, stride, offset) in enumerate(layouts):
            one = dense[str(index)]
            expanded = check_layout(shape, stride, offset, one.element_size(), expanded, limits)
            self.tensors.append(_restore(one, shape, stride, offset))

    def unpack(self, node: Any, depth: int) -> Any:
        if depth > MAX_DEPTH:
            raise Oversized(f"lists nested more than {MAX_DEPTH} deep")
        if not isinstance(node, dict):
            if isinstance(node, list):
                raise Malformed("a list without its type")
            return node
        ((key, value),) = node.items()
        if key == "x":
            if not _whole(value) or value >= len(self.tensors):
                raise Malformed("a tensor that is not in the table")
            return self.tensors[value]
        if key == "o":
            return Opaque(str(value)[:200])
        if key == "d":
            return {name: self.unpack(item, depth + 1) for name, item in value.items()}
        if key not in ("l", "t") or not isinstance(value, list):
            raise Malformed("a value of no known type")
        items = [self.unpack(item, depth + 1) for item in value]
        return items if key == "l" else tuple(items)


def type_name(value: Any) -> str:
    """A type as a learner would write it: "numpy.ndarray", "str"."""
    kind = type(value)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__.split('.')[0]}.{kind.__name__}"


def can_travel(tensor: torch.Tensor) -> bool:
    """Whether this tensor is plain memory of a dtype that safetensors knows."""
    return tensor.layout is torch.strided and tensor.dtype in DTYPES and tensor.device.type != "meta"


def check_layout(shape: list, stride: list, offset: int, itemsize: int, before: int, limits: Limits) -> int:
    """`before` plus the tensor's bytes with broadcast dimensions written out; raises `Malformed`."""
    if len(shape) != len(stride) or len(shape) > MAX_DIMS or not all(map(_whole, [*shape, *stride, offset])):
        raise Malformed("a tensor of no possible layout")
    expanded = before + math.prod(shape) * itemsize
    last = offset + sum((n - 1) * step for n, step in zip(shape, stride, strict=True)) if 0 not in shape else offset
    if expanded > limits.expanded or (last + 1) * itemsize > limits.span:
        raise Oversized(f"a tensor of shape {shape}")
    return expanded


def _whole(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**62


def _without_broadcast(tensor: torch.Tensor) -> torch.Tensor:
    for dim, step in enumerate(tensor.stride()):
        if step == 0 and tensor.shape[dim] > 1:
            tensor = tensor.narrow(dim, 0, 1)
    return tensor


def _shares(tensor: torch.Tensor, others: dict[str, torch.Tensor]) -> bool:
    here = tensor.untyped_storage().data_ptr()
    return any(other.untyped_storage().data_ptr() == here for other in others.values())


def _restore(dense: torch.Tensor, shape: list[int], stride: list[int], offset: int) -> torch.Tensor:
    want = [1 if step == 0 and n > 1 else n for n, step in zip(shape, stride, strict=True)]
    if list(dense.shape) != want:
        raise Malformed("a tensor that does not match its layout")
    if offset == 0 and list(dense.stride()) == stride:
        return dense
    last = sum((n - 1) * step for n, step in zip(shape, stride, strict=True)) if 0 not in shape else -1
    memory = torch.empty(offset + last + 1, dtype=dense.dtype)
    tensor = memory.as_strided(shape, stride, offset)
    _without_broadcast(tensor).copy_(dense)
    return tensor
