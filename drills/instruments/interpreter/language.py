"""Triton's language while a kernel runs: every builtin goes to our semantic, and is put back when the launch ends.

The table of what to replace is made once; a launch only swaps attributes in and out.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import triton.language as tl
from triton.runtime import interpreter as plain

from drills.instruments.identity import identity
from drills.instruments.interpreter.arithmetic import wide
from drills.instruments.interpreter.device import replacements
from drills.instruments.interpreter.elementwise import mapped
from drills.instruments.interpreter.meaning import Meaning, Semantic
from drills.instruments.interpreter.now import NOW
from drills.instruments.interpreter.number import Constants, folded
from drills.instruments.interpreter.operators import Operators
from drills.instruments.interpreter.quick import Types, unwrapping
from drills.instruments.interpreter.reduction import Ambiguous, reduce, scan

OPERATORS = [
    f"__{side}{name}__"
    for side in ("", "r")
    for name in ("add", "sub", "mul", "truediv", "floordiv", "gt", "ge", "lt", "le")
] + ["__eq__", "__ne__", "__mod__", "__and__", "__or__", "__xor__", "__rshift__", "__lshift__"]


class Language:
    """The replacements: (object, name, value), and whether they are in place."""

    def __init__(self, semantic: Semantic, meaning: Meaning) -> None:
        self.table: dict[tuple[int, str], tuple[Any, str, Any]] = {}
        self.ours: dict[int, Any] = {}
        self.active = False
        self.scalar_truth = False
        self.semantic = semantic
        for module in (tl, tl.core):
            self._builtins(module)
            plain._patch_lang_core(module, self)  # of either module it patches both
        for module in (tl, tl.core):
            for name, value in (
                ("range", meaning.range),
                ("reduce", self._reduce),
                ("associative_scan", self._scan),
                ("map_elementwise", self._mapped),
            ):
                self.ours[identity(getattr(module, name))] = value
                self.set_attr(module, name, value)
        for owner in (tl.tensor, tl.math, tl.core.tensor_descriptor_base):
            self._builtins(owner)
        plain._patch_lang_tensor(tl.tensor, self)
        replaced = Operators(semantic).replacements(lambda name: self.table[identity(tl.tensor), name][2])
        for name, value in replaced.items():
            self.set_attr(tl.tensor, name, value)
        self.types = Types()
        self.set_attr(tl.tensor, "__init__", self.types.tensor_constructor(tl.tensor.__init__))
        self.set_attr(tl.block_type, "__init__", self.types.block_constructor(tl.block_type.__init__))
        self.set_attr(tl.block_type, "to_ir", lambda block, builder: block)
        self.set_attr(tl.core, "_unwrap_if_constexpr", unwrapping(tl.core._unwrap_if_constexpr))
        for module, name, own, ours in replacements(semantic):
            self.ours[identity(own)] = ours
            self.set_attr(module, name, ours)
        for name in OPERATORS:
            self.set_attr(tl.constexpr, name, yielding(getattr(tl.constexpr, name)))
        for name, value in (
            ("__bool__", lambda tensor: self.truth(tensor)),
            ("__repr__", lambda tensor: repr(wide(tensor.handle))),
            ("__str__", lambda tensor: str(wide(tensor.handle))),
            ("reduce", lambda tensor, *args, **named: self._reduce(tensor, *args, **named)),
            ("associative_scan", lambda tensor, *args, **named: self._scan(tensor, *args, **named)),
        ):
            self.set_attr(tl.tensor, name, value)
        owners = {identity(owner): owner for owner, _, _ in self.table.values()}
        self.by_owner = [
            (owner, {name: value for one, name, value in self.table.values() if one is owner})
            for owner in owners.values()
        ]

    def set_attr(self, owner: Any, name: str, value: Any) -> None:
        """Note a replacement; the interpreter's own patchers call this too."""
        self.table[identity(owner), name] = (owner, name, value)

    def names(self, seen: dict[str, Any]) -> dict[str, Any]:
        """The names that a kernel sees: constants as plain numbers, builtins that were imported by name as ours."""
        return {name: self._name(value) for name, value in seen.items()}

    def _name(self, value: Any) -> Any:
        if isinstance(value, tl.constexpr):
            return constant(tl.core._unwrap_if_constexpr(value))
        return self.ours.get(identity(value), value)

    def truth(self, tensor: Any) -> bool:
        """A tensor as a condition: one element as it is; a block as the interpreter takes it, as true."""
        if NOW.present:
            return True
        data = tensor.handle.data
        if data.size == 1:
            return bool(wide(tensor.handle).item())
        if self.scalar_truth:
            raise Ambiguous
        return True

    def spoken(self) -> Spoken:
        """Within, Triton's functions work on the interpreter. May be nested."""
        return Spoken(self)

    def begin(self) -> list[tuple[Any, dict, dict]]:
        """Have them work on it; what `end` needs."""
        before = []
        for owner, ours in self.by_owner:
            held = vars(owner)
            before.append((owner, {name: held[name] for name in ours if name in held}, ours))
        self.active = True
        for owner, ours in self.by_owner:
            give(owner, ours)
        return before

    def end(self, before: list[tuple[Any, dict, dict]]) -> None:
        """As they were."""
        for owner, theirs, ours in before:
            give(owner, theirs)
            for name in ours.keys() - theirs.keys():
                delattr(owner, name)
        self.active = False
        self.types.clear()

    def _builtins(self, owner: Any) -> None:
        for name in dir(owner):
            member = getattr(owner, name)
            if tl.core.is_builtin(member) or takes_semantic(member):
                if identity(member) not in self.ours:  # under two names it is one function, as to the compiler
                    self.ours[identity(member)] = self._spoken(member)
                self.set_attr(owner, name, self.ours[identity(member)])

    def _spoken(self, member: Any) -> Any:
        semantic = self.semantic
        within = getattr(member, "__wrapped__", member)  # what surrounds it asks for a semantic

        def builtin(*args: Any, **named: Any) -> Any:
            named["_semantic"] = semantic
            return within(*args, **named)

        builtin.__name__ = getattr(member, "__name__", "builtin")
        builtin.__triton_plain__ = member
        return builtin

    def _reduce(self, input: Any, axis: Any = None, combine_fn: Any = None, keep_dims: Any = False, **_: Any) -> Any:
        return reduce(self, input, axis, combine_fn, keep_dims)

    def _scan(self, input: Any, axis: Any, combine_fn: Any, reverse: Any = False, **_: Any) -> Any:
        return scan(self, input, axis, combine_fn, reverse)

    def _mapped(self, scalar_fn: Any, *args: Any, pack: Any = 1, **_: Any) -> Any:
        return mapped(self.semantic, scalar_fn, args, tl.core._unwrap_if_constexpr(pack))


