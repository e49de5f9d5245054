"""The wire between the trusted parent and the worker: one message is a JSON part and a safetensors part.

Must never unpickle, evaluate or import anything that came over the wire. Whatever the other side sends, decoding
ends with a message or with `Malformed`.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

import torch
from safetensors.torch import load

from drills.instruments import own_words
from drills.sandbox import layout, raw
from drills.sandbox.layout import Limits, Opaque
from drills.sandbox.malformed import MAX_DEPTH, Malformed, Oversized

_detach, _resolve_neg, _contiguous, _cpu = raw.base("detach", "resolve_neg", "contiguous", "cpu")

MAGIC = b"drl1"
HEADER = struct.Struct("<4sIQ")


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
    text = own_words.text({"head": message.head, "tree": tree, "tensors": packer.layouts})
    blob = raw.tensors(packer.dense)
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
        outer = own_words.parsed(text)
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
        self.dense: list[torch.Tensor] = []
        self.size = layout.NOTHING
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
        return {"o": value.type if isinstance(value, Opaque) else layout.type_name(value)}

    def pack_tensor(self, tensor: torch.Tensor) -> dict:
        if id(tensor) in self.seen:
            return {"x": self.seen[id(tensor)][0]}
        if not layout.can_travel(tensor):
            return {"o": f"a {tensor.layout} tensor of {tensor.dtype}"}
        shape, stride, offset, itemsize = layout.described(tensor)
        self.size = layout.check_layout(shape, stride, offset, itemsize, self.size, self.limits)
        index = len(self.layouts)
        if index >= self.limits.tensors:
            raise Oversized(f"more than {self.limits.tensors} tensors")
        self.seen[id(tensor)] = (index, tensor)
        self.layouts.append([shape, stride, offset])
        # A negated view holds the opposite of what it shows: bytes alone would say what the memory holds.
        self.dense.append(_cpu(_contiguous(_resolve_neg(layout.without_broadcast(_detach(tensor))))))
        return {"x": index}


class _Unpacker:
    def __init__(self, layouts: list, dense: dict[str, torch.Tensor], limits: Limits) -> None:
        if len(layouts) > limits.tensors or dense.keys() != {str(index) for index in range(len(layouts))}:
            raise Malformed("tensors that do not match their table")
        self.tensors: list[torch.Tensor] = []
        size = layout.NOTHING
        for index, (shape, stride, offset) in enumerate(layouts):
            one = dense[str(index)]
            size = layout.check_layout(shape, stride, offset, one.element_size(), size, limits)
            self.tensors.append(layout.restore(one, shape, stride, offset))

    def unpack(self, node: Any, depth: int) -> Any:
        if depth > MAX_DEPTH:
            raise Oversized(f"lists nested more than {MAX_DEPTH} deep")
        if not isinstance(node, dict):
            if isinstance(node, list):
                raise Malformed("a list without its type")
            return node
        ((key, value),) = node.items()
        if key == "x":
            if not layout.is_whole(value) or value >= len(self.tensors):
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
