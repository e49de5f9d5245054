"""What an expression of a kernel's text is, and what in it counts: the half of `gate_walk` that looks at them."""

from __future__ import annotations

import ast
import operator
from typing import TYPE_CHECKING, Any

from drills.instruments.gate_bodies import body_of, mentioned
from drills.instruments.gate_kinds import OTHER, RANGE, SHAPE, TENSOR, TYPES, Kind, Known, Unclear, mixed

if TYPE_CHECKING:
    from drills.instruments.gate_walk import Walk

MOST_STEPS = 20_000
LARGEST = 1 << 66
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

KEEP = frozenset(("to", "cast", "sum", "max", "min", "abs", "sqrt", "rsqrt", "cdiv", "trans", "zeros_like", "dot"))
"""Those that give a tensor for a tensor."""

FILLED = frozenset(("zeros", "full"))
ASIDE = frozenset(("store", "minimum", "debug_barrier", "static_assert", "range", "static_range", "program_id"))
PLAIN = MAKE | KEEP | ASIDE
"""Those to which the sides of what they are given are all the same, as long as they fit each other."""


class Expressions:
    """What is looked at in one call of a function. kinds: what its names are."""

    walk: Walk
    kinds: dict[str, Any]

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
        self.walk.multiplies |= word == "dot"
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
        if any(name not in self.kinds for name in mentioned(node)):
            self.walk.strict = True
        for part, one in enumerate(kind) if isinstance(kind, tuple) else ((RANGE, kind),):
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
    ast.Constant: Expressions.literal,
    ast.Name: lambda frame, node: frame.name(node.id),
    ast.BinOp: Expressions.operated,
    ast.Compare: Expressions.compared,
    ast.BoolOp: Expressions.joined,
    ast.UnaryOp: Expressions.turned,
    ast.IfExp: Expressions.either,
    ast.Call: Expressions.called,
    ast.Tuple: Expressions.several,
    ast.List: Expressions.several,
    ast.Subscript: Expressions.indexed,
    ast.Attribute: Expressions.of,
}
