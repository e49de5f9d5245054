"""The interpreter's operations on values, repaired so that they give what compiled code gives.

bfloat16 and float8 are bit patterns in the interpreter, so every operation widens them first and rounds the result; a
comparison gives booleans; maxnum and minnum drop NaN; casts round to nearest even and saturate.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime import interpreter as plain

from drills.instruments.interpreter.floats import from_bf16, to_bf16, to_integer

NARROW = {
    kind.name for kind in (tl.bfloat16, tl.float8e5, tl.float8e5b16, tl.float8e4nv, tl.float8e4b8, tl.float8e4b15)
}
"""Names of the float types that numpy lacks, kept as bit patterns."""

COMPARISONS = {np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal}
KEEPS_POINTER = (
    "create_splat",
    "create_unsplat",
    "create_broadcast",
    "create_expand_dims",
    "create_reshape",
    "create_trans",
    "create_bitcast",
    "create_cat",
    "create_join",
)


class NotInterpreted(NotImplementedError):
    """The kernel may be right, but only a GPU can run it."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} runs on a GPU only: this grader runs kernels in an interpreter and cannot judge it")


def numpy_type(dtype: Any) -> np.dtype:
    """The numpy dtype that holds a Triton dtype."""
    return plain._get_np_dtype(dtype)


def narrow_float(dtype: Any) -> bool:
    """Whether the scalar type is a float that numpy lacks."""
    return dtype.name in NARROW


def wide(handle: Any) -> np.ndarray:
    """The values of a handle in a type that numpy can compute with."""
    dtype = handle.dtype.scalar
    if not narrow_float(dtype):
        return handle.data
    if dtype.is_bf16():
        return from_bf16(handle.data)
    return plain._convert_float(handle.data, dtype, tl.float32, None).view(np.float32)


def handle(values: np.ndarray, dtype: Any) -> Any:
    """Values as a handle of a Triton scalar type, rounded to it."""
    if narrow_float(dtype):
        if dtype.is_bf16():
            return plain.TensorHandle(to_bf16(values), dtype)
        bits = plain._convert_float(values.astype(np.float32), tl.float32, dtype, plain._ir.ROUNDING_MODE.RTNE)
        return plain.TensorHandle(bits, dtype)
    wanted = numpy_type(dtype)
    return plain.TensorHandle(values if values.dtype == wanted else values.astype(wanted), dtype)


def within_width(shifted: Any, by: Any) -> Any:
    """The second operand of a shift, if it leaves every lane defined: of one that is not, a compiler makes anything."""
    bits = shifted.data.dtype.itemsize * 8
    beyond = (by.data < 0) | (by.data >= bits)
    if beyond.any():
        raise ValueError(f"a shift of {bits} bits by {by.data[beyond].flat[0]}: undefined, it must be below {bits}")
    return by


