"""Whether what the interpreter computes with is still what it was before graded code was loaded.

A kernel runs here by numpy and Triton's own Python, in the process of the graded code, which can replace any name in
any module: numpy.exp by numpy.exp2, and a kernel that is wrong comes out right. So what these modules hold is noted
when the interpreter is made ready, and looked at again around each launch. Whatever is put in place and taken back in
between (by what print calls, a thread, the collector) is found by the numbers that Python gives dicts at each change.
Must never run what it looks at.
"""

from __future__ import annotations

import ast
import builtins
import copyreg
import functools
import gc
import os
import random
import sys
from collections.abc import Callable, Iterable, Iterator
from ctypes import c_size_t, c_uint64, sizeof
from operator import is_, itemgetter
from types import BuiltinFunctionType, CellType, FunctionType, ModuleType, WrapperDescriptorType
from typing import Any

import numpy as np

PACKAGES = (
    "triton.language", "triton.runtime.interpreter", "triton.runtime.jit", "triton._utils",
    "triton._C.libtriton.interpreter", "drills.instruments",
)  # fmt: skip
COMPILERS = (
    "triton.compiler", "triton.language", "triton.runtime.jit", "triton._utils", "triton.backends", "triton.knobs",
    "drills.instruments",
)  # fmt: skip
"""What a kernel is compiled by."""

LANGUAGE = "triton.language"
TYPES = "dtype"
"""The class of Triton's types. A kernel computes in another if one of them says that it is."""

PYTHONS = frozenset((
    "ast", "linecache", "random", "builtins", "inspect", "textwrap", "tokenize", "token", "dis", "opcode", "hashlib",
    "io", "math", "operator", "functools", "contextlib", "re", "collections", "_collections_abc", "copy", "copyreg",
    "ctypes", "dataclasses", "keyword", "struct",
))  # fmt: skip
"""Of Python's own modules, what is neither function nor class counts too: a pattern, a number."""

LISTS = frozenset(("dis", "opcode", "token", "tokenize"))
"""And what their lists and tables hold, which nothing changes."""

COMPUTING = frozenset((
    "numpy", "numpy._core._internal", "numpy._core._methods", "torch.overrides", "torch.utils._python_dispatch",
    "torch._library.simple_registry",
))  # fmt: skip
"""Modules that kernels are interpreted by; those in which numpy's functions are written are found by these."""

CLASSES = frozenset((
    "ast.NodeVisitor", "ast.NodeTransformer", "random.Random", "contextlib.suppress", "contextlib.ContextDecorator",
    "contextlib._GeneratorContextManagerBase", "contextlib._GeneratorContextManager", "inspect.Signature",
    "inspect.Parameter", "inspect.BoundArguments", "_collections_abc.Sequence", "numpy.errstate",
    "numpy._core._internal._ctypes", "torch.overrides.TorchFunctionMode",
    "torch.utils._python_dispatch.TorchDispatchMode",
))  # fmt: skip
SET_BY = "triton.knobs"
"""The module whose classes' attributes are what the compiler is set by."""

TREES = "ast"
"""The module whose classes are what a kernel is made of before it is code."""

OURS = "drills."
NUMBER_AT = 24
"""Where in a dict its number lies, on every 64-bit machine from Python 3.10 to 3.13."""

OF_TORCH = ("equal", "empty", "full", "zeros", "cat", "as_tensor", "tensor", "count_nonzero", "frombuffer")
"""What the instruments use of torch, whose module is given further names whenever something is imported."""

LEFT_ASIDE = "triton.language.extra"
CACHED = type(functools.cache(len))
HELD = (FunctionType, BuiltinFunctionType, WrapperDescriptorType, CACHED, type, ModuleType)

_whole, _kind = all, type
_unequal, _both, _nonzero = np.not_equal, np.logical_and, np.ndarray.nonzero
_builtin = frozenset(vars(builtins))


