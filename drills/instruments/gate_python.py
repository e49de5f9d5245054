"""Python that a kernel would run while it is compiled: what of it is allowed, and the sentence for what is not.

A function under `@triton.constexpr_function` is Python. It runs in the interpreter, and once more where the kernel is
compiled; if it found out where it is, it could make of a kernel what it is not. So it may only compute with what it is
given: numbers, comparisons, branches, loops, a few functions. The text says whether it does; that the text is what runs
is told by `meant`, with the digest of the function's code. Whatever else is Python in a kernel's names is refused once
the kernel compiles: where Triton refuses it itself, its own words are better.

Never runs what it reads. Imports neither torch nor triton.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from drills.instruments.gate_spec import Spec
from drills.instruments.gate_text import Text, first
from drills.instruments.meant import AT_LINE, WORD

PYTHON_AT = re.compile(r"(.+), line (\d+), Python ([0-9a-f]{16})")
"""How `meant` tells such a function."""

ANY_PYTHON = re.compile(r"\ba Python (\w+)")
STATEMENTS = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return, ast.If, ast.For, ast.While, ast.Pass, ast.Break)
STATEMENTS += (ast.Continue, ast.Assert)
EXPRESSIONS = (ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Constant, ast.Tuple, ast.List)
EXPRESSIONS += (ast.Subscript, ast.Slice, ast.Name)
PARTS = (ast.operator, ast.unaryop, ast.boolop, ast.cmpop, ast.expr_context)
FUNCTIONS = frozenset(("min", "max", "abs", "len", "range", "int", "float", "bool", "round", "pow", "divmod"))
WORDS = frozenset(("cdiv", "next_power_of_2", "constexpr"))
"""Triton's own that may be called."""

TYPES = re.compile(r"(u?int|b?float)\d+\w*")
"""And its types, which are the same everywhere: its functions are others in the interpreter."""

MATHS = "math."
OF_VALUES = frozenset(("value", "primitive_bitwidth", "itemsize"))
"""What may be asked of an argument; and `bit_length()`."""

ONLY = "such a function may only compute with numbers: arithmetic, comparisons, if, loops, min, max, abs, math"
KERNELS_ONLY = "a kernel may use numbers, tl.constexpr, Triton's words and @triton.jit functions"


def unfit(text: Text, spec: Spec) -> dict[str, Any] | None:
    """The gate's answer to a kernel whose functions for constants do more than to compute; None if none does."""
    for name, said in spec.names.items():
        if at := PYTHON_AT.fullmatch(said):
            function = next((one for one in text.functions if one.name == at[1] and first(one) == int(at[2])), None)
            if function is None or at[3] not in text.codes.get((at[1], int(at[2])), ()):
                return _refused(f"{name.partition(' in ')[0]} is not what the file says of it: {ONLY}", None)
            if strange := next(_strange(function, spec.names), None):
                return _refused(*strange)
    return None


def foreign(text: Text, spec: Spec) -> dict[str, Any] | None:
    """The gate's answer to a kernel that compiles, if it names Python; None if it names none."""
    for name, said in spec.names.items():
        kinds = ANY_PYTHON.findall(said) if said.startswith(("a Python ", "(")) else []
        found = next((kind for kind in kinds if kind != "list"), "")
        path, _, place = name.partition(" in ")
        if found and not (found == "type" and _is_plain_tuple(text, path)):
            line = next(_lines(text, path, place.partition(" ")[0]), None)
            return _refused(f"{path} is a Python {found}: {KERNELS_ONLY}", line)
    return None


def _refused(error: str, line: int | None) -> dict[str, Any]:
    return {"ok": False, "kind": "compile_error", "error": error, "line": line, "node": ""}


