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

from drills.sandbox.malformed import MAX_DEPTH, Malformed

T = TypeVar("T")
Builder = Callable[[Any, Callable[[str], str], int], Any]
"""Makes a value of a tree, with what strings go through, at this depth."""

PLAIN = (str, int, float, bool)
LARGEST = 2**64
"""Of an int: whatever a launch is given fits 64 bits."""


def build(kind: type[T], tree: Any, text: Callable[[str], str] = str) -> T:
    """`kind` from `tree`; every string in it goes through `text`. Unknown or missing fields are `Malformed`."""
    return _builder(kind)(tree, text, 0)


@functools.cache
def _builder(hint: Any) -> Builder:
    """What makes a value of this type of a tree, or raises `Malformed`. No builder is called on too deep a tree."""
    make = _unbounded(hint)

    def bounded(tree: Any, text: Callable[[str], str], depth: int) -> Any:
        if depth > MAX_DEPTH:
            raise Malformed("notes nested too deep")
        return make(tree, text, depth)

    return bounded


def _unbounded(hint: Any) -> Builder:
    origin, parts = get_origin(hint), get_args(hint)
    if hint in PLAIN:
        return functools.partial(_plain, hint)
    if is_dataclass(hint):
        return functools.partial(_dataclass, hint, _hints(hint), _required(hint))
    if origin in (Union, types.UnionType):
        kind = next(part for part in parts if part is not type(None))
        return lambda tree, text, depth: None if tree is None else _builder(kind)(tree, text, depth)
    if origin in (list, tuple):
        return functools.partial(_items, origin, parts[0])
    if origin is dict:
        return functools.partial(_mapping, parts[1])
    return _any if hint is Any else _wrong


def _wrong(*_: Any) -> Any:
    raise Malformed("notes of the wrong type")


def _plain(hint: type, tree: Any, text: Callable[[str], str], depth: int) -> Any:
    if type(tree) is hint:
        return text(tree) if hint is str else number(tree)
    return float(number(tree)) if hint is float and type(tree) is int else _wrong()


def _items(origin: type, hint: Any, tree: Any, text: Callable[[str], str], depth: int) -> Any:
    make = _builder(hint)
    return origin(make(item, text, depth + 1) for item in tree) if isinstance(tree, (list, tuple)) else _wrong()


def _mapping(hint: Any, tree: Any, text: Callable[[str], str], depth: int) -> Any:
    make = _builder(hint)
    return {text(name): make(item, text, depth + 1) for name, item in tree.items()} if type(tree) is dict else _wrong()


def _dataclass(kind: type, hints: dict, required: set, tree: Any, text: Callable[[str], str], depth: int) -> Any:
    if not isinstance(tree, dict) or not required <= tree.keys() <= hints.keys():
        raise Malformed("notes of the wrong form")
    return kind(**{name: _builder(hints[name])(item, text, depth + 1) for name, item in tree.items()})


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
