"""What the names in a kernel stand for, as text, so that it is compiled with the same things that it was run with.

A graded file is loaded twice, to run and to be compiled, and may give a name to another helper, constant or module each
time: in the interpreter even to Python that no compiler would take. Triton's own words are told by identity, as they
were before any graded code; what graded code says of its objects (their class's name, their module) is not believed.
"""

from __future__ import annotations

import builtins
import contextlib
import functools
import hashlib
import math
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any

from drills.instruments import bytecode
from drills.instruments.constants import exactly
from drills.instruments.identity import identity

LONGEST = 80
"""Characters of a constant, or of a type's name, that are told; of a longer one the first and a digest."""

WORD = "Triton's"
"""Begins what is told of a word of Triton's under another name."""

MEDDLED = ", with another "
"""And the part of what is told of a function that is compiled, or run, by something else than its class has."""

AT_LINE = re.compile(r"(\w+), line (\d+)")
"""How a function is told."""

CONSTANTS = "ConstexprFunction"
"""The class of functions that run as Python while a kernel is compiled."""

ATTRIBUTES = ("LOAD_ATTR", "LOAD_METHOD")
GLOBALS = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF")
LIBRARIES = "triton.language.extra."
"""Begins the names of modules whose functions stand for those of a library on the GPU."""

COMPUTING = ("get_int_dtype", "str_to_ty")
"""Functions of Triton's that are neither kernels nor builtins, and yet say the same wherever a kernel calls them."""

SCALARS = frozenset((int, float, bool, str, type(None)))
LANGUAGE = ("triton.language", "triton.runtime.jit", "triton.runtime.interpreter")
"""Modules whose classes a constant's, or a kernel's, may be of."""


def code_of(function: FunctionType) -> CodeType:
    """Its own code."""
    return function.__code__


def digest(code: CodeType) -> str:
    """What tells code from other code, wherever it stands: 16 letters."""
    return hashlib.sha256(repr(_parts(code)).encode(errors="replace")).hexdigest()[:16]


def _parts(code: CodeType) -> tuple[Any, ...]:
    """All that a function's code does."""
    constants = [_parts(one) if isinstance(one, CodeType) else (type(one).__name__, one) for one in code.co_consts]
    names = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
    counts = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount
    return code.co_code, constants, names, counts


class Vocabulary:
    """Triton's words: its language's modules and what they hold. Make it before graded code is loaded."""

    def __init__(self) -> None:
        modules = {name: one for name, one in list(sys.modules.items()) if isinstance(one, ModuleType)}
        language = [one for name, one in modules.items() if name == "triton" or name.startswith(LANGUAGE[0])]
        self.words = {identity(word): word for one in language for word in (one, *filter(_is_word, vars(one).values()))}
        self.called = {number: _own_name(word) for number, word in self.words.items()}
        classes = [vars(one).values() for name, one in modules.items() if name.startswith(LANGUAGE)]
        kinds = {kind for held in classes for kind in held if issubclass(type(kind), type)}
        self.classes = frozenset(kind for kind in kinds if kind.__module__.startswith(LANGUAGE))
        self.usual = frozenset().union(*(_own(word) for word in self.words.values() if type(word) in self.classes))
        self.maths = {identity(one): name for name, one in vars(math).items() if callable(one)}
        self.dtype = type(modules["torch"].float32) if "torch" in modules else None

    def names(
        self,
        function: FunctionType,
        given: dict[str, Any],
        code: Callable = code_of,
        reached: Callable[[FunctionType], None] = identity,
    ) -> dict[str, str]:
        """Of a kernel's function and all that it calls: "name in function" → what it is. Triton's words are left out.

        given: constants that it is launched with, by parameter. code: what a function runs, if it is not its own code.
        reached: told of each function.
        """
        found: dict[str, str] = {}
        seen: dict[int, FunctionType] = {}
        namesakes: Counter = Counter()
        waiting = [function]
        for name, value in given.items():
            found[f"{name} of {function.__name__}"] = self.text(value, typed=True)
            waiting += self._within(value)
        while waiting:
            one = waiting.pop()
            if identity(one) in seen:
                continue
            seen[identity(one)] = one
            reached(one)
            namesakes[one.__name__] += 1
            place = f"{one.__name__} {namesakes[one.__name__]}" if namesakes[one.__name__] > 1 else one.__name__
            if one.__builtins__ is not vars(builtins):
                found[f"builtins in {place}"] = "a Python dict"
            for path, value in _looked_up(one, code(one)):
                said = self.text(value, typed="." not in path) or self._renamed(path, value)
                if said:
                    found[f"{path} in {place}"] = said
                waiting += self._within(value)
        return found

    def text(self, value: Any, typed: bool) -> str:
        """One value: "" for a word of Triton's. typed: its types, of which there may be copies, are told."""
        kind = type(value)
        if kind in SCALARS:
            return _short(exactly(value))
        if isinstance(value, (tuple, list)):
            told = f"({', '.join(self.text(one, True) for one in value)})"
            return _short(f"a Python list {told}" if isinstance(value, list) else told)
        if identity(value) in self.maths:
            return f"math.{self.maths[identity(value)]}"
        if identity(value) in self.words and not (typed and kind.__name__ == "dtype" and kind in self.classes):
            return ""
        if kind in self.classes:
            inner = getattr(value, "fn", None)
            if type(inner) is FunctionType:
                python = f", Python {digest(inner.__code__)}" if kind.__name__ == CONSTANTS else ""
                return f"{inner.__name__}, line {inner.__code__.co_firstlineno}{python}{self.meddled(value)}"
            if kind.__name__ != "constexpr":
                return _short(str(value)) if self.is_type(value) else f"a Python {kind.__name__}"
            return self.text(value.value, True) or f"{WORD} {self.called[identity(value.value)]}"
        if kind is ModuleType:
            return _short(f"module {value.__name__}")
        return str(value) if kind is self.dtype else _short(f"a Python {kind.__name__}")

    def is_type(self, value: Any) -> bool:
        """Whether this is one of Triton's types, or a pointer to one: a copy could say of itself what it likes."""
        if type(value).__name__ != "pointer_type":
            return identity(value) in self.words
        made = type(value)(value.element_ty, value.address_space, value.const)
        same = all(type(held) is type(vars(value).get(name)) for name, held in vars(made).items())
        return self.is_type(value.element_ty) and same and vars(made) == vars(value)

    def meddled(self, kernel: Any) -> str:
        """What it has in place of a method, or of its function's names; "" for nothing."""
        own = _own(kernel)
        strange = sorted((own.keys() - self.usual) & set(dir(type(kernel))))
        if own.get("__globals__", kernel.fn.__globals__) is not kernel.fn.__globals__:
            strange.append("__globals__")
        return f"{MEDDLED}{strange[0]}" if strange else ""

    def _renamed(self, path: str, word: Any) -> str:
        """What a word of Triton's is called by itself, where a name of another kind stands for it."""
        own = self.called.get(identity(word), path)
        return f"{WORD} {own}" if "." not in path and type(word) is not ModuleType and own != path else ""

    def _within(self, value: Any) -> list[FunctionType]:
        """The functions of kernels that a value is, or holds."""
        kind = type(value)
        if isinstance(value, (tuple, list)):
            return [one for item in value for one in self._within(item)]
        if identity(value) in self.words or kind not in self.classes:
            return []
        inner = getattr(value, "value" if kind.__name__ == "constexpr" else "fn", None)
        return [inner] if type(inner) is FunctionType else self._within(inner) if inner is not None else []


