"""Whether what the interpreter computes with is still what it was before graded code was loaded.

A kernel runs here by numpy and Triton's own Python, in the process of the graded code, which can replace any name in
any module: numpy.exp by numpy.exp2, and a kernel that is wrong comes out right. So what these modules hold is noted
when the interpreter is made ready, and looked at again around each launch. Must never run what it looks at.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from ctypes import c_size_t, sizeof
from operator import is_, itemgetter
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

PACKAGES = ("triton.language", "triton.runtime.interpreter", "triton._C.libtriton.interpreter", "drills.instruments")
COMPILERS = ("triton.compiler", "triton.language", "triton.runtime.jit", "triton.backends", "drills.instruments")
"""What a kernel is compiled by."""

LANGUAGE = "triton.language"
MODULES = ("numpy", "ast", "linecache", "random", "builtins")
CLASSES = (ast.NodeVisitor, ast.NodeTransformer)
LEFT_ASIDE = "triton.language.extra"
HELD = (FunctionType, BuiltinFunctionType, type, ModuleType)

_whole, _kind = all, type


class Intact:
    """What functions, classes and modules the names of these modules stood for, and the code of their functions.

    Their classes, and Triton's language, may get no further names, and its kernels no other functions.

    instances: objects that may get no attribute in place of a method. packages: whose modules and classes are noted.
    """

    def __init__(self, *instances: Any, packages: tuple[str, ...] = PACKAGES) -> None:
        self.names: list[tuple[str, Any, itemgetter, dict[str, Any]]] = []
        self.classes: list[tuple[str, Any, frozenset[str]]] = []
        self.functions: list[FunctionType] = []
        self.kernels: list[tuple[str, dict[str, Any], FunctionType]] = []
        self.instances = [(_kind(one).__name__, vars(one), _methods(one) - vars(one).keys()) for one in instances]
        seen: set[int] = set()
        for name, owner in _owners(packages):
            if id(owner) in seen:
                continue
            seen.add(id(owner))
            space = vars(owner)
            held = {key: value for key, value in dict(space).items() if isinstance(key, str) and _matters(value)}
            if held:  # the first name once more: of one name alone, a getter gives no tuple
                self.names.append((name, space, itemgetter(*held, next(iter(held))), held))
            if isinstance(owner, type) or name.startswith(LANGUAGE):
                self.classes.append((name, space, frozenset(space)))
            self.functions += [value for value in held.values() if _kind(value) is FunctionType]
            for key, value in dict(space).items():
                inner = getattr(value, "__dict__", {}).get("fn")
                if _kind(inner) is FunctionType:
                    self.kernels.append((f"{name}.{key}", vars(value), inner))
                    self.functions.append(inner)
        self.codes = Codes(self.functions)

    def changed(self, codes: bool = True) -> str:
        """The name that stands for something else by now; "" if none does. codes: look into the functions too."""
        for name, space, get, held in self.names:
            try:
                same = _whole(map(is_, get(space), held.values()))
            except KeyError:
                same = False
            if not same:
                return f"{name}.{next(key for key, value in held.items() if space.get(key) is not value)}"
        for name, space, known in self.classes:
            if len(space) != len(known) and (added := _added(space, known)):
                return f"{name}.{added[0]}"
        for name, space, function in self.kernels:
            if space.get("fn") is not function:
                return name
        for name, space, methods in self.instances:
            if not methods.isdisjoint(space):
                return f"{name}.{min(methods & space.keys())}"
        return self.codes.changed() if codes else ""


_code = FunctionType.__code__.__get__


class Codes:
    """The code that each of these functions runs.

    Python tells its audit hooks of every look at a function's code, which takes a worker 2 ms for all of them. So the
    words of memory in which the functions hold their codes are read at once, if they are where a first look finds them.
    """

    def __init__(self, functions: list[FunctionType]) -> None:
        self.functions = functions
        self.codes: list[CodeType] = [_code(function) for function in functions]
        self.numbers = np.array([id(code) for code in self.codes], np.uintp).tobytes()
        word = sizeof(c_size_t)
        base = min(map(id, functions))
        span = (max(map(id, functions)) - base + FunctionType.__basicsize__) // word
        self.memory = np.frombuffer((c_size_t * span).from_address(base), np.uintp)
        starts = np.array([(id(function) - base) // word for function in functions])
        places = (starts + at for at in range(FunctionType.__basicsize__ // word))
        self.places = next((one for one in places if self._held(one) == self.numbers), None)

    def _held(self, places: np.ndarray) -> bytes:
        return self.memory[places].tobytes()

    def changed(self) -> str:
        """The name of a function that runs another code by now; "" if none does."""
        if self.places is not None and self._held(self.places) == self.numbers:
            return ""
        pairs = zip(self.functions, self.codes, strict=True)
        return next((one.__qualname__ for one, code in pairs if _code(one) is not code), "")


def _added(space: dict[str, Any], known: frozenset[str]) -> list[str]:
    """Names that are new; a module within, which somebody imported, is none."""
    return [key for key, one in space.items() if key not in known and key[:2] != "__" and _kind(one) is not ModuleType]


def _methods(instance: Any) -> set[str]:
    """Names of what its class defines."""
    return set(dir(_kind(instance)))


def _matters(value: Any) -> bool:
    """Whether a name for this is one that computing depends on; numpy's functions are of types of its own."""
    return isinstance(value, HELD) or (callable(value) and _kind(value).__module__.partition(".")[0] == "numpy")


def _owners(packages: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    """The modules by name, and the classes that are defined in them."""
    for name, module in list(sys.modules.items()):
        inside = name.startswith(packages) and not name.startswith(LEFT_ASIDE)
        if not (inside or name in MODULES) or not isinstance(module, ModuleType):
            continue
        yield name, module
        for key, value in list(vars(module).items()):
            if isinstance(value, type) and (value in CLASSES or (inside and value.__module__ == name)):
                yield f"{name}.{key}", value
