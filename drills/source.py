"""Reads a graded file without running it: is it there, is it Python, which exercises has the learner begun?

The file may be by a stranger: it is parsed, never imported, and everything that can be wrong with it is a `Problem`.
Must never import torch.
"""

from __future__ import annotations

import ast
import hashlib
import io
import os
import stat
import tokenize
import warnings
from dataclasses import dataclass
from pathlib import Path

from drills import stubs

LARGEST = 1 << 20
"""Bytes of the largest file that is looked at."""

DEEPEST = 200
"""Nodes of a syntax tree that lie in one another. Python itself takes five times as many, but whoever goes through such
a tree by functions that call themselves, as `ast.dump` does, then runs out of stack before the last."""


@dataclass(frozen=True)
class Problem:
    """Why a file cannot be graded. kind: "missing", "unreadable" or "syntax"; says: one sentence without the path.

    For a syntax error: line and column (1-based; None if unknown) and the line's text.
    """

    kind: str
    says: str
    line: int | None = None
    column: int | None = None
    text: str = ""

    def caret(self) -> str:
        """The line and a caret below its column, as two lines; "" without a text."""
        if not self.text or not self.column:
            return self.text
        stripped = self.text.lstrip()
        indent = len(self.text) - len(stripped)
        return f"{stripped}\n{' ' * max(0, self.column - 1 - indent)}^"


@dataclass(frozen=True)
class Function:
    """One exercise in a graded file. state: "untouched", "written" or "missing"; line of its `def`."""

    name: str
    state: str
    line: int | None = None


@dataclass(frozen=True)
class Source:
    """A graded file as it was read. functions: one an exercise, in the lesson's order; empty with a problem."""

    path: Path
    sha256: str = ""
    functions: tuple[Function, ...] = ()
    problem: Problem | None = None

    def function(self, name: str) -> Function:
        """The exercise called `name`; KeyError if it is none."""
        for function in self.functions:
            if function.name == name:
                return function
        raise KeyError(name)


def inspect(path: Path, exercises: tuple[str, ...], stub: str) -> Source:
    """The state of `path`, compared with the lesson's stub (its text). Never raises for what is in the file."""
    data = _read(path)
    if isinstance(data, Problem):
        return Source(path, problem=data)
    sha256 = hashlib.sha256(data).hexdigest()
    tree = parse(data)
    if isinstance(tree, Problem):
        return Source(path, sha256, problem=tree)
    ours, theirs = _bound(stubs.tree_of(stub)), _bound(tree)
    functions = tuple(Function(name, *_state(name, ours, theirs)) for name in exercises)
    return Source(path, sha256, functions)


def parse(data: bytes) -> ast.Module | Problem:
    """The syntax tree of a file's bytes, or what is wrong with it. Copes with a BOM, CRLF and tabs."""
    try:
        data.decode(_encoding(data))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(data)
            compile(tree, "<graded>", "exec", dont_inherit=True)
        if _is_deep(tree):
            raise RecursionError
    except SyntaxError as error:
        return _syntax_problem(error, data)
    except (UnicodeDecodeError, LookupError):  # LookupError: a codec that makes no text, as rot13
        return Problem("syntax", "is not UTF-8 text: save it with that encoding")
    except ValueError as error:
        return Problem("syntax", str(error))
    except (RecursionError, MemoryError):
        return Problem("syntax", "is nested too deeply to be parsed")
    return tree


def _is_deep(tree: ast.AST) -> bool:
    """Whether more than DEEPEST nodes of the tree lie in one another."""
    layer = [tree]
    for _ in range(DEEPEST):
        layer = [inner for node in layer for inner in ast.iter_child_nodes(node)]
    return bool(layer)


def _encoding(data: bytes) -> str:
    """The encoding that the file says it has; UTF-8 where it says nothing, though it be something else altogether."""
    try:
        return tokenize.detect_encoding(io.BytesIO(data).readline)[0]
    except SyntaxError as error:
        if "unknown encoding" in str(error):
            raise
        return "utf-8"


def _read(path: Path) -> bytes | Problem:
    try:
        # O_NONBLOCK: a pipe left in the folder must not make the grader wait for a writer.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except (FileNotFoundError, NotADirectoryError):
        return Problem("missing", "is not there")
    except (OSError, ValueError) as error:
        return Problem("unreadable", f"cannot be read: {getattr(error, 'strerror', None) or error}")
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            return Problem("unreadable", "is not a regular file")
        if status.st_size > LARGEST:
            return Problem("unreadable", f"is larger than {LARGEST >> 10} KiB")
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read(LARGEST)
    except OSError as error:
        return Problem("unreadable", f"cannot be read: {error.strerror or error}")
    finally:
        os.close(descriptor)


def _syntax_problem(error: SyntaxError, data: bytes) -> Problem:
    """The line's text comes from the file, not from the error, whose text and offset differ between versions."""
    message, line = error.msg or "invalid syntax", error.lineno
    text = data.decode("utf-8-sig", errors="replace")
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if not line or line > len(lines):
        return Problem("syntax", message)
    column = error.offset if error.offset and error.offset > 0 else None
    return Problem("syntax", message, line, column, lines[line - 1].expandtabs(1))


def _state(name: str, ours: dict[str, ast.AST], theirs: dict[str, ast.AST]) -> tuple[str, int | None]:
    node = theirs.get(name)
    if node is None:
        return ("written", None) if "*" in theirs else ("missing", None)
    if isinstance(node, ast.FunctionDef) and (_is_bare_raise(node) or _same(node, ours.get(name))):
        return "untouched", node.lineno
    return "written", getattr(node, "lineno", None)


def _bound(tree: ast.Module) -> dict[str, ast.AST]:
    """Every name bound at module level → the last statement that binds it; "*" for a star import."""
    names: dict[str, ast.AST] = {}
    waiting: list[ast.stmt] = list(reversed(tree.body))
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names[node.name] = node
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names.update({(alias.asname or alias.name).split(".")[0]: node for alias in node.names})
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names.update({part.id: node for one in targets for part in ast.walk(one) if isinstance(part, ast.Name)})
        else:
            inner = [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt)]
            inner += [stmt for handler in getattr(node, "handlers", []) for stmt in handler.body]
            waiting += reversed(inner)
    return names


def _body(function: ast.FunctionDef) -> list[ast.stmt]:
    has_docstring = ast.get_docstring(function, clean=False) is not None
    return function.body[1:] if has_docstring else function.body


def _is_bare_raise(function: ast.FunctionDef) -> bool:
    body = _body(function)
    if len(body) != 1 or not isinstance(body[0], ast.Raise) or body[0].exc is None:
        return False
    raised = body[0].exc.func if isinstance(body[0].exc, ast.Call) else body[0].exc
    return isinstance(raised, ast.Name) and raised.id == "NotImplementedError"


def _same(function: ast.FunctionDef, stub: ast.AST | None) -> bool:
    if not isinstance(stub, ast.FunctionDef):
        return False
    ours, theirs = _body(stub), _body(function)
    return [ast.dump(node) for node in ours] == [ast.dump(node) for node in theirs]
