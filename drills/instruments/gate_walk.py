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
import functools
import operator
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from drills.instruments.gate_text import Text, first, names

MOST_STEPS = 20_000
DEEPEST = 8
LARGEST = 1 << 66
TL = ("import triton.language as tl", "from triton import language as tl")
LIMITS = (0, 1, 2, *(1 << bits for bits in (7, 8, 15, 16, 31, 32, 63, 64)))
"""Between two of these, all integers fit the same types of integers; 0 and 1 fit those of one bit."""

BYTES = (1 << 7, 1 << 8)
"""Limits of those of 8 bits, which count only where there are such types."""

TOOK = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Return, ast.If, ast.For, ast.While, ast.Pass)
UNCLEAR = (ast.Lambda, ast.NamedExpr, ast.Starred, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
COMPUTED = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
MAKE = frozenset(
    ("load", "arange", "program_id", "num_programs", "zeros", "full", "where", "exp", "exp2", "log", "log2", "maximum")
)
"""Triton's words that give a tensor, whatever they are given."""

KEEP = frozenset(("to", "cast", "sum", "max", "min", "abs", "sqrt", "rsqrt", "cdiv", "trans", "zeros_like"))
"""Those that give a tensor for a tensor."""

FILLED = frozenset(("zeros", "full"))
ASIDE = frozenset(("store", "minimum", "debug_barrier", "static_assert", "range", "static_range", "program_id"))
PLAIN = MAKE | KEEP | ASIDE
"""Those to which the sides of what they are given are all the same, as long as they fit each other."""


class Unclear(Exception):
    """Text that is not understood here."""


TYPES = "the types"
"""Stands among sizes for what depends on arguments' types."""


class Note(NamedTuple):
    """Something that counts. how: "side", "is", "if", "within" or "mixed". place: the calls, and where. of: its sizes.

    Of what is mixed, the value is that of all that it depends on, in which TYPES may be. An "if" may be so.
    """

    how: str
    value: Any
    place: tuple[Any, ...]
    of: frozenset[str]


@dataclass(frozen=True)
class Known:
    """A constant of this value. sizes: which parameters' values it is computed of; none if it stands in the text."""

    value: Any
    sizes: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Kind:
    """What is no known constant. sizes: if it is an unknown one, all that it is computed of, and TYPES."""

    sizes: frozenset[str] = frozenset()
    tensor: bool = False


TENSOR, OTHER = Kind(tensor=True), Kind()
"""A tensor for sure; anything."""


SHAPE = Kind(frozenset(["a shape"]))
"""A tensor's extents, as they are: they count where they came from."""


def mixed(*kinds: Any) -> Kind:
    """What is computed of these in a way that is not known."""
    return Kind(frozenset().union(*(mixed(*one).sizes if isinstance(one, tuple) else one.sizes for one in kinds)))


class File:
    """What stands at the top of a file. functions: all. names: what has a meaning there. helpers: jitted ones, by name.

    says_tl: whether tl is Triton's language and nothing else.
    """

    def __init__(self, tree: ast.Module) -> None:
        self.functions = [one for one in tree.body if isinstance(one, ast.FunctionDef)]
        others = [one for one in tree.body if not isinstance(one, (ast.FunctionDef, ast.ClassDef))]
        bound = [name for one in others for node in ast.walk(one) for name in names(node)]
        bound += [one.name for one in tree.body if isinstance(one, (ast.FunctionDef, ast.ClassDef))]
        self.names = frozenset(bound)
        self.sure = not any(isinstance(node, ast.Global) for node in ast.walk(tree))
        self.helpers = {one.name: one for one in self.functions if bound.count(one.name) == 1 and is_jitted(one)}
        self.says_tl = bound.count("tl") == 1 and any(ast.unparse(one) in TL for one in tree.body)


def is_jitted(function: ast.FunctionDef) -> bool:
    """Whether triton.jit is its only decorator."""
    return [ast.unparse(one) for one in function.decorator_list] == ["triton.jit"]


class Body:
    """A function, as far as it is the same for every call. stored: the names that it gives. once: those given once.

    clear: whether it holds no statement that is unknown here. doubtful: names that are known outside it, too.
    """

    def __init__(self, function: ast.FunctionDef, file: File) -> None:
        nodes = [one for one in ast.walk(function) if one is not function]
        args = function.args
        self.statements = function.body
        self.parameters = [one.arg for one in (*args.posonlyargs, *args.args, *args.kwonlyargs)]
        stores = [one.id for one in nodes if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)]
        self.stored = frozenset(stores)
        self.once = frozenset(name for name in stores if stores.count(name) == 1)
        strange = any(
            isinstance(one, UNCLEAR) or (isinstance(one, ast.stmt) and not isinstance(one, TOOK)) for one in nodes
        )
        self.clear = not (strange or args.vararg or args.kwarg)
        self.doubtful = self.stored & file.names


