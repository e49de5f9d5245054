"""Puts one function of a stub into a learner's file in place of theirs, and leaves every other byte as it is."""

from __future__ import annotations

import ast
import re

from drills import source
from drills.errors import WrongUse

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


def with_stub(data: bytes, exercise: str, stub: str, name: str) -> bytes:
    """`data` with its last function called `exercise` as the stub has it; appended if it has none.

    Line endings and a BOM stay. WrongUse, naming `name`, if the file cannot be parsed or binds the name otherwise.
    """
    tree = source.parse(data)
    if isinstance(tree, source.Problem):
        at = f"{name}:{tree.line}" if tree.line else name
        raise WrongUse(f"{at}: {tree.says}. Put that right first, or reset the whole lesson.")
    text = data.decode("utf-8-sig")
    lines = _LINE.findall(text)
    newline = "\r\n" if "\r\n" in text else "\n"
    new = [line + newline for line in function_text(stub, exercise).split("\n")]
    found = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == exercise]
    if found:
        first, last = span(found[-1])
        lines[first - 1 : last] = new
    elif re.search(rf"^{exercise}\b", text, re.MULTILINE):
        raise WrongUse(f"{name} binds {exercise}, but not by def. Reset the whole lesson instead.")
    else:
        if lines and not lines[-1].endswith(("\n", "\r")):
            lines[-1] += newline
        lines += [newline, newline, *new]
    bom = b"\xef\xbb\xbf" if data.startswith(b"\xef\xbb\xbf") else b""
    return bom + "".join(lines).encode("utf-8")


def function_text(text: str, name: str) -> str:
    """The source of a module-level function, decorators included, without a final newline; KeyError if none."""
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef) and node.name == name:
            first, last = span(node)
            return "\n".join(text.split("\n")[first - 1 : last])
    raise KeyError(name)


def span(function: ast.FunctionDef) -> tuple[int, int]:
    """First and last line of a function, decorators included."""
    first = min([function.lineno, *(decorator.lineno for decorator in function.decorator_list)])
    return first, function.end_lineno or function.lineno


def needed_lines(tree: ast.Module, names: tuple[str, ...]) -> set[int]:
    """The lines of the named functions and, through them, of the file's functions that they mention."""
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    waiting, seen, lines = list(names), set(), set()
    while waiting:
        name = waiting.pop()
        if name in seen or name not in functions:
            continue
        seen.add(name)
        first, last = span(functions[name])
        lines |= set(range(first, last + 1))
        waiting += [node.id for node in ast.walk(functions[name]) if isinstance(node, ast.Name)]
    return lines
