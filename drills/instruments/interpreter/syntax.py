"""Rewrites a kernel's source so that Python runs it with the meaning that Triton's compiler gives it.

Assignments turn numbers into tensors (x += 1 too); `and`, `or`, `not` work element by element on blocks; annotations
and defaults are taken off. Line numbers stay the learner's. A branch that the compiler never sees is run here if a test
has another result here: so no branch may look at the Python behind Triton's values and functions.
"""

from __future__ import annotations

import ast
import functools
import importlib.util
import inspect
import io
import textwrap
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType
from typing import Any

from drills.instruments import sources

ASSIGN, BOTH, EITHER, NOT = "__assigned__", "__both__", "__either__", "__negated__"
VALUE, SHOWN, CHOSEN = "__value__", "__shown__", "__chosen__"
REST, TEXT, ASKED = "__rest__", "__text__", "__asked__"
"""Names under which the rewritten code finds its helpers."""

INSIDE = frozenset(("handle", "fn"))
"""What leads from Triton's values and functions to Python's; so does whatever begins with two underscores."""

SINGLE = (None, True, False)

_definitions: dict[str, dict[tuple[str, int], str]] = {}


@functools.cache
def of_values() -> frozenset[str]:
    """What kernels ask tensors and modules for: names that neither lists nor functions have.

    Triton is loaded here, not with this module: who loads that may yet have to say whether it interprets.
    """
    import triton.language as tl

    names = {"dtype", "shape", "type", "value", *dir(tl), *dir(tl.tensor), *dir(tl.dtype)}
    return frozenset(names.difference(*map(dir, (list, dict, set))))


def know(file: str, text: bytes) -> None:
    """The text of a graded file, from which its kernels are made whatever Python is told of it later."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return  # whoever loads it will say so
    lines = io.StringIO(importlib.util.decode_source(text)).readlines()
    found = _definitions[file] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
            found[node.name, first] = "".join(lines[first - 1 : node.end_lineno])


def rewritten(function: Callable) -> CodeType | None:
    """The code of `function` with Triton's meaning; None if its source is not to be had."""
    code = function.__code__
    known = _definitions.get(code.co_filename, {}).get((code.co_name, code.co_firstlineno))
    try:
        first = code.co_firstlineno
        if known is None and code.co_filename.startswith(sources.TRITON):
            known = sources.block(function)
        if known is None and _definitions:
            raise RuntimeError(f"{function.__name__} is not in the text of the file, from which kernels are compiled")
        if known is None:
            lines, first = inspect.getsourcelines(function)
            known = "".join(lines)
        tree = ast.parse(textwrap.dedent(known))
    except (OSError, TypeError, SyntaxError):
        return None
    definition = tree.body[0]
    if not isinstance(definition, ast.FunctionDef):
        return None
    _bare(definition)
    ast.increment_lineno(tree, first - 1)  # while no node stands in two places, which would move it twice
    learners = not code.co_filename.startswith(sources.TRITON)
    if learners:
        _stay_outside(definition)
    Rewriter(learners).visit(definition)
    ast.fix_missing_locations(tree)
    code = compile(tree, filename=function.__code__.co_filename, mode="exec", dont_inherit=True)
    return next(const for const in code.co_consts if isinstance(const, CodeType))


def is_inside(name: str) -> bool:
    """Whether an attribute of this name is Python's affair, and no kernel's."""
    return name in INSIDE or name.startswith("__")


def _stay_outside(definition: ast.FunctionDef) -> None:
    """TypeError if the kernel names such an attribute, or asks whether two things are one object."""
    for node in ast.walk(definition):
        named = [node.attr] if isinstance(node, ast.Attribute) else getattr(node, "kwd_attrs", ())
        for name in filter(is_inside, named):
            raise TypeError(f"a kernel has no attribute {name}: only Python has that, not a GPU")
        identities = isinstance(node, ast.Compare) and any(isinstance(one, (ast.Is, ast.IsNot)) for one in node.ops)
        if identities and not all(map(_is_single, node.comparators)):
            raise TypeError("a kernel compares by ==: is may be asked of None, True and False only")


def _is_single(node: ast.expr) -> bool:
    """Whether it is None, True or False."""
    return isinstance(node, ast.Constant) and any(node.value is one for one in SINGLE)