@functools.lru_cache(maxsize=8)
def file_of(text: Text) -> File:
    """The top of this file."""
    return File(text.tree)


@functools.lru_cache(maxsize=128)
def body_of(function: ast.FunctionDef, file: File) -> Body:
    """This function of the file."""
    return Body(function, file)


class Walk:
    """One walk. notes: what counts, in the order of the text. literals: extents of tensors that are the same for all.

    strict: whether a word is used that asks more of tensors' extents than that they fit each other.
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
        self.strict = False
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


class Frame:
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

    # Statements

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

    # Expressions

    def kind(self, node: ast.expr) -> Any:
        """Known, TENSOR, OTHER, or a tuple of these."""
        self.walk.steps += 1
        if self.walk.steps > MOST_STEPS:
            raise Unclear
        look = LOOKS.get(type(node))
        if look is not None:
            return look(self, node)
        parts = []
        for one in ast.iter_child_nodes(node):
            if isinstance(one, ast.expr):
                parts.append(self.kind(one))
                self.at(one)
                self.count(parts[-1])
        return mixed(*parts)

    def literal(self, node: ast.Constant) -> Any:
        """A number in the text is known; what else there may be is the same for all launches."""
        return Known(node.value) if node.value is None or type(node.value) in (int, float, bool) else OTHER

    def name(self, name: str) -> Any:
        """A parameter or a name of the function's own."""
        return self.kinds.get(name, OTHER)

    def combined(self, left: Any, right: Any, operation: ast.AST) -> Any:
        """Of two operands."""
        compute = COMPUTED.get(type(operation))
        if isinstance(left, Known) and isinstance(right, Known) and compute is not None:
            try:
                value = compute(left.value, right.value)
            except (ArithmeticError, TypeError):
                value = None
            if type(value) in (int, bool, float) and abs(value) < LARGEST:
                return Known(value, left.sizes | right.sizes)
        tensor = left is TENSOR or right is TENSOR
        for part, one in enumerate((left, right)):
            if tensor and compute is not None and isinstance(one, Known):
                self.bounds(one, part)
            elif tensor:
                self.constants(one, part)
            else:
                self.count(one, part)
        whole = mixed(left, right)
        return TENSOR if tensor else Kind(whole.sizes | self.walk.values.keys()) if whole.sizes & SHAPE.sizes else whole

    def operated(self, node: ast.BinOp) -> Any:
        """left + right."""
        left, right = self.kind(node.left), self.kind(node.right)
        self.at(node)
        return self.combined(left, right, node.op)

    def compared(self, node: ast.Compare) -> Any:
        """left < right, or left is None."""
        if len(node.ops) != 1:
            raise Unclear
        left, right = self.kind(node.left), self.kind(node.comparators[0])
        self.at(node)
        if not isinstance(node.ops[0], (ast.Is, ast.IsNot)):
            return self.combined(left, right, node.ops[0])
        if isinstance(left, Known) and isinstance(right, Known) and right.value is None:
            return Known((left.value is None) is isinstance(node.ops[0], ast.Is), left.sizes)
        self.count(left)
        self.count(right, 1)
        return mixed(left, right)

    def joined(self, node: ast.BoolOp) -> Any:
        """left and right."""
        parts = [self.kind(one) for one in node.values]
        if all(isinstance(one, Known) for one in parts):
            every = isinstance(node.op, ast.And)
            value = next((one.value for one in parts if bool(one.value) is not every), parts[-1].value)
            return Known(value, mixed(*parts).sizes)
        for one, kind in zip(node.values, parts, strict=True):
            self.at(one)
            self.count(kind)
        return mixed(*parts)

    def turned(self, node: ast.UnaryOp) -> Any:
        """-operand."""
        kind = self.kind(node.operand)
        if isinstance(kind, Known) and type(kind.value) in (int, float, bool):
            if isinstance(node.op, ast.USub):
                return Known(-kind.value, kind.sizes)
            if isinstance(node.op, ast.Not):
                return Known(not kind.value, kind.sizes)
        self.count(kind)
        return TENSOR if kind is TENSOR else mixed(kind)

    def either(self, node: ast.IfExp) -> Any:
        """body if test else orelse."""
        test = self.kind(node.test)
        self.at(node)
        if isinstance(test, Known):
            return self.kind(node.body if self.decide(test) else node.orelse)
        self.unsure(test)
        parts = self.kind(node.body), self.kind(node.orelse)
        for part, one in enumerate(parts, 1):
            self.at(node)
            self.count(one, part)
        return TENSOR if test is TENSOR else mixed(test, *parts)

    def several(self, node: ast.Tuple) -> Any:
        """one, another."""
        return tuple([self.kind(one) for one in node.elts])

    def indexed(self, node: ast.Subscript) -> Any:
        """whole[slice]."""
        whole = self.kind(node.value)
        inner = self.kind(node.slice)
        self.at(node)
        self.constants(whole)
        self.constants(inner, 1)
        return TENSOR if whole is TENSOR else mixed(whole, inner)

    def of(self, node: ast.Attribute) -> Any:
        """value.attr."""
        kind = self.kind(node.value)
        self.at(node)
        self.constants(kind)
        if kind is TENSOR:
            return SHAPE if node.attr == "shape" else Kind(frozenset([TYPES]))
        return mixed(kind, Kind(frozenset([TYPES]))) if node.attr in ("dtype", "type") else mixed(kind)

    def called(self, node: ast.Call) -> Any:
        """A call of a helper, of a word of Triton's, or of what is not known."""
        helper = self.walk.file.helpers.get(node.func.id) if isinstance(node.func, ast.Name) else None
        if helper is not None and helper.name not in self.kinds:
            return self.helped(helper, node)
        word, whole = self.word(node.func), OTHER
        if not word and isinstance(node.func, ast.Attribute):
            whole = self.kind(node.func.value)
            self.at(node.func)
            self.constants(whole)
        method = node.func.attr if whole is TENSOR else ""
        if word not in PLAIN and method not in PLAIN and self.builtin(node.func) != "float":
            self.walk.strict = True
        arguments = [self.kind(one) for one in node.args]
        from_zero = word == "arange" and len(arguments) == 2 and arguments[0] == Known(0)
        shape = 1 if from_zero else 0 if word in FILLED and arguments else None
        for number, one in enumerate(arguments):
            self.at(node.args[number])
            if number == shape:
                self.sides(node.args[number], one)
            elif word in PLAIN and word != "static_assert" or method in PLAIN:
                self.constants(one)
            else:
                self.count(one)
        self.keywords(node)
        if any(one.arg == "return_indices" for one in node.keywords):
            self.walk.strict = True
            return OTHER
        kept = word in KEEP and arguments and arguments[0] is TENSOR
        if word in MAKE or kept or method in KEEP:
            return TENSOR
        return OTHER if whole is TENSOR or (word and word not in ("cdiv", "constexpr")) else mixed(whole, *arguments)

    def helped(self, helper: ast.FunctionDef, node: ast.Call) -> Any:
        """A call of a function of the file's."""
        known = body_of(helper, self.walk.file).parameters
        if len(node.args) > len(known) or any(one.arg not in known for one in node.keywords):
            raise Unclear
        given = dict.fromkeys(known, OTHER)
        given |= {name: self.kind(one) for name, one in zip(known, node.args, strict=False)}
        given |= {one.arg: self.kind(one.value) for one in node.keywords}
        self.at(node)
        for name, kind in given.items():
            if isinstance(kind, tuple):
                self.walk.strict = True
                self.constants(kind, name)
                given[name] = mixed(kind)
        return self.walk.function(helper, given)

    def keywords(self, call: ast.Call) -> None:
        """What a call is given by name."""
        for one in call.keywords:
            if one.arg is None:
                raise Unclear
            kind = self.kind(one.value)
            self.at(one.value)
            self.constants(kind)

    def word(self, function: ast.expr) -> str:
        """Which of the language's words this is; "" for none."""
        if not isinstance(function, ast.Attribute) or not isinstance(function.value, ast.Name):
            return ""
        return function.attr if function.value.id == "tl" and self.walk.says_tl and "tl" not in self.kinds else ""

    def builtin(self, function: ast.expr) -> str:
        """Which of Python's own words this may be; "" for none."""
        name = function.id if isinstance(function, ast.Name) else ""
        return "" if name in self.kinds or name in self.walk.file.names else name

    # What counts

    def at(self, node: ast.expr | ast.stmt) -> None:
        """Where we are: to be said before something counts."""
        self.walk.place = (node.lineno, node.col_offset, node.end_lineno, node.end_col_offset)

    def constants(self, kind: Any, part: Any = 0) -> None:
        """Known values themselves. part: which of several that stand here."""
        if isinstance(kind, tuple):
            for number, one in enumerate(kind):
                self.constants(one, (part, number))
        elif isinstance(kind, Known) and kind.sizes:
            self.walk.note("is", kind, kind.value, part)

    def count(self, kind: Any, part: Any = 0) -> None:
        """The value itself, known or not."""
        self.constants(kind, part)
        made = mixed(kind)
        if not isinstance(kind, Known) and made.sizes - SHAPE.sizes:
            self.walk.note("mixed", made, self.walk.those(made.sizes), part)

    def unsure(self, test: Any) -> None:
        """Which way is taken is not known here, but what decides it."""
        self.count(test)
        if mixed(test).sizes:
            self.walk.note("if", mixed(test), self.walk.those(mixed(test).sizes))

    def sides(self, node: ast.expr, kind: Any) -> None:
        """The extents of a tensor. A name from outside the function may be any."""
        if any(isinstance(one, ast.Name) and one.id not in self.kinds for one in ast.walk(node)):
            self.walk.strict = True
        for part, one in enumerate(kind if isinstance(kind, tuple) else (kind,)):
            if not isinstance(one, Known) or type(one.value) is not int:
                self.count(one)
                self.walk.blurred |= mixed(one).sizes - SHAPE.sizes
            elif one.sizes:
                self.walk.note("side", one, one.value, part)
            else:
                self.walk.literals.add(one.value)

    def decide(self, test: Known) -> bool:
        """Which way is taken."""
        if test.sizes:
            self.walk.note("if", test, (bool(test.value), type(test.value).__name__))
        return bool(test.value)

    def bounds(self, kind: Known, part: int = 0) -> None:
        """Between which limits it lies."""
        if type(kind.value) is not int:
            self.count(kind, part)
        elif kind.sizes:
            self.walk.note(
                "within", kind, (kind.value < 0, sum(abs(kind.value) >= one for one in self.walk.limits)), part
            )


LOOKS = {
    ast.Constant: Frame.literal,
    ast.Name: lambda frame, node: frame.name(node.id),
    ast.BinOp: Frame.operated,
    ast.Compare: Frame.compared,
    ast.BoolOp: Frame.joined,
    ast.UnaryOp: Frame.turned,
    ast.IfExp: Frame.either,
    ast.Call: Frame.called,
    ast.Tuple: Frame.several,
    ast.List: Frame.several,
    ast.Subscript: Frame.indexed,
    ast.Attribute: Frame.of,
}
