"""The operators of a kernel's tensors, straight to numpy where nothing has to be converted.

`a + b` goes through six functions of Triton's before it reaches the semantic. Where both sides are of one type that
numpy has, or one is a literal of it, the sum is made here in one; everything else goes Triton's way, as ever.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime import interpreter as plain

from drills.instruments.identity import identity
from drills.instruments.interpreter.shortcuts import (
    DTYPES,
    FLOAT32,
    INTEGERS,
    LIMITS,
    NUMBERS,
    SIGNED,
    WIDER,
    values_of,
)

MOST_KINDS = 1000
"""Shapes whose types are remembered."""


def divided(left: Any, right: Any) -> Any:
    """left // right of signed integers, toward zero, as the interpreter has it."""
    return (left - np.fmod(left, right)) // right


TABLE = {
    "add": (np.add, NUMBERS, None),
    "sub": (np.subtract, NUMBERS, None),
    "mul": (np.multiply, NUMBERS, None),
    "truediv": (np.divide, frozenset({FLOAT32}), None),
    "floordiv": (divided, SIGNED, None),
    "mod": (np.fmod, SIGNED, None),
    "and": (np.bitwise_and, INTEGERS, None),
    "or": (np.bitwise_or, INTEGERS, None),
    "lt": (np.less, NUMBERS, tl.int1),
    "le": (np.less_equal, NUMBERS, tl.int1),
    "gt": (np.greater, NUMBERS, tl.int1),
    "ge": (np.greater_equal, NUMBERS, tl.int1),
    "eq": (np.equal, NUMBERS, tl.int1),
    "ne": (np.not_equal, NUMBERS, tl.int1),
}
TURNED = ("add", "sub", "mul", "truediv", "floordiv", "mod")
"""Operators that a literal may stand on the left of."""

_new = object.__new__


def whole(part: Any) -> bool:
    """Whether this part of an index is a bare colon."""
    return type(part) is slice and part.start is None and part.stop is None and part.step is None


class Operators:
    """Makes tensors of numpy's results; remembers what tensors of one type and shape have in common."""

    def __init__(self, semantic: Any) -> None:
        self.semantic = semantic
        self.parts: dict[tuple, dict[str, Any]] = {}

    def replacements(self, before: Callable[[str], Callable]) -> dict[str, Callable]:
        """Method of tl.tensor → what stands in for it. before: the method that Triton has, on our semantic."""
        made = {}
        for name, (operation, kinds, result) in TABLE.items():
            for turned in (False, True) if name in TURNED else (False,):
                method = f"__{'r' * turned}{name}__"
                made[method] = self._operator(operation, kinds, result, turned, before(method))
        made["__getitem__"] = self._indexing(before("__getitem__"))
        return made

    def _indexing(self, original: Callable) -> Callable:
        """x[:, None] and the like, at once; pointers, which remember where they came from, go Triton's way."""

        def indexed(block: Any, index: Any) -> Any:
            parts = index if type(index) is tuple else (index,)
            handle = block.handle
            if not block.type.is_block() or handle.dtype.is_ptr() or sum(map(whole, parts)) > handle.data.ndim:
                return original(block, index)
            if not all(one is None or whole(one) for one in parts):
                return original(block, index)
            return self._tensor(handle.data[parts], handle.dtype, True)

        return indexed

    def _operator(self, operation: Any, kinds: frozenset, result: Any, turned: bool, original: Callable) -> Callable:
        adds = operation is np.add

        def operator(lhs: Any, rhs: Any) -> Any:
            if type(rhs) is tl.constexpr:
                rhs = rhs.value
            number = identity(lhs.handle.dtype)
            if number in kinds:
                made = self._combined(lhs, number, rhs, operation, kinds, result, turned)
            else:
                made = self._moved(lhs, rhs) if adds else None
            return original(lhs, rhs) if made is None else made

        return operator

    def _combined(
        self, lhs: Any, number: int, rhs: Any, operation: Any, kinds: frozenset, result: Any, turned: bool
    ) -> Any:
        """The tensor of what `operation` gives, None if Triton must do it. number: the left side's type."""
        scalar, left = lhs.handle.dtype, lhs.handle.data
        dtype, many, like = DTYPES[number], isinstance(lhs.type, tl.block_type), lhs
        if type(rhs) is not tl.tensor:
            right = values_of(rhs, number, dtype)
            if right is None:
                return None
        else:
            right = rhs.handle.data
            if rhs.handle.dtype is not scalar:
                scalar = WIDER.get(frozenset((number, identity(rhs.handle.dtype))))
                if identity(scalar) not in kinds:
                    return None
                dtype = DTYPES[identity(scalar)]
                left, right = left.astype(dtype, copy=False), right.astype(dtype, copy=False)
            if isinstance(rhs.type, tl.block_type) and not (many and left.shape == right.shape):
                many, like = True, rhs
        if left.dtype is not dtype or right.dtype is not dtype:
            return None
        try:
            values = operation(right, left) if turned else operation(left, right)
        except ValueError:
            return None
        if result is None and like.handle.dtype is scalar and values.shape == like.handle.data.shape:
            return self._alike(plain.TensorHandle(values, scalar), like)
        return self._tensor(values, result or scalar, many)

    def _moved(self, pointers: Any, offsets: Any) -> Any:
        """A pointer, or a block of them, moved by integers; None if Triton must do it."""
        if type(offsets) is not tl.tensor:
            return None
        if identity(offsets.handle.dtype) not in LIMITS or not pointers.handle.dtype.is_ptr():
            return None
        try:
            handle = self.semantic.builder.create_addptr(pointers.handle, offsets.handle)
        except ValueError:
            return None
        if pointers.type.is_block() and handle.data.shape == pointers.handle.data.shape:
            return self._alike(handle, pointers)
        return self._typed(handle, pointers.type.is_block() or offsets.type.is_block())

    def _alike(self, handle: Any, like: Any) -> Any:
        """A tensor of the type and shape that `like` has."""
        made = _new(tl.tensor)
        made.__dict__.update(like.__dict__)
        made.__dict__["handle"] = handle
        return made

    def _tensor(self, values: np.ndarray, scalar: Any, many: bool) -> Any:
        """A tensor of this type, a block or not."""
        return self._typed(plain.TensorHandle(values, scalar), many)

    def _typed(self, handle: Any, many: bool) -> Any:
        """A tensor of a handle, a block or not."""
        scalar, shape = handle.dtype, handle.data.shape
        key = (identity(scalar), many, shape)
        parts = self.parts.get(key)
        if parts is None:
            made = self.semantic.tensor(handle, tl.block_type(scalar, list(shape)) if many else scalar)
            if len(self.parts) < MOST_KINDS:
                self.parts[key] = dict(made.__dict__)
            return made
        made = _new(tl.tensor)
        made.__dict__.update(parts)
        made.__dict__["handle"] = handle
        return made
