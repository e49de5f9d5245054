"""Makes a lesson's stub from its solution: what stands between the markers is what a learner writes.

A solution holds `# BEGIN SOLUTION` and `# END SOLUTION`, each alone on its line and indented alike. A block inside a
function becomes `raise NotImplementedError("name: your turn")`, inside a kernel `pass`, at module level nothing.
Must never import torch, and never guess: a malformed marker is an error that names the file and the line.
"""

from __future__ import annotations

import ast
import functools
import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass

from drills.errors import GraderFailed

BEGIN = "# BEGIN SOLUTION"
END = "# END SOLUTION"
_MARKER_LIKE = re.compile(r"#\W*(begin|end)\W*solution\W*$", re.IGNORECASE)


@dataclass(frozen=True)
class Block:
    """The lines between two markers, markers included: 1-based numbers, and the markers' indent."""

    first: int
    last: int
    indent: str


def make_stub(solution: str, name: str) -> str:
    """The stub of a solution's text. `name` is the file's, for errors; GraderFailed if a marker is malformed."""
    solution = solution.replace("\r\n", "\n").removeprefix("\ufeff")
    tree = _parse(solution, name, "the solution")
    lines = solution.split("\n")
    blocks = find_blocks(solution, name)
    if not blocks:
        raise GraderFailed(f"{name}: no {BEGIN} in it, so there is nothing for a learner to write")
    functions = [node for node in _statements(tree) if isinstance(node, ast.FunctionDef)]
    for block in reversed(blocks):
        _cut(lines, block, _replacement(functions, block, name))
    stub = "\n".join(lines).rstrip("\n") + "\n"
    _parse(stub, name, "the stub made from it (a marker cuts a statement in two)")
    return stub


def find_blocks(solution: str, name: str) -> list[Block]:
    """The marked blocks of a solution, in order. GraderFailed, naming file and line, if a marker is malformed."""
    blocks: list[Block] = []
    begun: tuple[int, str] | None = None
    for line, indent, text, alone in _markers(solution):
        if text not in (BEGIN, END) or not alone:
            raise GraderFailed(f'{name}:{line}: a marker is "{BEGIN}" or "{END}", alone on its line')
        if text == BEGIN:
            if begun:
                raise GraderFailed(f"{name}:{line}: {BEGIN} inside the block that began on line {begun[0]}")
            begun = line, indent
            continue
        if not begun:
            raise GraderFailed(f"{name}:{line}: {END} without {BEGIN}")
        if indent != begun[1]:
            raise GraderFailed(f"{name}:{line}: {END} is not indented like {BEGIN} on line {begun[0]}")
        blocks.append(Block(begun[0], line, indent))
        begun = None
    if begun:
        raise GraderFailed(f"{name}:{begun[0]}: {BEGIN} without {END}")
    return blocks


def exercise_names(stub: str, name: str) -> tuple[str, ...]:
    """The functions that a learner writes: public, at module level, no kernels, still raising NotImplementedError."""
    functions = [node for node in _parse(stub, name, "the stub").body if isinstance(node, ast.FunctionDef)]
    return tuple(
        function.name
        for function in functions
        if not function.name.startswith("_") and not is_kernel(function) and any(map(_is_turn, _statements(function)))
    )


def is_kernel(function: ast.FunctionDef) -> bool:
    """Whether a function is decorated with triton.jit, autotuned or not."""
    return any(
        (isinstance(node, ast.Attribute) and node.attr == "jit") or (isinstance(node, ast.Name) and node.id == "jit")
        for decorator in function.decorator_list
        for node in ast.walk(decorator)
    )


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """Every statement below a node; a fraction of what ast.walk visits."""
    for name in ("body", "orelse", "finalbody", "handlers", "cases"):
        for child in getattr(node, name, ()):
            yield child
            yield from _statements(child)


def _is_turn(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Raise)
        and isinstance(node.exc, ast.Call)
        and isinstance(node.exc.func, ast.Name)
        and node.exc.func.id == "NotImplementedError"
    )


def _markers(solution: str) -> list[tuple[int, str, str, bool]]:
    """Line, indent, text, and whether it is alone on its line, of every comment that looks like a marker."""
    found = []
    for token in tokenize.generate_tokens(io.StringIO(solution).readline):
        if token.type == tokenize.COMMENT and _MARKER_LIKE.match(token.string):
            before = token.line[: token.start[1]]
            found.append((token.start[0], before, token.string.rstrip(), not before.strip()))
    return found


def _cut(lines: list[str], block: Block, replacement: list[str]) -> None:
    """Puts the replacement in place of the block; with nothing in its place, two blank lines are what is left."""
    first, last = block.first - 1, block.last
    if not replacement:
        while first and not lines[first - 1].strip():
            first -= 1
        while last < len(lines) and not lines[last].strip():
            last += 1
        replacement = ["", ""] if first else []
    lines[first:last] = replacement


def _replacement(functions: list[ast.FunctionDef], block: Block, name: str) -> list[str]:
    if not block.indent:
        return []
    around = [node for node in functions if node.lineno < block.first <= (node.end_lineno or 0)]
    if not around:
        raise GraderFailed(f"{name}:{block.first}: an indented {BEGIN} belongs inside a function, with code after it")
    function = max(around, key=lambda node: node.lineno)
    if is_kernel(function):
        return [f"{block.indent}pass"]
    return [f'{block.indent}raise NotImplementedError("{function.name}: your turn")']


@functools.lru_cache(maxsize=32)
def tree_of(text: str) -> ast.Module:
    """The syntax tree of a text, made once; not to be changed."""
    return ast.parse(text)


def _parse(text: str, name: str, what: str) -> ast.Module:
    try:
        return tree_of(text)
    except SyntaxError as error:
        raise GraderFailed(f"{name}:{error.lineno}: {what} is not Python: {error.msg}") from None
