"""A walk through a kernel's text with the values of one launch: which of them Triton's front end can decide by.

The front end walks the same text, knowing the arguments' types and the constants' values. Where a constant meets a
tensor in arithmetic or in a comparison, it is made a tensor at once, and then only its type counts, and between which
limits of integer types it lies. Elsewhere the value counts. This walk computes what is computed of constants alone, and
notes what counts:

    r = tl.arange(0, BLOCK_R)               # "side": BLOCK_R, the extent of a tensor
    PARTS: tl.constexpr = D // WIDTH
    if PARTS > 1:                           # "if": whether it is; what stands there is walked only if it is
        row = r // PARTS                    # "within": PARTS is an integer from 2 to 2^15 - 1
    tl.static_assert(D < 512)               # "is": True
    B: tl.constexpr = share_of(D)           # what this is, is not known here; it is "mixed" of D,
    if x.dtype.element_ty == tl.float16:    # and this of the types: what it is mixed of counts where it decides

A value that is used in a way that is not understood is noted as it is. Text that is not understood is `Unclear`.
Never runs what it reads. Imports neither torch nor triton.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Any

from drills.instruments.gate_bodies import Body, body_of, file_of
from drills.instruments.gate_expressions import Expressions
from drills.instruments.gate_kinds import OTHER, TENSOR, TYPES, Kind, Known, Note, Unclear, mixed
from drills.instruments.gate_text import Text, first

DEEPEST = 8
LIMITS = (0, 1, 2, *(1 << bits for bits in (7, 8, 15, 16, 31, 32, 63, 64)))
"""Between two of these, all integers fit the same types of integers; 0 and 1 fit those of one bit."""

BYTES = (1 << 7, 1 << 8)
"""Limits of those of 8 bits, which count only where there are such types."""


class Walk:
    """One walk. notes: what counts, in the order of the text. literals: extents of tensors that are the same for all.

    strict: whether a word is used that asks more of tensors' extents than that they fit each other. multiplies: whether
    one is that asks that they be no smaller than 32 at most.
    blurred: what the extents that are not known here depend on. values: the parameters that are constants, and TYPES.
    """

    def __init__(self, text: Text, line: int, given: dict[str, Any], types: Any, trusted: bool, small: bool) -> None:
        """line: the kernel's. given: what its parameters are. types: their types. trusted: whether tl is what the text
        says. small: whether there are integers of 8 bits.
        """
        self.file = file_of(text)
        kernel = next((one for one in self.file.functions if first(one) <= line <= one.lineno), None)
        if kernel is None or not self.file.sure:
            raise Unclear
        self.notes: list[Note] = []
        self.strict = self.multiplies = False
        self.steps = 0
        self.calls: tuple[Any, ...] = ()
        self.place: tuple[Any, ...] = ()
        self.literals: set[int] = set()
        self.blurred: frozenset[str] = frozenset()
        self.values = {TYPES: types, **{name: one.value for name, one in given.items() if isinstance(one, Known)}}
        self.limits = [one for one in LIMITS if small or one not in BYTES]
        self.says_tl = self.file.says_tl and trusted
        self.function(kernel, given)

    def function(self, function: ast.FunctionDef, given: dict[str, Any]) -> Any:
        """Walk a function with these arguments; what it returns."""
        body, before = body_of(function, self.file), self.calls
        if len(before) >= DEEPEST or not body.clear:
            raise Unclear
        self.calls = (*before, self.place)
        kind = Frame(self, body, given).settle()
        self.calls = before
        return kind

    def those(self, sizes: Iterable[str]) -> tuple[Any, ...]:
        """These, and what they are."""
        return tuple((name, self.values[name]) for name in sorted(sizes) if name in self.values)

    def note(self, how: str, known: Known | Kind, value: Any, part: Any = 0) -> None:
        """Something that counts of a constant. part: which of several at this place."""
        self.notes.append(Note(how, value, (*self.calls, self.place, part), known.sizes))


class Frame(Expressions):
    """One call of a function. kinds: what its names are. anything: those of its own that may be no tensors."""

    def __init__(self, walk: Walk, body: Body, given: dict[str, Any]) -> None:
        self.walk, self.code, self.given = walk, body, given
        self.anything = dict.fromkeys(body.doubtful, OTHER)
        self.nested = 0

    def settle(self) -> Any:
        """Walk the body, taking its names for tensors until they are found not to be; what it returns."""
        notes = self.walk.notes
        begun = len(notes)
        changed = [name for name in sorted(self.code.stored & set(self.given)) if self.given[name] is not TENSOR]
        self.anything |= {name: mixed(self.given[name]) for name in changed}
        while True:
            del notes[begun:]
            known = dict(self.anything)
            self.returned: list[Any] = []
            self.kinds = {
                **self.given,
                **dict.fromkeys(self.code.stored, TENSOR),
                **self.anything,
            }
            for name in changed:
                self.count(self.given[name])
            self.body(self.code.statements)
            if self.anything == known:
                return self.result()

    def result(self) -> Any:
        """What is returned, without constants: they counted."""
        if len(self.returned) == 1 and isinstance(self.returned[0], tuple):
            return tuple(TENSOR if one is TENSOR else mixed(one) for one in self.returned[0])
        return TENSOR if self.returned and all(one is TENSOR for one in self.returned) else mixed(*self.returned)

    def body(self, statements: Iterable[ast.stmt]) -> None:
        """Some statements."""
        for one in statements:
            self.statement(one)

    def inside(self, statements: Iterable[ast.stmt]) -> None:
        """Those of a loop or a branch."""
        self.nested += 1
        self.body(statements)
        self.nested -= 1

    def statement(self, node: ast.stmt) -> None:
        """One statement."""
        self.at(node)
        if isinstance(node, ast.Assign):
            if len(node.targets) != 1:
                raise Unclear
            self.assign(node.targets[0], self.kind(node.value))
        elif isinstance(node, ast.AnnAssign):
            self.annotated(node)
        elif isinstance(node, ast.AugAssign):
            if not isinstance(node.target, ast.Name):
                raise Unclear
            self.assign(node.target, self.combined(self.name(node.target.id), self.kind(node.value), node.op))
        elif isinstance(node, ast.Expr):
            kind = self.kind(node.value)
            self.at(node)
            self.count(kind)
        elif isinstance(node, ast.Return):
            kind = self.kind(node.value) if node.value else OTHER
            self.at(node)
            self.count(kind)
            self.returned.append(kind)
        elif isinstance(node, ast.If):
            self.branch(node)
        elif isinstance(node, ast.While):
            kind = self.kind(node.test)
            self.at(node)
            self.unsure(kind)
            self.inside([*node.body, *node.orelse])
        elif isinstance(node, ast.For):
            self.loop(node)

    def assign(self, target: ast.expr, kind: Any) -> None:
        """Triton makes a tensor of a number that is given a name."""
        self.at(target)
        if isinstance(target, ast.Name):
            if isinstance(kind, Known) and kind.value is not None:
                self.bounds(kind)
            elif kind is not TENSOR:
                self.constants(kind)
                self.demote(target.id, kind)
        elif isinstance(target, ast.Tuple):
            whole = [mixed(kind)] * len(target.elts)
            parts = kind if isinstance(kind, tuple) and len(kind) == len(target.elts) else whole
            if parts is not kind:
                self.constants(kind)
            for one, part in zip(target.elts, parts, strict=True):
                self.assign(one, part)
        else:
            raise Unclear

    def annotated(self, node: ast.AnnAssign) -> None:
        """`NAME: tl.constexpr = …` keeps a constant."""
        if node.value is None or not isinstance(node.target, ast.Name):
            raise Unclear
        kind, name = self.kind(node.value), node.target.id
        self.at(node)
        if not isinstance(kind, Known) or self.nested or name not in self.code.once or name in self.given:
            self.constants(kind)
            self.demote(name, kind)
        elif "constexpr" in ast.unparse(node.annotation):
            self.kinds[name] = kind
        else:
            self.assign(node.target, kind)

    def demote(self, name: str, kind: Any) -> None:
        """A name of this function's that may be no tensor, but something like this."""
        self.anything[name] = self.kinds[name] = mixed(kind, self.anything.get(name, OTHER))

    def branch(self, node: ast.If) -> None:
        """Of a test of constants, only the branch that is taken is looked at."""
        test = self.kind(node.test)
        self.at(node)
        if isinstance(test, Known):
            self.inside(node.body if self.decide(test) else node.orelse)
            return
        self.unsure(test)
        self.inside(node.body)
        self.inside(node.orelse)

    def loop(self, node: ast.For) -> None:
        """Bounds of a loop are made tensors, unless it is a static one."""
        call = node.iter
        if not isinstance(call, ast.Call) or not isinstance(node.target, ast.Name) or node.orelse:
            raise Unclear
        counted = self.word(call.func) == "range" or self.builtin(call.func) == "range"
        given = [self.kind(one) for one in call.args]
        for one, kind in zip(call.args, given, strict=True):
            self.at(one)
            if counted and isinstance(kind, Known):
                self.bounds(kind)
            else:
                self.count(kind)
        self.keywords(call)
        if not counted:
            self.demote(node.target.id, mixed(*given))
        self.inside(node.body)