class Intact:
    """What functions, classes and modules the names of these modules stood for, and the code of their functions.

    Their classes, and Triton's language, may get no further names, the others none that stands before Python's own, and
    kernels no other functions. Of functions, what they wrap and what they captured counts too.

    instances: objects that may get no attribute in place of a method. packages: whose modules and classes are noted.
    swapped: those whose names are others while a kernel runs.
    """

    def __init__(self, *instances: Any, packages: tuple[str, ...] = PACKAGES, swapped: Iterable[Any] = ()) -> None:
        self.names: dict[int, tuple[str, Any, itemgetter, dict[str, Any]]] = {}
        self.classes: dict[int, tuple[str, Any, frozenset[str]]] = {}
        self.shadows: dict[int, tuple[str, Any, frozenset[str]]] = {}
        self.tables: list[tuple[str, Any, Any]] = []
        self.kernels: list[tuple[str, dict[str, Any], FunctionType]] = []
        self.instances = [(_kind(one).__name__, vars(one), _methods(one) - vars(one).keys()) for one in instances]
        torch = vars(sys.modules["torch"]) if "torch" in sys.modules else {}
        held = {name: torch[name] for name in OF_TORCH if name in torch}
        self.torch = "torch", torch, held
        functions: list[FunctionType] = []
        owners: dict[int, tuple[str, Any]] = {}
        for name, owner in _owners(packages):
            owners.setdefault(id(owner), (name, owner))
        self.changes = Changes(owners.values())
        for at, (name, owner) in enumerate(owners.values()):
            space = vars(owner)
            own = name.partition(".")[0] in PYTHONS or name.startswith(SET_BY) or _kind(owner).__name__ == TYPES
            matters = _is_own if own else _matters
            held = {key: value for key, value in dict(space).items() if isinstance(key, str) and matters(key, value)}
            if held:  # the first name once more: of one name alone, a getter gives no tuple
                self.names[at] = name, space, itemgetter(*held, next(iter(held))), held
            if issubclass(_kind(owner), type) or name.startswith(LANGUAGE):
                self.classes[at] = name, space, frozenset(space)
            elif owner is not builtins:
                self.shadows[at] = name, space, _builtin & space.keys()
            if name in LISTS:
                tables = {key: one for key, one in held.items() if _kind(one) in (list, dict, set)}
                self.tables += [(f"{name}.{key}", one, one.copy()) for key, one in tables.items()]
            functions += [value for value in held.values() if _kind(value) is FunctionType]
            functions += filter(None, map(_wrapped, held.values()))
            for key, value in dict(space).items():
                inner = getattr(value, "__dict__", {}).get("fn")
                if _kind(inner) is FunctionType:
                    self.kernels.append((f"{name}.{key}", vars(value), inner))
                    functions.append(inner)
        functions, cells = _reached(functions)
        self.codes = Held(functions, _code, FunctionType.__basicsize__)
        self.defaults = Held(functions, _defaults, FunctionType.__basicsize__)
        self.cells = Held(cells, _content, CellType.__basicsize__)
        self.functions = functions
        self.owners = range(len(owners))
        passing = set(map(id, swapped))
        self.steady = np.array([number not in passing for number in owners], bool)
        self.known = self.changes.now()

    def changed(self, codes: bool = True) -> str:
        """The name that stands for something else by now; "" if none does. codes: look into the functions too."""
        now = self.changes.now()
        changed = _places(_unequal(now, self.known)) if now.size else self.owners
        if lost := self._another(changed):
            return lost
        self.known = now
        name, space, held = self.torch
        if lost := next((key for key, value in held.items() if space.get(key) is not value), ""):
            return f"{name}.{lost}"
        for name, space, function in self.kernels:
            if space.get("fn") is not function:
                return name
        for name, table, before in self.tables:
            if table != before:
                return name
        for name, space, methods in self.instances:
            if not methods.isdisjoint(space):
                return f"{name}.{min(methods & space.keys())}"
        return self._inside() if codes else ""

    def meanwhile(self, now: np.ndarray) -> str:
        """Whose names were changed since `changed` was asked, except those that are swapped for a launch."""
        return self.changes.first_of(_places(_both(_unequal(now, self.known), self.steady)) if now.size else [])

    def _another(self, owners: Iterable[int]) -> str:
        """A name of these that stands for something else, or a new one; "" if there is none."""
        for name, space, get, held in [self.names[at] for at in owners if at in self.names]:
            try:
                same = _whole(map(is_, get(space), held.values()))
            except KeyError:
                same = False
            if not same:
                return f"{name}.{next(key for key, value in held.items() if space.get(key) is not value)}"
        for name, space, known in [self.classes[at] for at in owners if at in self.classes]:
            if len(space) != len(known) and (added := _added(space, known)):
                return f"{name}.{added[0]}"
        for name, space, known in [self.shadows[at] for at in owners if at in self.shadows]:
            if added := (_builtin & space.keys()) - known:
                return f"{name}.{min(added)}"
        return ""

    def _inside(self) -> str:
        """The name of a function that does something else by now; "" if none does."""
        lost = self.codes.changed() or self.defaults.changed()
        if lost is None and (cell := self.cells.changed()) is not None:
            lost = next(one for one in self.functions if any(cell is held for held in _closure(one) or ()))
        return "" if lost is None else lost.__qualname__


