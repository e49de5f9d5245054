"""The arithmetic that kernels do most, done by numpy at once.

Triton looks up the common type, makes a block of every scalar, copies both blocks to one shape, and only then
computes. For int32, int64 and float32 numpy does all that by itself, with the same result, in a third of the time. Any
other type, and whatever is wrong, goes Triton's way.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime import interpreter as plain

from drills.instruments.identity import identity

INT1, INT32, INT64, FLOAT32 = (identity(kind) for kind in (tl.int1, tl.int32, tl.int64, tl.float32))
"""Triton's own types by identity: to compare two of them takes it as long as to add."""

DTYPES = {
    INT1: np.dtype(np.bool_),
    INT32: np.dtype(np.int32),
    INT64: np.dtype(np.int64),
    FLOAT32: np.dtype(np.float32),
}
WIDER = {
    frozenset({INT32, INT64}): tl.int64,
    frozenset({INT32, FLOAT32}): tl.float32,
    frozenset({INT64, FLOAT32}): tl.float32,
}
ELEMENTS = frozenset(
    identity(kind)
    for kind in (tl.float16, tl.bfloat16, tl.float32, tl.float64, tl.int8, tl.int16, tl.int32, tl.int64, tl.uint8)
)
"""Of which memory is loaded as it is."""

LIMITS = {INT32: 1 << 31, INT64: 1 << 63}
NUMBERS = frozenset({INT32, INT64, FLOAT32})
SIGNED = frozenset(LIMITS)
INTEGERS = frozenset({INT1, INT32, INT64})
FLOATS = frozenset(identity(kind) for kind in (tl.float16, tl.bfloat16, tl.float32))
CASTS = frozenset(
    [(one, other) for one in INTEGERS for other in NUMBERS if one != other]
    + [pair for kind in FLOATS - {FLOAT32} for pair in ((kind, FLOAT32), (FLOAT32, kind))]
)
"""From which of Triton's types to which other a cast is one step of the builder's."""


def common(lhs: Any, rhs: Any) -> Any:
    """The scalar type in which two values are combined, None if Triton must say. A literal takes the tensor's."""
    if type(lhs) is not tl.tensor or type(rhs) is not tl.tensor:
        return next((one.type.scalar for one in (lhs, rhs) if type(one) is tl.tensor), None)
    left, right = lhs.type.scalar, rhs.type.scalar
    return left if left is right else WIDER.get(frozenset({identity(left), identity(right)}))


def values_of(one: Any, scalar: int, dtype: np.dtype) -> Any:
    """What numpy computes with, of a tensor or a literal, in this type; None if Triton must look at it."""
    if type(one) is tl.tensor:
        data = one.handle.data
        return data.astype(dtype, copy=False) if isinstance(data, np.ndarray) else None
    if scalar in LIMITS and type(one) is int:
        return dtype.type(one) if -LIMITS[scalar] <= one < LIMITS[scalar] else None
    return dtype.type(one) if scalar == FLOAT32 and type(one) in (int, float) else None


def kind_of(scalar: Any, shape: tuple[int, ...], *operands: Any) -> Any:
    """The type of a result of this shape: a block of the scalar type, if one of the operands is a block."""
    for one in operands:
        if type(one) is tl.tensor and one.type.is_block():
            kind = one.type
            return kind if kind.scalar is scalar and shape == tuple(kind.shape) else tl.block_type(scalar, list(shape))
    return scalar


def at_once(semantic: Any, lhs: Any, rhs: Any, operation: Any, kinds: frozenset[int], result: Any) -> Any:
    """The tensor that `operation` gives, None if Triton must do it. result: its scalar type, None for the operands'."""
    scalar = common(lhs, rhs)
    if identity(scalar) not in kinds:
        return None
    dtype = DTYPES[identity(scalar)]
    left, right = values_of(lhs, identity(scalar), dtype), values_of(rhs, identity(scalar), dtype)
    if left is None or right is None:
        return None
    try:
        values = operation(left, right)
    except ValueError:
        return None
    wanted = result or scalar
    return semantic.tensor(plain.TensorHandle(values, wanted), kind_of(wanted, values.shape, lhs, rhs))


def moved(semantic: Any, pointers: Any, offsets: Any) -> Any:
    """A pointer, or a block of them, moved by signed integers; None if Triton must do it."""
    if type(pointers) is not tl.tensor or type(offsets) is not tl.tensor or identity(offsets.type.scalar) not in LIMITS:
        return None
    scalar = pointers.type.scalar
    if not scalar.is_ptr():
        return None
    try:
        handle = semantic.builder.create_addptr(pointers.handle, offsets.handle)
    except ValueError:
        return None
    return semantic.tensor(handle, kind_of(scalar, handle.data.shape, pointers, offsets))


