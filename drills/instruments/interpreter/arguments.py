"""A launch's arguments as the kernel's tensors and pointers, of the types that the JIT would give them."""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterator
from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime import interpreter as plain
from triton.runtime import jit

from drills.instruments.constants import fields_of, tupled
from drills.instruments.geometry import pointer
from drills.instruments.interpreter.arithmetic import numpy_type
from drills.instruments.interpreter.floats import to_bf16
from drills.instruments.interpreter.number import Constants, Number
from drills.instruments.interpreter.signature import natural

CONSTANTS = (bool, int, float, str)
SIZES = ("shape", "strides", "block_shape")
"""Of a tensor descriptor; each is asked for once."""


def argument(param: jit.KernelParam, value: Any) -> Any:
    """One argument as the kernel sees it: a tensor or pointer of the type that the JIT would give it."""
    if param.is_constexpr:
        constant = plainly(tl.core._unwrap_if_constexpr(value))
        return Constants(constant) if type(constant) is tuple else constant
    made = converted(value, param.name, folds=not param.do_not_specialize)
    fixed = param.annotation_type
    if fixed and isinstance(value, (bool, int, float)) and not fixed.startswith("*"):
        kind = named(fixed)
        made = tl.tensor(plain.TensorHandle(_number(value, kind), kind), kind)
    return made


def plainly(value: Any) -> Any:
    """A constant as the compiler gets it: a class of the learner's own has no say in a kernel."""
    if isinstance(value, tuple):
        return tupled(map(plainly, value), fields_of(value))
    if isinstance(value, plain.TensorDescriptor):
        parts = {name: getattr(value, name) for name in plain.TensorDescriptor.__dataclass_fields__}
        return plain.TensorDescriptor(**parts | {one: list(map(operator.index, parts[one])) for one in SIZES})
    kind = next((one for one in CONSTANTS if isinstance(value, one)), None)
    return value if kind is None or type(value) in CONSTANTS else getattr(kind, "__pos__", kind.__str__)(value)


def converted(value: Any, name: str, folds: bool = True) -> Any:
    """A run-time value by its own type. Pointers remember the parameter `name` that they came from.

    folds: whether the compiler makes a plain integer of a 1, which is remembered too.
    """
    if isinstance(value, tuple):
        return tupled((converted(item, f"{name}.{i}", folds) for i, item in enumerate(value)), fields_of(value))
    if isinstance(value, plain.TensorDescriptor):
        made = plain._implicit_cvt(value)
        made.handle.base.origin = name
        return made
    if isinstance(value, (bool, int, float)):
        kind = named(natural(value, specialize=False)[0])
        handle = plain.TensorHandle(_number(value, kind), kind)
        return Number(handle, kind, value) if folds and type(value) is int and value == 1 else tl.tensor(handle, kind)
    if hasattr(value, "data_ptr"):
        kind = named(natural(value, specialize=False)[0])
        handle = plain.TensorHandle(np.array([pointer(plain._unwrap_tensor(value))], dtype=np.uint64), kind)
        handle.origin = name
        return tl.tensor(handle, kind)
    return value


@functools.cache
def named(name: str) -> Any:
    """Triton's type of this name, the same one each time: what is known of a type is kept by its identity."""
    return tl.str_to_ty(name, None)


def tensors(values: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """(name, torch tensor) of every pointer that is passed, those in tuples and descriptors included."""
    for name, value in values.items():
        if isinstance(value, tuple):
            yield from tensors({f"{name}.{i}": item for i, item in enumerate(value)})
        elif isinstance(value, plain.TensorDescriptor):
            yield name, plain._unwrap_tensor(value.base)
        elif hasattr(value, "data_ptr"):
            yield name, plain._unwrap_tensor(value)


def _number(value: Any, kind: Any) -> np.ndarray:
    if kind.is_bf16():
        return to_bf16(np.array([value]))
    return np.array([value]).astype(numpy_type(kind))
