"""Numbers as a GPU holds them: bfloat16 as bit patterns that round to nearest even, saturating casts to integers.

Numpy only. The interpreter keeps bfloat16 in uint16 arrays; arithmetic on them happens in float32 and is rounded back,
which is exact for one +, −, × of two bfloat16 numbers.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

QUIET = np.uint16(0x7FC0)
HALF = np.uint32(0x7FFF)
LARGE = 1e30


def from_bf16(bits: np.ndarray) -> np.ndarray:
    """float32 values of bfloat16 bit patterns (uint16), exact."""
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)


def to_bf16(values: np.ndarray) -> np.ndarray:
    """bfloat16 bit patterns (uint16) of any numbers, rounded to nearest even; NaN stays NaN, overflow is infinite."""
    values = np.asarray(values, dtype=np.float32)
    bits = np.ascontiguousarray(values).view(np.uint32)
    odd = (bits >> np.uint32(16)) & np.uint32(1)
    rounded = ((bits + HALF + odd) >> np.uint32(16)).astype(np.uint16)
    missing = np.isnan(values)
    return np.where(missing, QUIET, rounded) if missing.any() else rounded


def to_integer(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Toward zero, as a GPU converts: NaN is 0 and what does not fit is the nearest that does."""
    limits = np.iinfo(dtype)
    whole = np.trunc(np.nan_to_num(values.astype(np.float64), nan=0.0, posinf=np.inf, neginf=-np.inf))
    low, high = whole <= limits.min, whole >= limits.max
    inside = np.where(low | high, 0.0, whole).astype(dtype)
    return np.where(low, limits.min, np.where(high, limits.max, inside)).astype(dtype)


def folded(values: np.ndarray, axis: int, combine) -> np.ndarray:
    """Reduce `axis`, a power of two long, by combining its halves again and again: the order of a GPU's lanes."""
    while (size := values.shape[axis]) > 1:
        first, second = np.split(values, [size // 2], axis)
        values = combine(first, second)
    return values


def large(dtype: np.dtype, bf16: bool) -> np.generic:
    """A finite number of this float type that is larger than any sensible input."""
    return to_bf16(LARGE)[()] if bf16 else dtype.type(min(LARGE, 60000.0 if dtype.itemsize == 2 else LARGE))


@lru_cache(maxsize=32)
def undefined(dtype: np.dtype, bf16: bool, shape: tuple[int, ...], turn: int) -> np.ndarray:
    """What masked-off lanes without `other` hold, read-only: neighbors differ, and turn 0 and 1 swap them.

    Floats are NaN or large by turns: a sum sees either, but a GPU's maximum drops NaN, and a comparison with NaN is
    False. Integers are all a large number that is no sensible index.
    """
    made = poison(dtype, bf16, shape)
    if bf16 or dtype.kind == "f":
        even = np.asarray(sum(np.ogrid[tuple(slice(size) for size in shape)], turn) % 2 == 0)
        made = np.where(even, made, large(dtype, bf16)).reshape(shape)
    made.flags.writeable = False
    return made


def poison(dtype: np.dtype, bf16: bool, shape: tuple[int, ...]) -> np.ndarray:
    """NaN, or a large number that is no sensible index."""
    if bf16:
        return np.full(shape, QUIET, dtype=dtype)
    if dtype.kind == "f":
        return np.full(shape, np.nan, dtype=dtype)
    if dtype.kind == "b":
        return np.ones(shape, dtype=dtype)
    pattern = int.from_bytes(b"\x5a" * dtype.itemsize, "little")
    return np.full(shape, pattern, dtype=f"u{dtype.itemsize}").view(dtype)


def lowest(dtype: np.dtype, bf16: bool, shape: tuple[int, ...]) -> np.ndarray:
    """-inf, which no maximum and no sum of exponentials sees; 0 in integers."""
    if bf16:
        return np.full(shape, to_bf16(np.float32(-np.inf)), dtype=dtype)
    return np.full(shape, -np.inf if dtype.kind == "f" else 0, dtype=dtype)