def _is_word(value: Any) -> bool:
    """Whether a kernel may use it: no Python function that its language happens to be made with."""
    plainly = type(value) is FunctionType and not getattr(value, "__triton_builtin__", False)
    return not plainly or value.__name__ in COMPUTING or value.__module__.startswith(LIBRARIES)


def _own(kernel: Any) -> dict[str, Any]:
    """An object's own attributes."""
    return getattr(kernel, "__dict__", {})


def _short(text: str) -> str:
    """A text, or its beginning and what tells it from others that begin so."""
    if len(text) <= LONGEST:
        return text
    return f"{text[:LONGEST]}… {hashlib.sha256(text.encode(errors='replace')).hexdigest()[:16]}"


def _own_name(word: Any) -> str:
    """The name of a function, a class or a type."""
    names = (getattr(one, name, None) for one in (getattr(word, "fn", None), word) for name in ("__name__", "name"))
    return next((name for name in names if type(name) is str), "")


def _looked_up(function: FunctionType, code: CodeType) -> Iterator[tuple[str, Any]]:
    """(path, value) of what a function has from outside: defaults, names, and attributes of modules."""
    own = captured(function)
    plain = function.__code__.co_varnames[: function.__code__.co_argcount]
    defaults = function.__defaults__ or ()
    given = dict(zip(plain[len(plain) - len(defaults) :], defaults, strict=False)) | (function.__kwdefaults__ or {})
    yield from ((f"{name} by default", value) for name, value in given.items())
    for root, *attributes in _paths(code):
        if root in code.co_cellvars or (root not in own and root not in function.__globals__):
            continue
        path, value = root, own[root] if root in own else function.__globals__[root]
        yield path, value
        for attribute in attributes:
            if type(value) is not ModuleType:
                break
            path, value = f"{path}.{attribute}", vars(value).get(attribute)
            yield path, value


@functools.lru_cache(maxsize=512)
def _paths(code: CodeType) -> tuple[tuple[str, ...], ...]:
    """The names that code, or code inside it, looks up outside itself, each with the attributes that follow it."""
    found: dict[tuple[str, ...], None] = {}
    path: tuple[str, ...] = ()
    for one in bytecode.instructions(code):
        if path and one.opname in ATTRIBUTES:
            path = (*path, one.argval)
            continue
        if path:
            found[path] = None
        path = (one.argval,) if one.opname in GLOBALS else ()
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            found.update(dict.fromkeys(_paths(inner)))
    return tuple(found)


def captured(function: Callable) -> dict[str, Any]:
    """What a function took from the functions around it, by name; names that are not set yet are left out."""
    found = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        with contextlib.suppress(ValueError):
            found[name] = cell.cell_contents
    return found