class Changes:
    """The numbers of these modules' and classes' dicts: Python gives a dict another, never used before, at each change.

    They are read where they lie in memory; nothing is known on a Python that keeps none.
    """

    def __init__(self, owners: Iterable[tuple[str, Any]]) -> None:
        self.owners = list(owners) if numbers_dicts() else []
        for _, owner in self.owners:
            settle(owner)
        self.names = [set(vars(owner)) for _, owner in self.owners]
        self.memory, self.places = _words_at([id(_dict_of(owner)) + NUMBER_AT for _, owner in self.owners])

    def now(self) -> np.ndarray:
        """As they are."""
        return self.memory[self.places]

    def since(self, before: np.ndarray) -> str:
        """Whose names were changed since then, even if they are by now what they were; "" if nobody's were.

        A part of a package that is imported meanwhile gets a name in it.
        """
        return self.first_of(_places(_unequal(before, self.now())))

    def first_of(self, changed: list[int]) -> str:
        """The name of the first of these in which nothing was imported; "" if there is none."""
        return next((self.owners[at][0] for at in changed if not self._has_imported(at)), "")

    def _has_imported(self, at: int) -> bool:
        name, owner = self.owners[at]
        fresh = [key for key in vars(owner) if key not in self.names[at]]
        self.names[at].update(fresh)
        return bool(fresh) and all(_is_part(owner, vars(owner)[key], f"{name}.{key}") for key in fresh)


def settle(owner: Any) -> None:
    """Have Python note in a module or a class now what it else notes there some time later."""
    if issubclass(_kind(owner), type):
        copyreg._slotnames(owner)
        getattr(owner, "__annotations__", None)
    else:
        vars(owner).setdefault("__warningregistry__", {})
    if owner is random:
        random.Random("")  # from Python 3.13 on the first seed that is text brings it a hash function


def _is_part(package: Any, part: Any, name: str) -> bool:
    """Whether this is the package's module of that name, from a file of the package's own."""
    if _kind(part) is not ModuleType or sys.modules.get(name) is not part or not hasattr(package, "__path__"):
        return False
    file = getattr(part, "__file__", None) or ""
    return file.startswith(os.path.join(os.path.dirname(package.__file__), "")) and os.path.isfile(file)


def numbers_dicts() -> bool:
    """Whether this Python numbers its dicts' changes where we look."""
    tried = {"a": 1}
    number = c_uint64.from_address(id(tried) + NUMBER_AT)
    seen = {number.value}
    for value in (2, 1, 3):
        tried["a"] = value
        seen.add(number.value)
    return len(seen) == 4


def _dict_of(owner: Any) -> dict[str, Any]:
    """Of a class, the dict behind the read-only view of it."""
    space = vars(owner)
    return space if isinstance(space, dict) else gc.get_referents(space)[0]


_code, _defaults, _closure = (getattr(FunctionType, f"__{name}__").__get__ for name in ("code", "defaults", "closure"))


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return None