class Arithmetic(plain.InterpreterBuilder):
    """Everything but memory and program identity."""

    def __init__(self) -> None:
        super().__init__()
        precisions = (*self.options.allowed_dot_input_precisions, "bf16x3", "bf16x6")
        self.options = plain.InterpreterOptions(sanitize_overflow=False, allowed_dot_input_precisions=precisions)

    def get_bf16(self, value: float) -> Any:
        """A bfloat16 constant."""
        return plain.TensorHandle(to_bf16(np.array([value], dtype=np.float32)), tl.bfloat16)

    def get_all_ones_value(self, type: Any) -> Any:
        """All bits set."""
        return plain.TensorHandle(np.array([-1], dtype=np.int64).astype(numpy_type(type)), type.scalar)

    def binary_op(self, lhs: Any, rhs: Any, op: Any) -> Any:
        """Element by element; a comparison gives int1."""
        values = op(wide(lhs), wide(rhs))
        return plain.TensorHandle(values, tl.int1) if op in COMPARISONS else handle(values, lhs.dtype.scalar)

    def create_maxnumf(self, lhs: Any, rhs: Any) -> Any:
        """The larger one; a NaN operand is dropped."""
        return self.binary_op(lhs, rhs, np.fmax)

    def create_minnumf(self, lhs: Any, rhs: Any) -> Any:
        """The smaller one; a NaN operand is dropped."""
        return self.binary_op(lhs, rhs, np.fmin)

    def create_clampf(self, arg: Any, low: Any, high: Any, propagate_nan: Any) -> Any:
        """Between low and high; NaN becomes low unless it propagates."""
        every = propagate_nan == tl.PropagateNan.ALL
        larger, smaller = (np.maximum, np.minimum) if every else (np.fmax, np.fmin)
        return handle(smaller(larger(wide(arg), wide(low)), wide(high)), arg.dtype.scalar)

    def create_select(self, cond: Any, lhs: Any, rhs: Any) -> Any:
        """lhs where cond holds, else rhs; pointers keep their origin where both have the same."""
        values = np.where(cond.data.astype(bool), lhs.data, rhs.data).astype(rhs.data.dtype, copy=False)
        made = plain.TensorHandle(values, rhs.dtype.scalar)
        if getattr(lhs, "origin", None) == getattr(rhs, "origin", None):
            made.origin = getattr(lhs, "origin", None)
        return made

    def create_fma(self, x: Any, y: Any, z: Any) -> Any:
        """x·y + z, rounded once where the type is narrow."""
        narrow = x.dtype.scalar.is_fp16()
        parts = [wide(one).astype(np.float32) if narrow else wide(one) for one in (x, y, z)]
        return handle(parts[0] * parts[1] + parts[2], z.dtype.scalar)

    def unary_op(self, arg: Any, op: Any) -> Any:
        """Element by element."""
        return handle(op(wide(arg)), arg.dtype.scalar)

    def create_exp2(self, arg: Any) -> Any:
        """2^x; in float32 a result too small to be normal is 0, as a GPU's is."""
        values = np.exp2(wide(arg))
        if values.dtype == np.float32:
            values = np.where(values < np.finfo(np.float32).tiny, np.float32(0), values)
        return handle(values, arg.dtype.scalar)

    def create_shl(self, lhs: Any, rhs: Any) -> Any:
        """lhs << rhs."""
        return self.binary_op(lhs, within_width(lhs, rhs), np.left_shift)

    def create_lshr(self, lhs: Any, rhs: Any) -> Any:
        """lhs >> rhs, with zeros from the left."""
        return self.binary_op(lhs, within_width(lhs, rhs), np.right_shift)

    def create_ashr(self, lhs: Any, rhs: Any) -> Any:
        """lhs >> rhs, with the sign from the left."""
        return super().create_ashr(lhs, within_width(lhs, rhs))

    def create_rsqrt(self, arg: Any) -> Any:
        """1 / √x."""
        return handle(1 / np.sqrt(wide(arg)), arg.dtype.scalar)

    def cast_impl(self, src: Any, dst_type: Any) -> Any:
        """To another type: nearest even to a narrower float, toward zero and saturated to an integer."""
        wanted = dst_type.scalar
        if src.dtype.scalar.is_floating() and wanted.is_int():
            return plain.TensorHandle(to_integer(wide(src), numpy_type(wanted)), wanted)
        return handle(wide(src), wanted)

    def create_idiv(self, lhs: Any, rhs: Any) -> Any:
        """Toward zero."""
        quotient = (lhs.data - np.fmod(lhs.data, rhs.data)) // rhs.data
        return handle(quotient, lhs.dtype.scalar)

    def create_dot(self, a: Any, b: Any, d: Any, input_precision: Any, max_num_imprecise_acc: Any) -> Any:
        """a @ b + d, accumulated in d's type, in float32 at least."""
        accumulate = np.int32 if a.dtype.scalar.is_int() else np.promote_types(d.data.dtype, np.float32)
        product = np.matmul(wide(a).astype(accumulate), wide(b).astype(accumulate))
        return handle(product + wide(d), d.dtype.scalar)

    def create_inline_asm(self, *_: Any) -> Any:
        """PTX in a kernel."""
        raise NotInterpreted("tl.inline_asm_elementwise")

    def create_extern_elementwise(self, libName: Any, libPath: Any, symbol: str, *_: Any) -> Any:
        """A function of a device library."""
        raise NotInterpreted(symbol)

    def create_print(self, prefix: str, hex: bool, values: list, isSigned: Any) -> None:
        """device_print, with bfloat16 as numbers."""
        shown = [value if hex else plain.TensorHandle.__new__(plain.TensorHandle) for value in values]
        for one, value in zip(shown, values, strict=True):
            if one is not value:
                one.data, one.dtype, one.attr = wide(value), value.dtype, value.attr
        super().create_print(prefix, hex, shown, isSigned)


def _keeping_pointer(name: str) -> Any:
    original = getattr(plain.InterpreterBuilder, name)

    def create(self: Any, *args: Any) -> Any:
        made = original(self, *args)
        source = next((arg for arg in args if isinstance(arg, plain.TensorHandle)), None)
        origin = getattr(source, "origin", None)
        if origin is not None:
            made.origin = origin
        return made

    return create


for _name in KEEPS_POINTER:
    setattr(Arithmetic, _name, _keeping_pointer(_name))
