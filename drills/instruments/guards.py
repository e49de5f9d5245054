"""Guard zones: inputs stand in larger buffers with poison on both sides, and are compared afterwards.

Works on any device with plain torch operations. Sees a fault after it happened; the recorder, where there is one, sees
it before.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import torch

from drills import reserve
from drills.instruments.geometry import extent
from drills.instruments.notes import Finding
from drills.instruments.trees import leaves, lists, replaced
from drills.instruments.views import View

GUARD = 16 << 10
"""Bytes of poison on each side of a storage."""

ALIGN = 256
"""A storage starts at a multiple of this many bytes, as it would fresh from torch's allocators."""

WHOLE = 64 << 20
"""Up to this many bytes a storage is poisoned between its views too; above it only its views and guards are touched."""

BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def place(args: Any, device: str | torch.device = "cpu", names: Iterable[str] = ()) -> Placed:
    """Copies of all tensors in the tuple `args`, same strides, tensors that share storage sharing it again.

    names: what to call the arguments, by position. The copies are `Placed.args`.
    """
    called = list(names) + [f"argument {i + 1}" for i in range(len(list(names)), len(args))]
    buffers: dict[Any, Buffer] = {}
    done: dict[int, torch.Tensor] = {}
    for position, (name, arg) in enumerate(zip(called, args, strict=False)):
        for leaf, tensor in leaves(arg, name):
            if id(tensor) in done:
                continue
            storage = tensor.untyped_storage()
            key = storage.data_ptr() or ("empty", id(tensor))
            if key not in buffers:
                buffers[key] = Buffer(tensor, device)
            done[id(tensor)] = buffers[key].add(leaf, position, tensor)
    copies = replaced(args, lambda tensor: done[id(tensor)])
    held = [
        (leaf, position, items, tuple(items))
        for position, (name, arg) in enumerate(zip(called, copies, strict=False))
        for leaf, items in lists(arg, name)
    ]
    return Placed(copies, list(buffers.values()), held)


@dataclass
class Placed:
    """Arguments in guarded memory.

    args: what the graded function gets. held: of each list in it a name, the argument's position and what it held.
    """

    args: Any
    buffers: list[Buffer]
    held: list[tuple[str, int, list, tuple]] = field(default_factory=list)

    def findings(self, inplace: Iterable[int] = ()) -> list[Finding]:
        """Inputs changed and guards touched, to be asked after the call; arguments at `inplace` may have changed."""
        allowed = set(inplace)
        found: list[Finding] = []
        for buffer in self.buffers:
            found += buffer.changed(allowed) + buffer.touched()
        for name, position, items, before in self.held:
            found += [] if position in allowed else list_changed(name, items, before)
        return found


def list_changed(name: str, items: list, before: tuple) -> list[Finding]:
    """A finding if a list that was handed over holds other items by now, or the same in another order."""
    if len(items) == len(before) and all(now is then for now, then in zip(items, before, strict=True)):
        return []
    how = "other items or another order" if len(items) == len(before) else f"{len(items)} items of {len(before)}"
    return [
        Finding(
            "input_changed",
            f"the list {name} was changed: it holds {how} now",
            likely="The caller's list is not yours to change: loop over it, or take a copy with list() first.",
            expected=f"{name} as it was",
        )
    ]


