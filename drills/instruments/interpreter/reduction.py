"""tl.reduce and tl.associative_scan, as trees over whole blocks, with the combine function's own arithmetic.

A sum of float16 rounds and overflows in float16, as on a GPU; a maximum drops NaN. A combine function that branches on
its values cannot work on blocks and is run element by element.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime import interpreter as plain

from drills.instruments.identity import identity
from drills.instruments.interpreter.arithmetic import narrow_float, numpy_type
from drills.instruments.interpreter.floats import folded, from_bf16, to_bf16

standard = tl.standard


class Ambiguous(Exception):
    """A block was used where one truth value is needed."""


def reduce(language: Any, inputs: Any, axis: Any, combine: Any, keep_dims: Any) -> Any:
    """`inputs` (a tensor, or a tuple reduced together) without `axis`; None reduces every axis."""
    single = isinstance(inputs, tl.tensor)
    parts = (inputs,) if single else tuple(inputs)
    axis, keep_dims = tl.core._unwrap_if_constexpr(axis), tl.core._unwrap_if_constexpr(keep_dims)
    shape = parts[0].handle.data.shape
    arrays = [part.handle.data for part in parts]
    if axis is None:
        arrays, at = [array.reshape(-1) for array in arrays], 0
    else:
        at = _axis(axis, len(parts[0].shape))
    results = _folded(language, arrays, [part.dtype for part in parts], at, combine)
    kept = []
    for array, part in zip(results, parts, strict=True):
        full = array.reshape([1] * len(shape)) if axis is None else array
        kept.append(tensor(full if keep_dims else np.squeeze(array, at), part.dtype))
    return kept[0] if single else tuple(kept)


def scan(language: Any, inputs: Any, axis: Any, combine: Any, reverse: Any) -> Any:
    """Running combination of `inputs` along `axis`, from the end if `reverse`."""
    single = isinstance(inputs, tl.tensor)
    parts = (inputs,) if single else tuple(inputs)
    at = _axis(tl.core._unwrap_if_constexpr(axis), len(parts[0].shape))
    flip = (lambda array: np.flip(array, at)) if tl.core._unwrap_if_constexpr(reverse) else (lambda array: array)
    arrays = [flip(part.handle.data) for part in parts]
    types = [part.dtype for part in parts]
    distance = 1
    while distance < arrays[0].shape[at]:
        earlier = [np.roll(array, distance, at) for array in arrays]
        combined = _combined(language, combine, earlier, arrays, types)
        heads = [_cut(array, at, None, distance) for array in arrays]
        tails = [_cut(array, at, distance, None) for array in combined]
        arrays = [np.concatenate(halves, axis=at) for halves in zip(heads, tails, strict=True)]
        distance *= 2
    kept = [tensor(np.ascontiguousarray(flip(array)), dtype) for array, dtype in zip(arrays, types, strict=True)]
    return kept[0] if single else tuple(kept)


def tensor(array: np.ndarray, dtype: Any) -> Any:
    """A tl.tensor of the array; a scalar if it has no axis."""
    if array.ndim:
        return tl.tensor(plain.TensorHandle(array, dtype.scalar), tl.block_type(dtype.scalar, list(array.shape)))
    return tl.tensor(plain.TensorHandle(array.reshape(1), dtype.scalar), dtype.scalar)


def _axis(axis: int, rank: int) -> int:
    if not -rank <= axis < rank:
        raise ValueError(f"axis {axis} out of bounds for a tensor of {rank} axes")
    return axis % rank


def _folded(language: Any, arrays: list[np.ndarray], types: list, at: int, combine: Any) -> list[np.ndarray]:
    """The arrays with axis `at` combined to length 1."""
    quick = _quick(arrays[0], types[0], at, combine) if len(arrays) == 1 else None
    if quick is not None:
        return [quick]
    while arrays[0].shape[at] > 1:
        even = [_cut(array, at, None, None, 2) for array in arrays]
        odd = [_cut(array, at, 1, None, 2) for array in arrays]
        arrays = _combined(language, combine, even, odd, types)
    return arrays


def _quick(array: np.ndarray, dtype: Any, at: int, combine: Any) -> np.ndarray | None:
    """Triton's own combine functions by one numpy call, where that gives the same."""
    extremes = {
        identity(standard._elementwise_max): (np.fmax, np.maximum),
        identity(standard._elementwise_min): (np.fmin, np.minimum),
    }.get(identity(combine))
    if extremes is not None and not narrow_float(dtype):
        return extremes[0 if dtype.is_floating() else 1].reduce(array, axis=at, keepdims=True)
    if combine is not standard._sum_combine:
        return None
    if dtype.is_int() or at == array.ndim - 1 and dtype.primitive_bitwidth >= 32:
        return np.sum(array, axis=at, keepdims=True, dtype=numpy_type(dtype))
    if dtype.is_bf16():
        return folded(array, at, lambda a, b: to_bf16(from_bf16(a) + from_bf16(b)))
    return None if narrow_float(dtype) else folded(array, at, np.add)


def _combined(language: Any, combine: Any, left: list, right: list, types: list) -> list[np.ndarray]:
    """combine(left, right), each a list of arrays of one shape: on whole blocks, else element by element."""
    before, language.scalar_truth = language.scalar_truth, True
    try:
        return _applied(combine, left, right, types)
    except Ambiguous:
        language.scalar_truth = before
        return _each(combine, left, right, types)
    finally:
        language.scalar_truth = before


def _applied(combine: Any, left: list, right: list, types: list) -> list[np.ndarray]:
    shape = left[0].shape
    arguments = [tensor(array, dtype) for array, dtype in zip([*left, *right], [*types, *types], strict=True)]
    made = combine(*arguments)
    made = made if isinstance(made, (tuple, tl.tuple)) else (made,)
    return [
        np.broadcast_to(one.handle.data.astype(numpy_type(dtype), copy=False), shape)
        if isinstance(one, tl.tensor)
        else np.full(shape, one, dtype=numpy_type(dtype))
        for one, dtype in zip(made, types, strict=True)
    ]


def _each(combine: Any, left: list, right: list, types: list) -> list[np.ndarray]:
    made = [np.empty(array.shape, dtype=array.dtype) for array in left]
    for where in np.ndindex(left[0].shape):
        one = _applied(combine, *([np.asarray(array[where]) for array in side] for side in (left, right)), types)
        for array, value in zip(made, one, strict=True):
            array[where] = value.reshape(())
    return made


def _cut(array: np.ndarray, at: int, start: int | None, stop: int | None, step: int = 1) -> np.ndarray:
    where = [slice(None)] * array.ndim
    where[at] = slice(start, stop, step)
    return array[tuple(where)]
