"""Loads, stores and atomic operations of the interpreter: each is shown to the watch first, then carried out.

What a masked-off lane without `other` holds is undefined on a GPU, so it is NaN or a large number here. Pointers carry
the name of the kernel parameter that they came from in `origin`.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime import interpreter as plain

from drills.instruments.interpreter.arithmetic import Arithmetic, numpy_type
from drills.instruments.interpreter.floats import from_bf16, lowest, poison, to_bf16, undefined
from drills.instruments.interpreter.now import NOW

native = plain._interpreter
OPERATIONS = plain._ir.ATOMIC_OP
ADDING = (OPERATIONS.ADD, OPERATIONS.FADD)
REDUCTIONS = {
    "ADD": (OPERATIONS.ADD, OPERATIONS.FADD, OPERATIONS.ADD),
    "MIN": (OPERATIONS.MIN, OPERATIONS.MIN, OPERATIONS.UMIN),
    "MAX": (OPERATIONS.MAX, OPERATIONS.MAX, OPERATIONS.UMAX),
    **{name: (getattr(OPERATIONS, name),) * 3 for name in ("AND", "OR", "XOR")},
}
"""What a descriptor's reduction is on signed integers, floats and unsigned ones."""


class Builder(Arithmetic):
    """The interpreter's builder."""

    def create_addptr(self, ptr: Any, offset: Any) -> Any:
        """Pointer arithmetic in 64 bits."""
        steps = offset.data.astype(np.uint64)
        steps *= max(1, ptr.get_element_ty().primitive_bitwidth // 8)
        made = plain.TensorHandle(ptr.data + steps, ptr.dtype)
        made.origin = getattr(ptr, "origin", None)
        return made

    def create_ptr_to_int(self, ptr: Any, kind: Any) -> Any:
        """An address as a number."""
        if NOW.watch is not None:
            NOW.watch.addressed()
        return super().create_ptr_to_int(ptr, kind)

    def create_load(self, ptr: Any, _0: Any, _1: Any, is_volatile: Any) -> Any:
        """Every lane."""
        return self._load(ptr, None, None)

    def create_store(self, ptr: Any, val: Any, _0: Any, _1: Any) -> None:
        """Every lane."""
        self._store(ptr, val, None)

    def create_masked_load(self, ptrs: Any, mask: Any, other: Any, *modifiers: Any, **named: Any) -> Any:
        """Lanes where mask holds; the others get `other`, or poison."""
        return self._load(ptrs, booleans(mask), other)

    def create_masked_store(self, ptrs: Any, value: Any, mask: Any, *modifiers: Any) -> None:
        """Lanes where mask holds."""
        self._store(ptrs, value, booleans(mask))

    def create_tensor_pointer_load(self, ptr: Any, boundary_check: Any, padding_option: Any, *modifiers: Any) -> Any:
        """A block pointer; lanes outside a checked boundary get the padding, or poison."""
        ptrs, mask = located(ptr, boundary_check)
        return self._load(ptrs, mask, padding(ptrs, padding_option))

    def create_tensor_pointer_store(self, ptr: Any, value: Any, boundary_check: Any, *modifiers: Any) -> None:
        """A block pointer; lanes outside a checked boundary are dropped."""
        ptrs, mask = located(ptr, boundary_check)
        self._store(ptrs, value, mask)

    def create_descriptor_load(self, desc: Any, indices: Any, *modifiers: Any) -> Any:
        """A tensor descriptor; lanes outside its shape get its padding."""
        ptrs, mask = located(desc, indices)
        return self._load(ptrs, mask, padding(ptrs, desc.padding))

    def create_descriptor_store(self, desc: Any, value: Any, indices: Any) -> None:
        """A tensor descriptor; lanes outside its shape are dropped."""
        ptrs, mask = located(desc, indices)
        self._store(ptrs, value, mask)

    def create_descriptor_reduce(self, kind: Any, desc: Any, value: Any, indices: Any) -> None:
        """A tensor descriptor's atomics; lanes outside its shape are dropped, and nothing comes back."""
        ptrs, mask = located(desc, indices)
        held = ptrs.get_element_ty()
        if value.dtype.scalar != held:
            raise TypeError(f"a descriptor of {held} takes {held}, not {value.dtype.scalar}")
        operation = REDUCTIONS[kind.name][held.is_floating() + 2 * held.is_int_unsigned()]
        lanes = plain.TensorHandle(mask, tl.int1)
        self.create_atomic_rmw(operation, ptrs, value, lanes, plain._ir.MEM_SEMANTIC.RELAXED, None)

    def create_atomic_cas(self, ptr: Any, cmp: Any, val: Any, sem: Any, scope: Any) -> Any:
        """Compare and swap, by bit patterns."""
        places = self._watch_atomic(ptr, None, sem)
        unsigned = f"u{cmp.data.itemsize}"
        old = native.atomic_cas(
            places, cmp.data.view(unsigned), val.data.view(unsigned), self.ir_sem_to_interpreter_sem[sem]
        )
        return plain.TensorHandle(old.view(cmp.data.dtype), cmp.dtype.scalar)

    def create_atomic_rmw(self, rmwOp: Any, ptr: Any, val: Any, mask: Any, sem: Any, scope: Any) -> Any:
        """Read, combine, write; lanes that share an address one after the other."""
        lanes = booleans(mask)
        ptr = plain.TensorHandle(self._watch_atomic(ptr, np.broadcast_to(lanes, ptr.data.shape), sem), ptr.dtype)
        if val.dtype.scalar.is_bf16():
            return self._bf16_rmw(rmwOp in ADDING, ptr, val, lanes)
        return super().create_atomic_rmw(rmwOp, ptr, val, plain.TensorHandle(lanes, tl.int1), sem, scope)

    def _bf16_rmw(self, adds: bool, ptr: Any, val: Any, mask: np.ndarray) -> Any:
        old = np.full(ptr.data.shape, 0, dtype=np.uint16)
        new = np.broadcast_to(val.data, ptr.data.shape)
        for lane in zip(*np.nonzero(np.broadcast_to(mask, ptr.data.shape)), strict=True):
            at, on = ptr.data[lane].reshape(1), np.ones(1, dtype=bool)
            before = native.load(at, on, np.zeros(1, np.uint16), np.dtype(np.uint16))
            value = new[lane].reshape(1)
            native.store(at, to_bf16(from_bf16(before) + from_bf16(value)) if adds else value.copy(), on)
            old[lane] = before[0]
        return plain.TensorHandle(old, val.dtype.scalar)

    def _watch_atomic(self, ptr: Any, mask: np.ndarray | None, sem: Any) -> np.ndarray:
        if NOW.watch is None:
            return ptr.data
        ordered = sem != plain._ir.MEM_SEMANTIC.RELAXED
        return NOW.watch.atomic(ptr.data, mask, width(ptr), getattr(ptr, "origin", None), ordered)

    def _load(self, ptrs: Any, mask: np.ndarray | None, other: Any) -> Any:
        dtype = ptrs.get_element_ty()
        held, places = numpy_type(dtype), ptrs.data
        if NOW.watch is not None:
            places = NOW.watch.load(places, mask, held.itemsize, getattr(ptrs, "origin", None))
        shape = places.shape
        if mask is None:
            mask, fill = every(shape), np.zeros(shape, dtype=held)
        elif other is not None:
            fill = other.data
        else:
            fill = self._undefined(dtype, shape)
        return plain.TensorHandle(native.load(places, mask, fill, held), dtype)

    def _undefined(self, dtype: Any, shape: tuple[int, ...]) -> np.ndarray:
        held, bf16 = numpy_type(dtype), dtype.is_bf16()
        if NOW.masked_fill == "poison":
            return undefined(held, bf16, shape, NOW.turn)
        return lowest(held, bf16, shape) if NOW.masked_fill == "low" else np.zeros(shape, dtype=held)

    def _store(self, ptrs: Any, value: Any, mask: np.ndarray | None) -> None:
        places = ptrs.data
        if NOW.watch is not None:
            places = NOW.watch.store(places, mask, width(ptrs), getattr(ptrs, "origin", None), value.data)
        native.store(places, value.data, every(places.shape) if mask is None else mask)


@functools.lru_cache(maxsize=256)
def every(shape: tuple[int, ...]) -> np.ndarray:
    """A mask in which all lanes hold; nobody may write to it."""
    mask = np.ones(shape, dtype=bool)
    mask.flags.writeable = False
    return mask


def width(ptr: Any) -> int:
    """Bytes of one element that a pointer points to."""
    return numpy_type(ptr.get_element_ty()).itemsize


def booleans(mask: Any) -> np.ndarray:
    """A mask as booleans: it comes as a handle of int1, int8 or int32, or as a bare array."""
    data = getattr(mask, "data", mask) if isinstance(mask, plain.TensorHandle) else mask
    return data if data.dtype == np.bool_ else data != 0


def located(pointer: Any, where: Any) -> tuple[Any, np.ndarray | None]:
    """Addresses and mask of a block pointer (where: checked dimensions) or a descriptor (where: offsets).

    Without a checked dimension there is no mask.
    """
    ptrs, mask = pointer.materialize_pointers(where)
    ptrs.origin = getattr(pointer.base, "origin", None)
    return ptrs, mask if len(where) else None


def padding(ptrs: Any, option: Any) -> Any:
    """What lanes outside the boundary read: None for undefined."""
    if option is None:
        return None
    dtype = ptrs.get_element_ty()
    held = numpy_type(dtype)
    if option == plain._ir.PADDING_OPTION.PAD_NAN:
        return plain.TensorHandle(poison(held, dtype.is_bf16(), ptrs.data.shape), dtype)
    return plain.TensorHandle(np.zeros(ptrs.data.shape, dtype=held), dtype)
