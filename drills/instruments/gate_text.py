"""A graded file as text, for the compile gate: its lines, its functions, and what they do that compiles by type.

Never runs what it reads. Imports neither torch nor triton.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

PRODUCTS = re.compile(r"\bdot(_scaled)?\b")
ATOMICS = re.compile(r"\batomic_")


class Text:
    """The text of one file, with these bytes."""

    def __init__(self, data: bytes) -> None:
        self.lines = data.decode("utf-8", errors="replace").splitlines()
        try:
            self.functions = [node for node in ast.walk(ast.parse(data)) if isinstance(node, ast.FunctionDef)]
        except (SyntaxError, ValueError, RecursionError):
            self.functions = []
        self.found: dict[tuple[int, re.Pattern[str]], bool] = {}

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
            self.found[key] = any(word.search(text.partition("#")[0]) for text in self._reached(self.function(line)))
        return self.found[key]

    def _reached(self, start: ast.FunctionDef | None) -> Iterator[str]:
        """The lines of a function, of those of this file whose names it mentions, and so on; and of no function."""
        if start is None:
            yield from self.lines
            return
        inside = {number for one in self.functions for number in range(first(one), (one.end_lineno or one.lineno) + 1)}
        yield from (text for number, text in enumerate(self.lines, 1) if number not in inside)
        waiting, seen = [start], {start.lineno}
        while waiting:
            one = waiting.pop()
            yield from self.lines[first(one) - 1 : one.end_lineno]
            names = {node.id for node in ast.walk(one) if isinstance(node, ast.Name)}
            names |= {node.attr for node in ast.walk(one) if isinstance(node, ast.Attribute)}
            fresh = [other for other in self.functions if other.name in names and other.lineno not in seen]
            seen |= {other.lineno for other in fresh}
            waiting += fresh


def first(function: ast.FunctionDef) -> int:
    """The line of the first decorator, else of the def."""
    return min([function.lineno, *(decorator.lineno for decorator in function.decorator_list)])