def shortened(name: str, operation: Any, kinds: frozenset[int], result: Any = None) -> Any:
    """The semantic's method of this name: at once where that can be, else Triton's own."""
    original = getattr(plain.TritonSemantic, name)

    def method(self: Any, lhs: Any, rhs: Any, *more: Any, **named: Any) -> Any:
        made = at_once(self, lhs, rhs, operation, kinds, result)
        if made is None and operation is np.add:
            made = moved(self, lhs, rhs)
        return original(self, lhs, rhs, *more, **named) if made is None else made

    method.__name__ = name
    return method


def chosen(semantic: Any, condition: Any, lhs: Any, rhs: Any) -> Any:
    """`where` of numbers; None if Triton must do it."""
    scalar = common(lhs, rhs)
    if identity(scalar) not in NUMBERS or type(condition) is not tl.tensor or condition.type.scalar is not tl.int1:
        return None
    dtype, holds = DTYPES[identity(scalar)], condition.handle.data
    left, right = values_of(lhs, identity(scalar), dtype), values_of(rhs, identity(scalar), dtype)
    if left is None or right is None or not isinstance(holds, np.ndarray) or holds.dtype != np.bool_:
        return None
    try:
        values = np.where(holds, left, right)
    except ValueError:
        return None
    return semantic.tensor(plain.TensorHandle(values, scalar), kind_of(scalar, values.shape, condition, lhs, rhs))


def filling(other: Any, element: Any, shape: tuple[int, ...]) -> Any:
    """What masked-off lanes of a load get, from a scalar: a handle of this type and shape; None if Triton must say."""
    if type(other) is not tl.tensor or other.type.is_block() or identity(other.handle.dtype) not in (INT32, FLOAT32):
        return None
    value = other.handle.data.item()
    if value == 0 and math.copysign(1, value) > 0:
        return plain.TensorHandle(np.zeros(shape, plain._get_np_dtype(element)), element)
    if element is tl.float32 or (identity(element) in LIMITS and identity(other.handle.dtype) == INT32):
        return plain.TensorHandle(np.full(shape, value, DTYPES[identity(element)]), element)
    return None


def loaded(semantic: Any, pointers: Any, mask: Any, other: Any) -> Any:
    """A load through pointers; None if Triton must do it."""
    if type(pointers) is not tl.tensor or not pointers.handle.dtype.is_ptr():
        return None
    element, shape, many = pointers.handle.dtype.element_ty, pointers.handle.data.shape, pointers.type.is_block()
    if identity(element) not in ELEMENTS:
        return None
    if mask is None and other is None:
        made = semantic.builder.create_load(pointers.handle, None, None, False)
    elif type(mask) is tl.tensor and mask.handle.dtype is tl.int1 and mask.type.is_block() is many:
        if mask.handle.data.shape != shape:
            return None
        fill = None if other is None else filling(other, element, shape)
        if other is not None and fill is None:
            return None
        made = semantic.builder.create_masked_load(pointers.handle, mask.handle, fill, None, None, False)
    else:
        return None
    return semantic.tensor(made, tl.block_type(element, list(shape)) if many else element)


