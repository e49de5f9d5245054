"""Torch's operations that only allocate, fill, view, copy or cast, as they are before any graded code is loaded.

Graded code can register operations of its own under any name, and set any attribute of torch's: what an operation says
of itself counts only if it is one of these objects, and then it is called by what it held when this was imported.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from drills.instruments.identity import identity

EMPTY = {"empty", "empty_like", "new_empty", "empty_strided", "new_empty_strided", "resize_", "empty_permuted"}
NEW = {"zeros", "ones", "full", "arange", "eye", "linspace", "scalar_tensor"}
BROUGHT = {"lift_fresh", "lift_fresh_copy"}
LIKE = {"zeros_like", "ones_like", "full_like", "new_zeros", "new_ones", "new_full"}
REFILLED = {"fill_", "zero_"}
ELEMENTWISE = {"clone", "_to_copy", "contiguous", "_reshape_copy", "copy", "view_copy"}
MOVED = {"cat", "stack", "repeat", "flip", "roll", "constant_pad_nd", "expand_copy", "permute_copy"}
SAME_MEMORY = {"_unsafe_view", "set_", "as_strided_", "squeeze_", "unsqueeze_", "t_", "transpose_", "detach_"}
_VIEWS = """
_conj _neg_view _reshape_alias adjoint alias as_strided broadcast_to chunk conj detach diagonal dsplit expand
expand_as flatten hsplit imag linalg_diagonal mH mT matrix_H moveaxis movedim narrow numpy_T permute positive ravel
real reshape reshape_as resolve_conj resolve_neg select slice split split_with_sizes squeeze swapaxes swapdims t
tensor_split to transpose unbind unflatten unfold unsqueeze view view_as view_as_complex view_as_real vsplit
"""
VIEWS = frozenset(_VIEWS.split())


@dataclass(frozen=True)
class Operation:
    """One of them. itself: torch's object. written: position and name of the arguments that it changes."""

    itself: Any
    name: str
    call: Callable
    is_view: bool
    written: tuple[tuple[int, str], ...]


@functools.lru_cache(maxsize=1024)
def written_by(func: Any) -> tuple[tuple[int, str], ...]:
    """Position and name of the arguments that an operation says it changes."""
    return tuple((at, one.name) for at, one in enumerate(func._schema.arguments) if _writes(one))


def _writes(argument: Any) -> bool:
    return argument.alias_info is not None and argument.alias_info.is_write


def _all() -> Iterator[Operation]:
    for name in EMPTY | NEW | BROUGHT | LIKE | REFILLED | ELEMENTWISE | MOVED | SAME_MEMORY | VIEWS | {"copy_"}:
        packet = getattr(torch.ops.aten, name, None)
        for overload in packet.overloads() if packet is not None else ():
            func = getattr(packet, overload)
            yield Operation(func, name, func._op, func.is_view, written_by(func))


_known = {identity(one.itself): one for one in _all()}


def of_torch(func: Any) -> Operation | None:
    """What is known of an operation that torch is told to call; None if it is none of these."""
    return _known.get(identity(func))