def _words_at(addresses: list[int], size: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Memory as words, and which of them lie at these addresses. size: bytes that are looked at from each one on."""
    if not addresses:
        return np.zeros(0, np.uintp), np.zeros(0, int)
    word, base = sizeof(c_size_t), min(addresses)
    span = (max(addresses) - base + max(size, word)) // word
    memory = np.frombuffer((c_size_t * span).from_address(base), np.uintp)
    return memory, np.array([(one - base) // word for one in addresses])


def _places(holds: np.ndarray) -> list[int]:
    """Where it holds."""
    return _nonzero(holds)[0].tolist()


class Held:
    """What each of these objects holds: a function its code, a cell its content.

    Python tells its audit hooks of every look at a function's code, which takes a worker 2 ms for all of them. So the
    words of memory in which they are held are read at once, if they are where a first look finds them.
    """

    def __init__(self, objects: list[Any], get: Callable[[Any], Any], size: int) -> None:
        self.objects, self.get = objects, get
        self.held = [get(one) for one in objects]
        word = sizeof(c_size_t)
        self.numbers = np.array([0 if one is None else id(one) for one in self.held], np.uintp).tobytes()
        self.memory, starts = _words_at(list(map(id, objects)), size)
        places = (starts + at for at in range(size // word))
        self.places = next((one for one in places if self._words(one) == self.numbers), None)

    def _words(self, places: np.ndarray) -> bytes:
        return self.memory[places].tobytes()

    def changed(self) -> Any:
        """The object that holds something else by now; None if none does."""
        if self.places is not None and self._words(self.places) == self.numbers:
            return None
        pairs = zip(self.objects, self.held, strict=True)
        return next((one for one, before in pairs if self.get(one) is not before), None)


def _reached(functions: list[FunctionType]) -> tuple[list[FunctionType], list[CellType]]:
    """These functions and those that they wrap or captured; and, of all but the machinery's, the cells."""
    found = {id(one): one for one in functions}
    waiting, cells = list(found.values()), {}
    while waiting:
        one = waiting.pop()
        if (one.__module__ or "").startswith(OURS):
            continue
        captured = {id(cell): cell for cell in _closure(one) or ()}
        cells |= captured
        inner = [_content(cell) for cell in captured.values()] + [vars(one).get("__wrapped__")]
        fresh = {id(two): two for two in inner if _kind(two) is FunctionType and id(two) not in found}
        found |= fresh
        waiting += fresh.values()
    return list(found.values()), list(cells.values())


def _added(space: dict[str, Any], known: frozenset[str]) -> list[str]:
    """Names that are new; a module within, which somebody imported, is none, nor what Python itself keeps there."""
    new = ((key, one) for key, one in space.items() if key not in known and _kind(one) is not ModuleType)
    return [key for key, one in new if key[:2] != "__" or callable(one)]


def _methods(instance: Any) -> set[str]:
    """Names of what its class defines."""
    return set(dir(_kind(instance)))


def _matters(_: str, value: Any) -> bool:
    """Whether a name for this is one that computing depends on; numpy's functions are of types of its own."""
    return isinstance(value, HELD) or (callable(value) and _kind(value).__module__.partition(".")[0] == "numpy")


def _is_own(name: str, _: Any) -> bool:
    """Whether this is a name that a module of Python's gave itself."""
    return not name.startswith("__")


def _wrapped(value: Any) -> FunctionType | None:
    """The function in Python that one which is none stands for: one that remembers, or numpy's of its other types."""
    if _kind(value) is CACHED or _kind(value).__module__ == "numpy":
        inner = getattr(value, "__wrapped__", None)
        return inner if _kind(inner) is FunctionType else None
    return None


def _owners(packages: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    """The modules by name, the classes that are defined in them, Triton's types; and torch's tensors and operations."""
    if "torch" in sys.modules:
        torch = sys.modules["torch"]
        yield from (("torch.Tensor", torch.Tensor), ("torch.OpOverload", torch._ops.OpOverload))
    further = PYTHONS | (COMPUTING | _of_numpy() if PACKAGES[1] in packages else frozenset())
    for name, module in list(sys.modules.items()):
        inside = name.startswith(packages) and not name.startswith(LEFT_ASIDE)
        if not (inside or name in further) or not isinstance(module, ModuleType):
            continue
        yield name, module
        for key, value in list(vars(module).items()):
            if (inside and _kind(value).__name__ == TYPES) or (
                issubclass(_kind(value), type)
                and (
                    f"{name}.{key}" in CLASSES
                    or (inside and value.__module__ == name)
                    or (name == TREES and issubclass(value, ast.AST))
                )
            ):
                yield f"{name}.{key}", value


def _of_numpy() -> frozenset[str]:
    """Names of the modules in which numpy's functions are written."""
    found = (getattr(_wrapped(one) or one, "__globals__", {}) for one in vars(np).values())
    return frozenset(space["__name__"] for space in found if "__name__" in space)
