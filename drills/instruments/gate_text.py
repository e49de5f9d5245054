"""A graded file as text, for the compile gate: its lines, its functions, and what they do that compiles by type.

Never runs what it reads. Imports neither torch nor triton.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import re
from collections.abc import Iterator
from types import CodeType
from typing import Any

from drills.instruments.meant import digest

PRODUCTS = re.compile(r"\bdot(_scaled)?\b")
ATOMICS = re.compile(r"\batomic_")
GIVES = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.For, ast.NamedExpr, ast.withitem)
"""What gives a name a value."""


class Text:
    """The text of one file, with these bytes. bound: names that something else than a function has there.

    views: what Triton's front end sees of launches of its kernels (see `gate_alike`).
    """

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.lines = data.decode("utf-8", errors="replace").splitlines()
        try:
            self.tree = ast.parse(data)
            nodes = list(ast.walk(self.tree))
        except (SyntaxError, ValueError, RecursionError):
            self.tree, nodes = ast.Module([], []), []
        self.functions = [node for node in nodes if isinstance(node, ast.FunctionDef)]
        self.bound = {name for node in nodes for name in names(node)}
        self.says_eight = b"int8" in data
        self.found: dict[tuple[int, re.Pattern[str]], bool] = {}
        self.reaches: dict[int, list[ast.FunctionDef]] = {}
        self.views: dict[str, Any] = {}

    @functools.cached_property
    def codes(self) -> dict[tuple[str, int], set[str]]:
        """By a function's name and first line: digests of the code that the text gives it."""
        found: dict[tuple[str, int], set[str]] = {}
        waiting: list[CodeType] = []
        with contextlib.suppress(SyntaxError, ValueError, RecursionError):
            waiting.append(compile(self.data, "", "exec", dont_inherit=True))
        while waiting:
            code = waiting.pop()
            found.setdefault((code.co_name, code.co_firstlineno), set()).add(digest(code))
            waiting += [one for one in code.co_consts if isinstance(one, CodeType)]
        return found

    def line(self, number: int | None) -> str:
        """The text of a line, stripped; "" if there is none."""
        return self.lines[number - 1].strip() if number and 1 <= number <= len(self.lines) else ""

    def function(self, number: int | None) -> ast.FunctionDef | None:
        """The innermost function around a line."""
        around = [one for one in self.functions if number and first(one) <= number <= (one.end_lineno or one.lineno)]
        return max(around, key=lambda one: one.lineno, default=None)

    def says(self, line: int, word: re.Pattern[str]) -> bool:
        """Whether the word stands in the function around this line, in one of the file's that it names, or in none.

        What stands in no function may give a name to it. Where there is no function at the line, the whole file counts.
        """
        key = line, word
        if key not in self.found:
            self.found[key] = any(word.search(text.partition("#")[0]) for text in self._lines_reached(line))
        return self.found[key]

    def reached(self, line: int) -> list[ast.FunctionDef]:
        """The function around a line, those of this file whose names it mentions, and so on; none for no function.

        A variable of its own that is called as some wrapper is called does not mention the wrapper.
        """
        if line not in self.reaches:
            self.reaches[line] = self._reached(line)
        return self.reaches[line]

    def _reached(self, line: int) -> list[ast.FunctionDef]:
        start = self.function(line)
        waiting = [start] if start else []
        found, seen = [], {one.lineno for one in waiting}
        while waiting:
            one = waiting.pop()
            found.append(one)
            names = {node.id for node in ast.walk(one) if isinstance(node, ast.Name)}
            names |= {node.attr for node in ast.walk(one) if isinstance(node, ast.Attribute)}
            own = {node.id for node in ast.walk(one) if isinstance(node, ast.Name) and _is_stored(node)}
            fresh = [
                other
                for other in self.functions
                if other.name in names and other.lineno not in seen and (other.decorator_list or other.name not in own)
            ]
            seen |= {other.lineno for other in fresh}
            waiting += fresh
        return found

    def targets(self, line: int) -> frozenset[str] | None:
        """Names that the targets of atomics in the function around this line depend on; None where that is not clear.

        It is not where a function that it calls, or what stands in no function, says anything of atomics.
        """
        kernel, *others = self.reached(line) or [None]
        if kernel is None or ATOMICS.search("\n".join(self._lines_reached(line, without=kernel))):
            return None
        nodes = list(ast.walk(kernel))
        calls = [one for one in nodes if isinstance(one, ast.Call) and _is_atomic(one.func)]
        mentions = sum(map(_is_atomic, nodes))
        if mentions != len(calls) or not all(one.args and not isinstance(one.args[0], ast.Starred) for one in calls):
            return None
        found = {name for one in calls for name in _mentioned(one.args[0])}
        gives = [(set(_stored(one)), _mentioned(one)) for one in nodes if isinstance(one, GIVES)]
        while more := {name for to, of in gives if to & found for name in of} - found:
            found |= more
        return frozenset(found)

    def _lines_reached(self, line: int, without: ast.FunctionDef | None = None) -> Iterator[str]:
        """The lines of the functions that are reached, and those of no function; those of one may be left out."""
        functions = self.reached(line)
        if not functions:
            yield from self.lines
            return
        inside = {number for one in self.functions for number in range(first(one), (one.end_lineno or one.lineno) + 1)}
        yield from (text for number, text in enumerate(self.lines, 1) if number not in inside)
        for one in functions:
            if one is not without:
                yield from self.lines[first(one) - 1 : one.end_lineno]


def names(node: ast.AST) -> list[str]:
    """What an assignment, an import or a class gives a name to."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        return [node.id]
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return [(one.asname or one.name).split(".")[0] for one in node.names]
    return [node.name] if isinstance(node, ast.ClassDef) else []


def _is_atomic(node: ast.AST) -> bool:
    """Whether this is a word of Triton's for an atomic."""
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    return ATOMICS.match(name) is not None


def _mentioned(node: ast.AST) -> set[str]:
    """All names in an expression, or in a statement without what stands inside it."""
    parts = [node.iter] if isinstance(node, ast.For) else [node]
    return {one.id for part in parts for one in ast.walk(part) if isinstance(one, ast.Name)}


def _stored(node: ast.AST) -> Iterator[str]:
    """Names that a statement gives a value to."""
    parts = [node.target] if isinstance(node, ast.For) else [node]
    return (one.id for part in parts for one in ast.walk(part) if isinstance(one, ast.Name) and _is_stored(one))


def _is_stored(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Store)


def first(function: ast.FunctionDef) -> int:
    """The line of the first decorator, else of the def."""
    return min([function.lineno, *(decorator.lineno for decorator in function.decorator_list)])
