"""A dataclass from JSON that nobody vouches for: every field has the type that it is annotated with, or `Malformed`.

Knows dataclasses, the plain types, Any, `X | None`, list, dict with string keys, and tuple[X, ...]; nothing else. JSON
has numbers that nothing can be computed with: an int has at most 64 bits here, a float is finite.
"""

from __future__ import annotations

import functools
import math
import types
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from drills.sandbox.wire import MAX_DEPTH, Malformed

T = TypeVar("T")
PLAIN = (str, int, float, bool)
LARGEST = 2**64
"""Of an int: whatever a launch is given fits 64 bits."""


def build(kind: type[T], tree: Any, text: Callable[[str], str] = str) -> T:
    """`kind` from `tree`; every string in it goes through `text`. Unknown or missing fields are `Malformed`."""
    return _value(kind, tree, text, 0)


def _value(hint: Any, tree: Any, text: Callable[[str], str], depth: int) -> Any:
    if depth > MAX_DEPTH:
        raise Malformed("notes nested too deep")
    if hint in PLAIN and type(tree) is hint:
        return text(tree) if hint is str else number(tree)
    if is_dataclass(hint):
        return _dataclass(hint, tree, text, depth)
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return None if tree is None else _value(next(p for p in parts if p is not type(None)), tree, text, depth)
    if origin in (list, tuple) and isinstance(tree, (list, tuple)):
        return origin(_value(parts[0], item, text, depth + 1) for item in tree)
    if origin is dict and isinstance(tree, dict):
        return {text(name): _value(parts[1], item, text, depth + 1) for name, item in tree.items()}
    if hint is Any:
        return _any(tree, text, depth)
    if hint is float and type(tree) is int:
        return float(number(tree))
    raise Malformed("notes of the wrong type")


def _dataclass(kind: type, tree: Any, text: Callable[[str], str], depth: int) -> Any:
    hints = _hints(kind)
    if not isinstance(tree, dict) or not _required(kind) <= tree.keys() <= hints.keys():
        raise Malformed("notes of the wrong form")
    return kind(**{name: _value(hints[name], item, text, depth + 1) for name, item in tree.items()})


def _any(tree: Any, text: Callable[[str], str], depth: int) -> Any:
    if depth > MAX_DEPTH:
        raise Malformed("notes nested too deep")
    if isinstance(tree, list):
        return [_any(item, text, depth + 1) for item in tree]
    if isinstance(tree, dict):
        return {text(name): _any(item, text, depth + 1) for name, item in tree.items()}
    return text(tree) if isinstance(tree, str) else number(tree)


def number(value: Any) -> Any:
    """The value, if it is no number, or one that arithmetic can cope with; else `Malformed`."""
    if (type(value) is int and abs(value) > LARGEST) or (type(value) is float and not math.isfinite(value)):
        raise Malformed("a number that nothing can be computed with")
    return value


@functools.cache
def _required(kind: type) -> set[str]:
    return {one.name for one in fields(kind) if one.default is MISSING and one.default_factory is MISSING}


@functools.cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)