@dataclass
class Buffer:
    """One storage between two guard zones, and the tensors that are views of it."""

    source: torch.Tensor
    device: str | torch.device
    views: list[tuple[str, int, torch.Tensor, torch.Tensor]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.size = self.source.untyped_storage().nbytes()
        self.poison = 0xFF if self.source.dtype.is_floating_point else 0x6B
        self.whole = self.size <= WHOLE
        self.memory = reserve.empty(self.size + 2 * GUARD + ALIGN, torch.uint8, self.device)
        self.start = GUARD + (-self.memory.data_ptr() - GUARD) % ALIGN
        self.end = self.start + self.size
        for zone in [self.memory] if self.whole else self._guards():
            zone.fill_(self.poison)

    def _guards(self) -> list[torch.Tensor]:
        return [self.memory[: self.start], self.memory[self.end :]]

    def add(self, name: str, position: int, tensor: torch.Tensor) -> torch.Tensor:
        """A copy of `tensor`, a view of this buffer's source, in this buffer."""
        placed = torch.empty(0, dtype=tensor.dtype, device=self.device)
        offset = self.start // tensor.element_size() + tensor.storage_offset()
        placed.set_(self.memory.untyped_storage(), offset, tensor.size(), tensor.stride())
        view = View(0, 1, tuple(tensor.size()), tuple(tensor.stride()))
        if view.overlapping:
            flat = torch.empty(0, dtype=torch.uint8).set_(tensor.untyped_storage())
            self.memory[self.start : self.end].copy_(flat)
        else:
            unrepeated(placed).copy_(unrepeated(tensor))
        # Not the one that graded code gets: that may be given methods of its own.
        self.views.append((name, position, placed.detach(), tensor))
        return placed

    def changed(self, allowed: set[int]) -> list[Finding]:
        """One finding for each tensor that may not have changed and has."""
        found = []
        for name, position, placed, before in self.views:
            now, then = bits(placed), bits(before).to(placed.device)
            if position in allowed or torch.equal(now, then):
                continue
            where = (now != then).nonzero()
            index = ", ".join(map(str, where[0].tolist()))
            found.append(
                Finding(
                    "input_changed",
                    f"{name} was changed in {len(where)} of {now.numel()} elements, the first at [{index}]",
                    likely="Write only to tensors that your function allocated: torch.empty_like gives one.",
                    expected=f"{name} as it was",
                )
            )
        return found

    def touched(self) -> list[Finding]:
        """A finding if anything but the tensors themselves was written to."""
        if not self.views:
            return []
        (first, _, low, _), (last, _, high, _) = self._outermost()
        hits = self._hits()
        if not len(hits):
            return []
        at, start = int(hits[0]), low.storage_offset() * low.element_size()
        end = max((t.storage_offset() + extent(t)) * t.element_size() for _, _, t, _ in self.views)
        if at < start:
            return [self._written(first, low, "before the start", len(hits))]
        if at >= end:
            return [self._written(last, high, "past the end", len(hits))]
        return [self._written(first, low, "between the rows", len(hits))]

    def _outermost(self) -> tuple:
        by_offset = sorted(self.views, key=lambda view: view[2].storage_offset() * view[2].element_size())
        return by_offset[0], by_offset[-1]

    def _hits(self) -> torch.Tensor:
        """Positions in `memory` outside every view that hold something else than poison."""
        overlapping = any(View(0, 1, tuple(t.size()), tuple(t.stride())).overlapping for _, _, t, _ in self.views)
        if not self.whole or overlapping:
            before, after = ((zone != self.poison).nonzero().flatten() for zone in self._guards())
            return torch.cat([before, after + self.end])
        rest = self.memory.clone()
        for _, _, placed, _ in self.views:
            same = torch.empty(0, dtype=placed.dtype, device=self.device)
            same.set_(rest.untyped_storage(), placed.storage_offset(), placed.size(), placed.stride())
            count = placed.element_size()
            bits(unrepeated(same)).fill_(int.from_bytes(bytes([self.poison] * count), "little", signed=count > 1))
        return (rest != self.poison).nonzero().flatten()

    def _written(self, name: str, tensor: torch.Tensor, where: str, count: int) -> Finding:
        shape = ", ".join(map(str, tensor.shape))
        return Finding(
            "guard_touched",
            f"memory {where} of {name}[{shape}] was overwritten: {count} bytes",
            likely="A store ran outside the tensor: mask the lanes past its last row and column.",
            expected="only elements of tensors are written",
        )


def unrepeated(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor with dimensions of stride 0 cut to size 1, so that every element stands in it once."""
    for dim, (stride, size) in enumerate(zip(tensor.stride(), tensor.size(), strict=True)):
        if stride == 0 and size > 1:
            tensor = tensor.narrow(dim, 0, 1)
    return tensor


def bits(tensor: torch.Tensor) -> torch.Tensor:
    """The same memory as integers, so that NaN equals itself."""
    return tensor.view(BITS[tensor.element_size()])
