"""Constants of a kernel launch as JSON: what a worker saw, written so that the compile gate can build it again.

Imports neither torch nor triton, so that the parent may import it, and never calls what it encodes. Plain scalars stand
for themselves. Everything else is an object with one of these keys:

    {"float": "inf"}                            a float that strict JSON cannot hold
    {"constexpr": 64}                           a tl.constexpr
    {"dtype": "fp16"}                           a Triton dtype
    {"torch": "float16"}                        a torch dtype
    {"tuple": [...]}                            a tuple or list
    {"tuple": [...], "fields": ["x", "y"]}      a NamedTuple
    {"function": "name", "line": 12, "closure": {...}}      a @triton.jit function or plain function of the file
    {"module": "math"}                          a module
    {"other": "set"}                            anything else: its type's name; the gate cannot build it

>>> encode((64, float("-inf"), None))
{'tuple': [64, {'float': '-inf'}, None]}
"""

from __future__ import annotations

import math
from collections import namedtuple
from collections.abc import Iterable
from keyword import iskeyword
from struct import pack
from types import FunctionType, ModuleType
from typing import Any

MAX_DEPTH = 6


def encode(value: Any, depth: int = 0) -> Any:
    """`value` as a JSON-able tree; never raises, whatever `value` is."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, str):
        return str(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else {"float": str(float(value))}
    kind = type(value).__name__
    if depth >= MAX_DEPTH:
        return {"other": kind}
    if kind == "constexpr":
        return {"constexpr": encode(getattr(value, "value", None), depth + 1)}
    if isinstance(value, (tuple, list)):
        items, fields = [encode(item, depth + 1) for item in value], fields_of(value)
        return {"tuple": items, "fields": fields} if fields else {"tuple": items}
    if kind == "dtype":
        home = str(getattr(type(value), "__module__", ""))
        return {"torch": str(value).removeprefix("torch.")} if home.startswith("torch") else {"dtype": str(value)}
    if isinstance(value, ModuleType):
        return {"module": value.__name__}
    function = plain(value)
    if function is None:
        return {"other": kind}
    return {
        "function": function.__name__,
        "line": function.__code__.co_firstlineno,
        "closure": closure_of(function, depth + 1),
    }


def exactly(value: Any) -> str:
    """A plain scalar as text, with the bits of a NaN, of which there are many."""
    return f"nan {pack('<d', value).hex()}" if type(value) is float and value != value else repr(value)


def fields_of(value: Any) -> list[str]:
    """The names of a NamedTuple's items; none for any other value."""
    names = getattr(type(value), "_fields", None) if isinstance(value, tuple) else None
    return list(names) if isinstance(names, tuple) and are_fields(names, len(value)) else []


def are_fields(names: Any, count: int) -> bool:
    """Whether these can be the names of a NamedTuple's `count` items: different identifiers, none a keyword."""
    return (
        isinstance(names, (list, tuple))
        and 0 < len(names) == count
        and all(isinstance(one, str) and one.isidentifier() and one[0] != "_" and not iskeyword(one) for one in names)
        and len(set(names)) == count
    )


def tupled(items: Iterable[Any], fields: Any = None) -> tuple:
    """A tuple; a NamedTuple if there are fields. ValueError for fields that cannot be."""
    made = tuple(items)
    if not fields:
        return made
    if not are_fields(fields, len(made)):
        raise ValueError("a NamedTuple's fields are different identifiers, one an item")
    return namedtuple("Named", fields)(*made)


def plain(value: Any) -> FunctionType | None:
    """The Python function inside a @triton.jit kernel, however often it is wrapped; None if there is none."""
    for _ in range(MAX_DEPTH):
        if isinstance(value, FunctionType):
            return value
        value = getattr(value, "fn", None)
    return None


def closure_of(kernel: Any, depth: int = 0) -> dict[str, Any]:
    """Name → encoded value of what `kernel` (wrapped or plain) captured from the functions around it."""
    function = plain(kernel)
    if function is None or function.__closure__ is None:
        return {}
    captured = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__, strict=True):
        try:
            captured[name] = encode(cell.cell_contents, depth + 1)
        except ValueError:
            captured[name] = {"other": "unset"}
    return captured
