"""The same types made again and again: shapes and block types are worked out once and then copied.

Triton builds a type and a shape for every value of a kernel, which is a third of the interpreter's time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime import interpreter as plain

from drills.instruments.constants import fields_of
from drills.instruments.identity import identity

ADDRESS = np.dtype(np.uint64)


class Types:
    """Constructors that remember. Forget with `clear` when a launch ends."""

    def __init__(self) -> None:
        self.blocks: dict[tuple, dict[str, Any]] = {}
        self.kept: list[Any] = []

    def clear(self) -> None:
        """Let go of everything."""
        self.blocks.clear()
        self.kept.clear()

    def block_constructor(self, original: Callable) -> Callable:
        """`block_type.__init__`, once for each element type and shape."""
        blocks, kept = self.blocks, self.kept

        def construct(block: Any, element_ty: Any, shape: Any) -> None:
            key = (identity(element_ty), *[one.value if type(one) is tl.constexpr else one for one in shape])
            parts = blocks.get(key)
            if parts is None:
                original(block, element_ty, shape)
                block.__parts__ = []
                blocks[key] = dict(block.__dict__)
                kept.append(element_ty)
            else:
                block.__dict__.update(parts)

        return construct

    def tensor_constructor(self, original: Callable) -> Callable:
        """`tensor.__init__`, once for each block type; scalars share one shape."""
        scalar: dict[str, Any] = {}

        def construct(tensor: Any, handle: Any, type: Any) -> None:
            made = type.__dict__.get("__parts__")
            if made:
                tensor.__dict__.update(made[0])
                tensor.handle = handle
                return
            if made is None and scalar and not type.is_block():
                tensor.__dict__.update(scalar)
                tensor.handle, tensor.type, tensor.dtype = handle, type, type.scalar
                return
            original(tensor, handle, type)
            parts = {name: value for name, value in tensor.__dict__.items() if name != "handle"}
            if made is not None:
                made.append(parts)
            elif not type.is_block():
                scalar.update(parts)

        return construct


def unwrapping(original: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """`_unwrap_if_constexpr`, at once for what can hold no constant. Tuples keep their class: Triton 3.6 forgets it."""
    plainly = frozenset((tl.tensor, int, bool, float, str, type(None)))

    def unwrap(one: Any) -> Any:
        if type(one) in plainly:
            return one
        if not isinstance(one, tuple):
            return original(one)
        items = list(map(unwrap, one))
        return type(one)(*items) if fields_of(one) else type(one)(items)

    return unwrap


def numpy_types() -> Callable[[Any], np.dtype]:
    """The interpreter's table of numpy dtypes, by name; pointers are addresses."""
    original = plain._get_np_dtype
    names: dict[str, np.dtype] = {}

    def numpy_type(dtype: Any) -> np.dtype:
        scalar = dtype.scalar
        name = scalar.name
        found = names.get(name)
        if found is None:
            found = names[name] = ADDRESS if scalar.is_ptr() else original(scalar)
        return found

    return numpy_type
