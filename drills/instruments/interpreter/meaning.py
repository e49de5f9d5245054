"""What names mean inside a kernel: Python's own (range, min, max, and, or, not) as Triton's compiler takes them.

A kernel runs with these as its builtins, so nothing is written into the learner's module.
"""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable, Iterator
from types import FunctionType, ModuleType
from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime import interpreter as plain
from triton.runtime.autotuner import Autotuner, Heuristics
from triton.runtime.jit import ConstexprFunction

from drills.instruments.constants import fields_of
from drills.instruments.interpreter.arithmetic import NotInterpreted, numpy_type
from drills.instruments.interpreter.now import NOW
from drills.instruments.interpreter.number import Constants, Number, compiled, folded
from drills.instruments.interpreter.shortcuts import Shortcuts
from drills.instruments.interpreter.syntax import (
    ASKED,
    ASSIGN,
    BOTH,
    CHOSEN,
    EITHER,
    NOT,
    REST,
    SHOWN,
    TEXT,
    VALUE,
    is_inside,
    of_values,
)

of_values()  # before graded code could add to them

NUMBERS = (bool, int, float)
LISTS = (list, dict, set)
FUNCTIONS = (FunctionType, plain.InterpretedFunction, Autotuner, Heuristics, ConstexprFunction)
PYTHONS = frozenset(
    (
        "eval",
        "exec",
        "compile",
        "__import__",
        "__build_class__",
        "open",
        "globals",
        "locals",
        "vars",
        "setattr",
        "delattr",
    )
)
"""Python's own that a kernel has no use for and that lead out of it."""


class Semantic(Shortcuts, plain.TritonSemantic):
    """Triton's semantics on the interpreter's builder."""

    def _load_legacy(self, *args: Any) -> Any:
        """A load through pointers. Triton asks `if other` where it means "was it given"; 0 must not read as absent."""
        NOW.present = True
        try:
            return super()._load_legacy(*args)
        finally:
            NOW.present = False

    def binary_op_type_checking_impl(self, lhs: Any, rhs: Any, *more: Any, **named: Any) -> Any:
        """The two sides in one type. An argument that is 1 is a number to the compiler, and takes the other's type."""
        if isinstance(lhs, tl.tensor) and isinstance(rhs, tl.tensor):
            left, right = folded(lhs), folded(rhs)
            if left is lhs or right is rhs:
                lhs, rhs = left, right
        return super().binary_op_type_checking_impl(lhs, rhs, *more, **named)

    def dot_scaled(self, *_: Any, **__: Any) -> Any:
        """A product of numbers that share scales."""
        raise NotInterpreted("tl.dot_scaled")