def bound(function: Callable, code: CodeType | None, names: dict, defaults: Any, keywords: Any) -> FunctionType:
    """`code` (None: the function's own) as a function that sees `names`, with these defaults."""
    closure = function.__closure__ if code is None else None
    made = FunctionType(code or function.__code__, names, function.__name__, defaults, closure)
    made.__kwdefaults__ = keywords
    return made


def _bare(definition: ast.FunctionDef) -> None:
    """Take off decorators, annotations and defaults: none of them may run again."""
    definition.decorator_list, definition.returns = [], None
    arguments = definition.args
    arguments.defaults, arguments.kw_defaults = [], [None] * len(arguments.kwonlyargs)
    for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
        argument.annotation = None


class Rewriter(ast.NodeTransformer):
    """One pass over a kernel's body. learners: whether it is one of theirs, not of Triton's own."""

    def __init__(self, learners: bool) -> None:
        self.learners = learners

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        self.generic_visit(node)
        node.value = _call(ASSIGN, node.value, node.value)
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.target, ast.Name):
            return node
        left = ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target)
        value = ast.copy_location(ast.BinOp(left, node.op, node.value), node)
        value = _call(REST, [left, node.value], node) if self.learners and isinstance(node.op, ast.Mod) else value
        return ast.copy_location(ast.Assign([node.target], _call(ASSIGN, value, node)), node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        self.generic_visit(node)
        if node.value is None:
            return node
        constant = "constexpr" in ast.unparse(node.annotation)
        value = node.value if constant else _call(ASSIGN, node.value, node.value)
        return ast.copy_location(ast.Assign([node.target], value), node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if not isinstance(node.ctx, ast.Load):
            return self.generic_visit(node)
        owners = list(_owners(node))
        if isinstance(owners[-1], ast.Name) and all(one.attr != "value" for one in (node, *owners[:-1])):
            # Names stay as they are written: what they lead to is told (see `meant`).
            strange = [one.value for one in (node, *owners[:-1]) if self.learners and one.attr not in of_values()]
            return _call(ASKED, [node, *strange], node) if strange else node
        self.generic_visit(node)
        if self.learners and node.attr not in of_values():
            node.value = _call(ASKED, node.value, node.value)
        return _call(VALUE, node.value, node) if node.attr == "value" else node

    def visit_FormattedValue(self, node: ast.FormattedValue) -> ast.AST:
        self.generic_visit(node)
        node.value, node.format_spec = _call(SHOWN, node.value, node.value), None  # at which the compiler does not look
        return node

    def visit_List(self, node: ast.List) -> ast.AST:
        self.generic_visit(node)
        alike = self.learners and isinstance(node.ctx, ast.Load)  # to the compiler a list is a tuple
        return ast.copy_location(ast.Tuple(node.elts, node.ctx), node) if alike else node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        made = self.learners and isinstance(node.op, ast.Mod)
        return _call(REST, [node.left, node.right], node) if made else node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, ast.Attribute) and node.func.attr == "format":
            node.func, node.args = ast.copy_location(ast.Name(TEXT, ast.Load()), node), [node.func.value, *node.args]
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.ops[0], (ast.Is, ast.IsNot)):
            node.left = _call(SHOWN, node.left, node.left)
        return node

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        self.generic_visit(node)
        sides = [ast.copy_location(ast.Lambda(_no_arguments(), one), one) for one in (node.body, node.orelse)]
        return _call(CHOSEN, [node.test, *sides], node)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self.generic_visit(node)
        thunks = [ast.copy_location(ast.Lambda(_no_arguments(), value), value) for value in node.values]
        return _call(BOTH if isinstance(node.op, ast.And) else EITHER, thunks, node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        return _call(NOT, node.operand, node) if isinstance(node.op, ast.Not) else node


def _call(name: str, arguments: ast.expr | list, place: ast.AST) -> ast.Call:
    arguments = arguments if isinstance(arguments, list) else [arguments]
    return ast.copy_location(ast.Call(ast.copy_location(ast.Name(name, ast.Load()), place), arguments, []), place)


def _owners(node: ast.expr) -> Iterator[ast.expr]:
    """Of a.b.c: a.b, and a."""
    while isinstance(node, ast.Attribute):
        node = node.value
        yield node


def _no_arguments() -> ast.arguments:
    return ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
