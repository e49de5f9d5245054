"""An argument that is 1, which is a plain number to the compiler: so is whatever is computed of it and of numbers."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import triton.language as tl

NUMBERS = (bool, int, float)
TURNED = {
    **{name: f"r{name}" for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "lshift", "rshift")},
    **{name: f"r{name}" for name in ("and", "or", "xor")},
    "lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne",
}  # fmt: skip
"""Operators of two sides, each with the one by which the other side does the same."""

COMPARED = ("lt", "le", "gt", "ge", "eq", "ne")


class Number(tl.tensor):
    """A scalar, and the number that it is."""

    def __init__(self, handle: Any, kind: Any, number: int) -> None:
        super().__init__(handle, kind)
        self.__number__ = number

    def __neg__(self) -> Any:
        return -self.__number__

    def __pos__(self) -> Any:
        return +self.__number__

    def __invert__(self) -> Any:
        return ~self.__number__


def folded(value: Any) -> Any:
    """What a value is to the compiler: an argument that is 1 is a plain integer there."""
    return value.__number__ if type(value) is Number else value


class Constants(tuple):
    """A tuple that is a constant: to the compiler one of Python's, where others are Triton's."""


def compiled(value: Any) -> Any:
    """What Python's own functions get in the compiler: what a constant stands for; for tuples and lists Triton's."""
    value = folded(tl.core._unwrap_if_constexpr(value))
    return tl.tuple(list(value)) if isinstance(value, (tuple, list)) and type(value) is not Constants else value


def _method(operation: Callable, other_way: str, reflected: bool) -> Callable:
    def method(self: Number, other: Any) -> Any:
        other = folded(tl.core._unwrap_if_constexpr(other))
        if isinstance(other, NUMBERS):
            return operation(other, self.__number__) if reflected else operation(self.__number__, other)
        return getattr(other, other_way)(self.__number__)

    return method


for _name, _turned in TURNED.items():
    _operation = getattr(operator, f"{_name}_" if _name in ("and", "or") else _name)
    setattr(Number, f"__{_name}__", _method(_operation, f"__{_turned}__", False))
    if _name not in COMPARED:
        setattr(Number, f"__{_turned}__", _method(_operation, f"__{_name}__", True))