class Shortcuts:
    """Methods of a TritonSemantic; it stands before that among a class's bases.

    products, ranges: of which Triton has once made a product or a range. Their types are made anew: a type that graded
    code had put here would be asked while kernels run.
    """

    def __init__(self, builder: Any) -> None:
        super().__init__(builder)
        self.products: set[tuple] = set()
        self.ranges: set[tuple[int, int]] = set()

    def arange(self, start: Any, end: Any, *, ret_ty: Any = None) -> Any:
        """A range. What Triton has to say to one it says the first time."""
        key = (start, end) if type(start) is type(end) is int and ret_ty is None else None
        if key not in self.ranges:
            made = super().arange(start, end, ret_ty=ret_ty)
            if key is not None:
                self.ranges.add(key)
            return made
        kind = tl.block_type(tl.int32, [end - start])
        return self.tensor(plain.TensorHandle(np.arange(start, end, dtype=np.int32), tl.int32), kind)

    def cast(self, input: Any, dst_ty: Any, fp_downcast_rounding: Any = None) -> Any:
        """A value in another type; most casts of integers and of floats are one step."""
        kind, before, wanted = input.type, input.type.scalar, dst_ty.scalar
        if before is wanted:
            return input
        if fp_downcast_rounding is not None or (identity(before), identity(wanted)) not in CASTS:
            return super().cast(input, dst_ty, fp_downcast_rounding)
        handle = self.builder.cast_impl(input.handle, wanted)
        return self.tensor(handle, tl.block_type(wanted, list(kind.shape)) if kind.is_block() else wanted)

    def full(self, shape: Any, value: Any, dtype: Any) -> Any:
        """A block of one number."""
        if not shape or identity(dtype) not in NUMBERS or type(value) not in (int, float):
            return super().full(shape, value, dtype)
        held = DTYPES[identity(dtype)]
        number = values_of(value or 0, identity(dtype), held)  # Triton's zero has no sign
        if number is None:
            return super().full(shape, value, dtype)
        return self.tensor(plain.TensorHandle(np.full(shape, number, held), dtype), tl.block_type(dtype, list(shape)))

    def dot(self, lhs: Any, rhs: Any, acc: Any, precision: Any, imprecise: Any, out_dtype: Any) -> Any:
        """A product. What Triton has to say to one it says to the first of its kind."""
        operands = lhs, rhs, acc
        if imprecise is not None or type(precision) is not str or any(type(one) is not tl.tensor for one in operands):
            return super().dot(lhs, rhs, acc, precision, imprecise, out_dtype)
        kinds = [identity(one.handle.dtype) for one in operands]
        shapes = ((one.type.is_block(), one.handle.data.shape) for one in operands)
        key = (*kinds, *shapes, precision, identity(out_dtype))
        if key in self.products:
            return self.tensor(self.builder.create_dot(lhs.handle, rhs.handle, acc.handle, precision, 0), acc.type)
        made = super().dot(lhs, rhs, acc, precision, imprecise, out_dtype)
        if FLOATS.issuperset((*kinds, identity(out_dtype))):
            self.products.add(key)
        return made

    def broadcast_impl_value(self, lhs: Any, rhs: Any) -> tuple[Any, Any]:
        """Two values in one shape; most have it already."""
        left, right = lhs.type.is_block(), rhs.type.is_block()
        if left is right and (not left or lhs.handle.data.shape == rhs.handle.data.shape):
            return lhs, rhs
        return super().broadcast_impl_value(lhs, rhs)

    def expand_dims(self, input: Any, axis: int) -> Any:
        """An axis of one element more."""
        if not 0 <= axis <= input.handle.data.ndim or not input.type.is_block():
            return super().expand_dims(input, axis)
        before = input.handle
        values = before.data[(*[slice(None)] * axis, None)]
        made = plain.TensorHandle(values, before.dtype.scalar)
        origin = getattr(before, "origin", None)
        if origin is not None:
            made.origin = origin
        return self.tensor(made, tl.block_type(input.type.scalar, list(values.shape)))

    def _load_legacy(self, ptr: Any, mask: Any, other: Any, check: Any, padding: Any, *modifiers: Any) -> Any:
        """A load through pointers."""
        made = None if check or padding else loaded(self, ptr, mask, other)
        return super()._load_legacy(ptr, mask, other, check, padding, *modifiers) if made is None else made

    def where(self, condition: Any, x: Any, y: Any) -> Any:
        """x where the condition holds, else y."""
        made = chosen(self, condition, x, y)
        return super().where(condition, x, y) if made is None else made

    def maximum(self, x: Any, y: Any, propagate_nan: Any) -> Any:
        """The larger of two; NaN only if it propagates."""
        made = at_once(self, x, y, np.fmax, NUMBERS, None) if propagate_nan == tl.PropagateNan.NONE else None
        return super().maximum(x, y, propagate_nan) if made is None else made

    def minimum(self, x: Any, y: Any, propagate_nan: Any) -> Any:
        """The smaller of two; NaN only if it propagates."""
        made = at_once(self, x, y, np.fmin, NUMBERS, None) if propagate_nan == tl.PropagateNan.NONE else None
        return super().minimum(x, y, propagate_nan) if made is None else made

    add = shortened("add", np.add, NUMBERS)
    sub = shortened("sub", np.subtract, NUMBERS)
    mul = shortened("mul", np.multiply, NUMBERS)
    less_than = shortened("less_than", np.less, NUMBERS, tl.int1)
    less_equal = shortened("less_equal", np.less_equal, NUMBERS, tl.int1)
    greater_than = shortened("greater_than", np.greater, NUMBERS, tl.int1)
    greater_equal = shortened("greater_equal", np.greater_equal, NUMBERS, tl.int1)
    and_ = shortened("and_", np.bitwise_and, INTEGERS)
    or_ = shortened("or_", np.bitwise_or, INTEGERS)