class Meaning:
    """The helpers and builtins of a kernel, on one semantic."""

    def __init__(self, semantic: Semantic) -> None:
        self.semantic = semantic
        self.builtins = {
            **{name: one for name, one in vars(builtins).items() if name not in PYTHONS},
            "getattr": attribute,
            "hasattr": has_attribute,
            "isinstance": instance,
            "range": self.range,
            "max": functools.partial(self.extreme, builtins.max, semantic.maximum),
            "min": functools.partial(self.extreme, builtins.min, semantic.minimum),
            ASSIGN: self.assigned,
            BOTH: functools.partial(self.chained, False, semantic.logical_and),
            EITHER: functools.partial(self.chained, True, semantic.logical_or),
            NOT: self.negated,
            SHOWN: compiled,
            CHOSEN: self.chosen,
            REST: rest,
            ASKED: asked,
            TEXT: text,
            VALUE: lambda held: held if isinstance(held, NUMBERS) else held.value,
        }

    def assigned(self, value: Any) -> Any:
        """What a name holds after `name = value`: a number becomes a tensor."""
        if isinstance(value, tl.tensor):
            return self.semantic.to_tensor(value.__number__) if type(value) is Number else value
        if isinstance(value, NUMBERS) or isinstance(value, tl.constexpr) and isinstance(value.value, NUMBERS):
            return self.semantic.to_tensor(value)
        if type(value) in (tuple, Constants) or fields_of(value):
            items = map(self.assigned, value)
            return type(value)(*items) if fields_of(value) else tuple(items)
        return value

    def chained(self, decisive: bool, combine: Any, *thunks: Any) -> Any:
        """`and` (decisive False) or `or` (True): a constant decides or drops out, tensors combine lane by lane."""
        kept, value = [], None
        for thunk in thunks:
            value = folded(thunk())
            if isinstance(value, tl.tensor):
                kept.append(value)
            elif bool(value) is decisive:
                return value
        if not kept:
            return value
        return functools.reduce(lambda left, right: combine(left, right), kept)

    def chosen(self, condition: Any, one: Callable, other: Callable) -> Any:
        """`one if condition else other`: of a tensor's choice a tensor comes, of a constant's what was chosen."""
        condition = folded(condition)
        value = one() if condition else other()
        return self.assigned(value) if isinstance(condition, tl.tensor) else value

    def negated(self, value: Any) -> Any:
        """`not value`."""
        value = folded(value)
        return self.semantic.not_(value) if isinstance(value, tl.tensor) else not value

    def extreme(self, plainly: Any, combine: Any, *values: Any, **named: Any) -> Any:
        """max and min: tensors lane by lane, anything else as in Python."""
        values = tuple(map(folded, values))
        if not any(isinstance(value, tl.tensor) for value in values):
            return plainly(*values, **named)
        tensors = [self.semantic.to_tensor(value) for value in values]
        return functools.reduce(lambda a, b: combine(a, b, tl.PropagateNan.NONE), tensors)

    def range(self, start: Any, stop: Any = None, step: Any = None, **hints: Any) -> Iterator[Any]:
        """A loop whose variable is a tensor of the bounds' common type, 64 bits wide if one of them is."""
        if stop is None:
            start, stop = 0, start
        bounds = [self.semantic.to_tensor(bound) for bound in (start, stop, 1 if step is None else step)]
        kinds = [bound.dtype for bound in bounds]
        if not all(kind.is_int() for kind in kinds):
            raise TypeError(f"For loop bounds and step must all be ints, are ({', '.join(map(str, kinds))})")
        if any(bound.type.is_block() for bound in bounds):
            raise TypeError("For loop bounds and step must be scalars")
        kind = functools.reduce(self.semantic.integer_promote_impl, kinds)
        held = numpy_type(kind)
        for number in builtins.range(*(int(bound.handle.data.item()) for bound in bounds)):
            yield tl.tensor(plain.TensorHandle(np.array([number], dtype=held), kind), kind)


def attribute(value: Any, name: str, *default: Any) -> Any:
    """getattr, as far as a kernel may name attributes."""
    return getattr(_asked(value, name), name, *default)


def has_attribute(value: Any, name: str) -> bool:
    """hasattr, likewise."""
    return hasattr(_asked(value, name), name)


def _asked(value: Any, name: str) -> Any:
    """What is asked for an attribute. Of a function, a tuple or a plain number, the interpreter's has others."""
    if is_inside(name):
        raise TypeError(f"a kernel has no attribute {name}: only Python has that, not a GPU")
    if isinstance(value, tuple) and name in fields_of(value):
        return value
    value = compiled(value)
    if not isinstance(value, (tl.tensor, tl.dtype, ModuleType)):
        raise TypeError("a kernel asks tensors and types for their attributes, nothing else")
    return value


def asked(value: Any, *owners: Any) -> Any:
    """A value that a kernel has asked its owners for, or asks something of: no way to leave the next program a word."""
    if any(isinstance(one, (*LISTS, *FUNCTIONS)) for one in owners or (value,)):
        raise TypeError("a kernel asks no function and no list for an attribute: only Python has those, not a GPU")
    return value


def rest(left: Any, right: Any) -> Any:
    """left % right: of numbers and tensors the rest, of text what it says with `right` in it."""
    return left % _said(right) if isinstance(left, str) else left % right


def text(pattern: Any, *values: Any, **named: Any) -> str:
    """pattern.format(...)."""
    if named:
        raise TypeError("a kernel fills in text by places, not by names")
    return pattern.format(*map(_said, values))


def _said(value: Any) -> Any:
    """What text may be made of: tuples and functions look otherwise in the interpreter."""
    value = compiled(value)
    if value is not None and not isinstance(value, (*NUMBERS, str)):
        raise TypeError("a kernel makes text of numbers and text, nothing else")
    return value


def instance(value: Any, kinds: Any) -> bool:
    """isinstance."""
    return isinstance(compiled(value), kinds)
