"""What the JIT would compile a launch for: types, constants, divisibility, options and the grid."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
import triton
from triton.backends.compiler import BaseBackend
from triton.runtime import interpreter as plain
from triton.runtime import jit

from drills.instruments.constants import closure_of, encode, fields_of
from drills.instruments.geometry import pointer
from drills.instruments.notes import Launch

GRID_LIMITS = (2**31 - 1, 65535, 65535)
OTHERWISE = frozenset(("__signature__", "__wrapped__"))
"""Attributes by which a function tells Python of other parameters than it has."""

NOT_OPTIONS = {"num_warps", "num_stages", "grid", "warmup"}


@dataclass(frozen=True)
class Declared:
    """A kernel's parameters: as Python sees them, and as the JIT does."""

    signature: inspect.Signature
    params: list[jit.KernelParam]

    def bind(self, args: tuple, keywords: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """(parameter → argument, defaults included; the launch's other keywords). TypeError for a wrong call."""
        names = self.signature.parameters
        options = {name: value for name, value in keywords.items() if name not in names}
        call = self.signature.bind(*args, **{name: value for name, value in keywords.items() if name in names})
        call.apply_defaults()
        return dict(call.arguments), options


def declared(function: Any, settings: dict[str, Any]) -> Declared:
    """What a kernel declares in its def. settings: keyword arguments of @triton.jit."""
    if strange := sorted(OTHERWISE & vars(function).keys()):
        raise TypeError(f"a kernel has the parameters that stand in its def: {function.__name__} has a {strange[0]}")
    signature = inspect.signature(function)
    plainly = set(settings.get("do_not_specialize") or ())
    unaligned = set(settings.get("do_not_specialize_on_alignment") or ())
    params = [
        jit.KernelParam(i, param, bool({i, param.name} & plainly), bool({i, param.name} & unaligned))
        for i, param in enumerate(signature.parameters.values())
    ]
    return Declared(signature, params)


def specialised(param: jit.KernelParam, value: Any) -> tuple[Any, Any]:
    """(type, key) of one argument: the key holds "D" for divisible by 16, or the folded constant."""
    if param.is_constexpr:
        return "constexpr", value
    fixed = param.annotation_type
    if fixed and (fixed == "u1" or fixed[:2] in ("fp", "bf")):
        return fixed, None
    kind, key = natural(value, param.is_const, not param.do_not_specialize, not param.do_not_specialize_on_alignment)
    return fixed or kind, key


def natural(value: Any, const: bool = False, specialize: bool = True, align: bool = True) -> tuple[Any, Any]:
    """(type, key) that the JIT gives a value without an annotation.

    The common kinds are worked out here: asking the JIT imports a tenth of a second of Triton.
    """
    if value is None:
        return "constexpr", None
    if isinstance(value, bool):
        return "u1", None
    if isinstance(value, float):
        return "fp32", None
    if isinstance(value, int) and -(2**63) <= value < 2**63:
        if specialize and value == 1:
            return "constexpr", 1
        return ("i32" if -(2**31) <= value < 2**31 else "i64"), _aligned(value, specialize, align)
    if isinstance(value, torch.Tensor):
        kind = jit.type_canonicalisation_dict[str(value.dtype).removeprefix("torch.")]
        return ("*k" if const else "*") + kind, _aligned(pointer(value), specialize, align)
    return jit.native_specialize_impl(BaseBackend, value, const, specialize, align)


def _aligned(value: int, specialize: bool, align: bool) -> str | None:
    if not specialize:
        return None
    return "D" if align and value % 16 == 0 else ""


def launch(kernel: Any, params: list, values: dict[str, Any], grid: tuple, options: dict[str, Any]) -> Launch:
    """The note of one launch. values: parameter → argument, defaults included. options: num_warps and the like."""
    signature: dict[str, Any] = {}
    constants: dict[str, Any] = {}
    divisible: list[str] = []
    for param in params:
        kind, key = specialised(param, values[param.name])
        signature[param.name] = _listed(kind, values[param.name])
        for path, one, mark, value in _parts(param.name, kind, key, values[param.name]):
            if one == "constexpr":
                constants[path] = encode(value)
            elif isinstance(mark, str) and "D" in mark:
                divisible.append(path)
    return Launch(
        kernel=kernel.__name__,
        line=kernel.__code__.co_firstlineno,
        grid=grid,
        signature=signature,
        constants=constants,
        divisible=divisible,
        num_warps=options.get("num_warps", 4),
        num_stages=options.get("num_stages", 3),
        options={name: encode(value) for name, value in options.items() if name not in NOT_OPTIONS},
        closure=closure_of(kernel),
    )


def counted(grid: Any, values: dict[str, Any]) -> tuple[int, int, int]:
    """The grid as three numbers, as CUDA would take it; TypeError or ValueError where it would not."""
    grid = grid(values) if callable(grid) else grid
    if not isinstance(grid, (tuple, list)):
        raise TypeError(f"the grid is {grid!r}: kernel[...] needs a tuple such as (8,) or (8, 4)")
    if not 1 <= len(grid) <= 3:
        raise ValueError(f"the grid has {len(grid)} axes: it must have 1, 2 or 3")
    sizes = []
    for axis, size in enumerate(grid):
        try:
            sizes.append(operator.index(size))
        except TypeError:
            raise TypeError(f"grid[{axis}] is {size!r}: it must be a whole number (triton.cdiv divides up)") from None
        if sizes[-1] > GRID_LIMITS[axis]:
            raise ValueError(f"grid[{axis}] is {size}: CUDA allows at most {GRID_LIMITS[axis]}")
    return (*sizes, 1, 1)[:3]


def _parts(path: str, kind: Any, key: Any, value: Any) -> Iterator[tuple[str, Any, Any, Any]]:
    if isinstance(kind, (tuple, list)):
        keys = key if isinstance(key, (tuple, list)) else [None] * len(kind)
        for i, (one, mark, item) in enumerate(zip(kind, keys, value, strict=True)):
            yield from _parts(f"{path}.{i}", one, mark, item)
    else:
        yield path, kind, key, value


def _listed(kind: Any, value: Any) -> Any:
    if not isinstance(kind, (tuple, list)):
        return kind
    kinds, fields = [_listed(one, item) for one, item in zip(kind, value, strict=True)], fields_of(value)
    return {"tuple": kinds, "fields": fields} if fields else kinds


def known_options() -> set[str]:
    """Names that a launch may pass besides the kernel's parameters, on CUDA."""
    backend = triton.backends.backends.get("nvidia")
    module = __import__(backend.compiler.__module__, fromlist=["CUDAOptions"]) if backend else None
    names = set(getattr(module, "CUDAOptions", plain.InterpreterOptions).__dataclass_fields__)
    return names | {"num_warps", "num_stages", "num_ctas"}