class Spoken:
    """A time in which Triton's functions work on the interpreter."""

    def __init__(self, language: Language) -> None:
        self.language = language
        self.before: list[tuple[Any, dict, dict]] | None = None

    def __enter__(self) -> None:
        if not self.language.active:
            self.before = self.language.begin()

    def __exit__(self, *_: Any) -> None:
        if self.before is not None:
            self.language.end(self.before)


def takes_semantic(member: Any) -> bool:
    """A method such as x.exp(): Triton makes one of what is no builtin yet, and the compiler calls it as if it were."""
    signatures = (getattr(member, name, None) for name in ("signature", "__signature__"))  # Triton 3.7's name, 3.6's
    return any("_semantic" in getattr(one, "parameters", ()) for one in signatures)


def give(owner: Any, attributes: dict[str, Any]) -> None:
    """Set them all, a module's at once."""
    if type(owner) is ModuleType:
        vars(owner).update(attributes)
        return
    for name, value in attributes.items():
        setattr(owner, name, value)


def of_constants(function: Any) -> Any:
    """A constexpr function, which is Python: the compiler gives it no tensor that it could compute with.

    Nor a function, which is another one here: it could tell where it is by that.
    """

    def called(*args: Any, **named: Any) -> Any:
        args, named = tuple(map(folded, args)), {name: folded(one) for name, one in named.items()}
        if any(isinstance(one, tl.tensor) for one in (*args, *named.values())):
            raise TypeError("a constexpr function is called with a tensor: it takes constants only")
        strange = next((one for one in (*args, *named.values()) if not is_constant(one)), None)
        if strange is not None:
            raise TypeError(f"a constexpr function is called with a {type(strange).__name__}: it takes constants only")
        return constant(function(*args, **named))

    return called


def constant(value: Any) -> Any:
    """A constant as a kernel has it."""
    return Constants(value) if type(value) is tuple else value


def of_values(function: Any) -> Any:
    """What Triton does around such a function: it gets what constants stand for."""

    def called(*args: Any, **named: Any) -> Any:
        plainly = {name: tl.core._unwrap_if_constexpr(one) for name, one in named.items()}
        return function(*map(tl.core._unwrap_if_constexpr, args), **plainly)

    return called


def is_constant(value: Any) -> bool:
    """Whether this is a number, text, a type, or several of these."""
    value = tl.core._unwrap_if_constexpr(value)
    if isinstance(value, (tuple, list, tl.tuple)):
        return all(map(is_constant, value))
    return value is None or isinstance(value, (bool, int, float, str, tl.dtype))


def yielding(method: Any) -> Any:
    """An operator of tl.constexpr that leaves a tensor on its right to the tensor's own operator."""

    def operator(self: Any, other: Any) -> Any:
        return NotImplemented if isinstance(other, tl.tensor) else method(self, other)

    return operator