def _strange(function: ast.FunctionDef, told: dict[str, str]) -> Iterator[tuple[str, int]]:
    """(sentence, line) of what a function for constants does that it may not. told: what names stand for."""
    parted = [(*name.partition(" in "), said) for name, said in told.items()]
    where = {path: said for path, _, place, said in parted if place.partition(" ")[0] == function.name}
    for path, said in where.items():
        known = said.startswith((MATHS, "module math")) or PYTHON_AT.fullmatch(said)
        if not known and (said.startswith((WORD, "module ")) or AT_LINE.fullmatch(said) or ANY_PYTHON.search(said)):
            line = next(_at(function, path), function.lineno)
            yield f"{function.name} uses {path}, {said}: {ONLY}", line
    arguments = function.args
    if arguments.vararg or arguments.kwarg:
        yield f"{function.name} takes any number of arguments: {ONLY}", function.lineno
    own = {one.arg for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
    own |= {one.id for one in ast.walk(function) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
    for statement in function.body:
        yield from _Looks(function.name, own, where).at(statement)


class _Looks:
    """One function for constants, looked at. own: its arguments and names. told: what its other names stand for."""

    def __init__(self, name: str, own: set[str], told: dict[str, str]) -> None:
        self.name, self.own, self.told = name, own, told

    def at(self, node: ast.AST) -> Iterator[tuple[str, int]]:
        """What is strange in a statement or an expression."""
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            return
        if isinstance(node, ast.Call):
            yield from self.call(node)
        elif isinstance(node, ast.Attribute):
            yield from self.attribute(node)
        elif isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Load) and node.id not in self.own | self.told.keys():
                yield self.says("uses", node)
        elif isinstance(node, ast.Compare) and any(map(_is_identity, node.ops)) and not _with_none(node):
            yield f"{self.name} asks whether two things are one object: {ONLY}", node.lineno
        elif isinstance(node, ast.BinOp) and _is_text(node.left):
            yield self.says("formats", node)
        elif isinstance(node, (ast.Assign, ast.AugAssign, ast.For)) and not all(map(_is_name, _targets(node))):
            yield self.says("changes", _targets(node)[0])
        elif isinstance(node, (*STATEMENTS, *EXPRESSIONS)):
            for one in ast.iter_child_nodes(node):
                if not (isinstance(node, ast.AnnAssign) and one is node.annotation):
                    yield from self.at(one)
        elif not isinstance(node, PARTS):
            yield self.says("does", node)

    def call(self, node: ast.Call) -> Iterator[tuple[str, int]]:
        """What may be called, and with what."""
        function = node.func
        if isinstance(function, ast.Name):
            known = PYTHON_AT.fullmatch(self.told.get(function.id, "")) or self.told.get(function.id, "").startswith(
                MATHS
            )
            free = function.id not in self.told and function.id not in self.own
            if not known and not (free and function.id in FUNCTIONS | WORDS):
                yield self.says("calls", function)
        elif isinstance(function, ast.Attribute) and function.attr == "bit_length" and not node.args:
            yield from self.at(function.value)
        else:
            yield from self.attribute(function, called=True)
        for one in (*node.args, *(word.value for word in node.keywords)):
            yield from self.at(one)

    def attribute(self, node: ast.expr, called: bool = False) -> Iterator[tuple[str, int]]:
        """Of a module: math's, and some of Triton's words; of a value: few."""
        root = node.value if isinstance(node, ast.Attribute) else None
        if isinstance(root, ast.Name) and root.id not in self.own:
            said = self.told.get(f"{root.id}.{node.attr}", "")
            named = node.attr in WORDS or (TYPES.fullmatch(node.attr) and not called)
            word = not said and root.id not in FUNCTIONS and named
            constant = bool(said) and not called and not ANY_PYTHON.search(said)
            if not (word or constant or said.startswith(MATHS)):
                yield self.says("calls" if called else "uses", node)
        elif root is None or called or node.attr not in OF_VALUES:
            yield self.says("calls" if called else "uses", node)
        else:
            yield from self.at(root)

    def says(self, does: str, node: ast.AST) -> tuple[str, int]:
        """The sentence for something that is not allowed."""
        return f"{self.name} {does} {ast.unparse(node).splitlines()[0][:40]}: {ONLY}", node.lineno


def _targets(node: ast.AST) -> list[ast.expr]:
    """What an assignment or a loop gives a value to."""
    found = node.targets if isinstance(node, ast.Assign) else [node.target]
    return [two for one in found for two in (one.elts if isinstance(one, ast.Tuple) else [one])]


def _is_name(node: ast.AST) -> bool:
    return isinstance(node, ast.Name)


def _is_identity(operation: ast.cmpop) -> bool:
    return isinstance(operation, (ast.Is, ast.IsNot))


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _with_none(node: ast.Compare) -> bool:
    return all(isinstance(one, ast.Constant) and one.value is None for one in node.comparators)


def _is_plain_tuple(text: Text, name: str) -> bool:
    """Whether a class of this name is a NamedTuple without functions of its own, everywhere in the file."""
    classes = [one for one in ast.walk(text.tree) if isinstance(one, ast.ClassDef) and one.name == name]
    fields = (ast.AnnAssign, ast.Expr, ast.Pass)
    return bool(classes) and all(
        [ast.unparse(base) for base in one.bases] in (["NamedTuple"], ["typing.NamedTuple"])
        and not one.decorator_list
        and not one.keywords
        and all(isinstance(part, fields) for part in one.body)
        for one in classes
    )


def _lines(text: Text, path: str, place: str) -> Iterator[int]:
    """Lines of the function at which the name stands."""
    for function in text.functions:
        if function.name == place:
            yield from _at(function, path)


def _at(function: ast.FunctionDef, path: str) -> Iterator[int]:
    """Lines of this one at which it stands."""
    root = path.partition(".")[0]
    return (one.lineno for one in ast.walk(function) if isinstance(one, ast.Name) and one.id == root)
