"""Answers of the compile gate kept between runs: one small JSON file each, named by what it depends on.

A kernel's code depends on the file's kernels and top level, not on the wrappers that launch them, so an answer "it
compiles" survives an edit of a wrapper. An answer that names a line is kept for the very same file only. No answer
outlives a change of the grader. What is read back is checked like any answer; a file that cannot be read or written is
no answer, never an error.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import hashlib
import json
import os
from importlib import metadata
from pathlib import Path
from typing import Any

from drills.instruments.gate_depth import Depth
from drills.instruments.gate_spec import Spec
from drills.instruments.meant import AT_LINE

FORMAT = 2
MAX_FILE = 8192
MAX_FILES = 4000
CHANGES_NAMES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef, ast.Global, ast.Nonlocal)


class Store:
    """Answers in a folder; None for the folder keeps nothing. The folder is made when it is first needed.

    refusals: whether answers that something does not compile are kept too. What a run puts there is for later runs.
    """

    def __init__(self, folder: Path | None, refusals: bool = True) -> None:
        self.folder = folder
        self.refusals = refusals
        self.written = 0
        try:
            self.version = f"{metadata.version('triton')} {ours()}"
        except metadata.PackageNotFoundError:
            self.folder = None
        self.there = self._names()

    def get(self, data: bytes, spec: Spec, target: str, depth: Depth) -> Any:
        """The answer kept for this specialisation of a kernel in the file `data`; None if there is none."""
        for good in (True, False) if self.there else ():
            path = self._path(data, spec, target, depth, good)
            if path.name not in self.there:
                continue
            try:
                with path.open("rb") as file:
                    answer = json.loads(file.read(MAX_FILE + 1))
            except (OSError, ValueError):
                continue
            if isinstance(answer, dict) and answer.get("ok") is good:
                return answer
        return None

    def put(self, data: bytes, spec: Spec, target: str, depth: Depth, answer: dict[str, Any]) -> None:
        """Keep an answer, whole or not at all."""
        text = json.dumps(answer)
        if self.folder is None or len(text) > MAX_FILE or not (answer["ok"] or self.refusals):
            return
        path = self._path(data, spec, target, depth, answer["ok"])
        partial = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            partial.write_text(text)
            partial.replace(path)
            self.written += 1
        except OSError:
            with contextlib.suppress(OSError):
                partial.unlink(missing_ok=True)

    def trim(self) -> None:
        """Drop the oldest files where there are too many."""
        if self.folder is None or not self.written:
            return
        with contextlib.suppress(OSError):
            files = sorted(self.folder.glob("*.json"), key=lambda file: file.stat().st_mtime)
            for file in files[: max(0, len(files) - MAX_FILES)]:
                file.unlink(missing_ok=True)

    def _names(self) -> frozenset[str]:
        """The files in the folder."""
        try:
            return frozenset(os.listdir(self.folder) if self.folder is not None else ())
        except OSError:
            return frozenset()

    def _path(self, data: bytes, spec: Spec, target: str, depth: Depth, good: bool) -> Path:
        code = digest(kernels_only(data) if good else data)
        what = spec.anywhere if good else spec.text
        place = [nth(data, spec.kernel, spec.line), named(data, spec)] if good else 0
        parts = [FORMAT, self.version, code, what, place, target, depth]
        return self.folder / f"{hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:40]}.json"


@functools.cache
def ours() -> str:
    """What the gate itself is: its answers are not those of another version's."""
    texts = (path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py")))
    return hashlib.sha256(b"\0".join(texts)).hexdigest()


@functools.lru_cache(maxsize=32)
def digest(text: bytes) -> str:
    """What stands for a text in names."""
    return hashlib.sha256(text).hexdigest()


@functools.lru_cache(maxsize=4)
def parsed(data: bytes) -> ast.Module | None:
    """The file's tree, for reading only; None if it is no Python."""
    try:
        return ast.parse(data)
    except (SyntaxError, ValueError, RecursionError):
        return None


@functools.lru_cache(maxsize=32)
def kernels_only(data: bytes) -> bytes:
    """The file without the plain functions that nothing at its top level uses, as text free of comments and layout."""
    tree = parsed(data)
    if tree is None:
        return data
    plain = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef) and is_plain(node)}
    left_out = set(plain.values())
    waiting: list[ast.stmt] = [node for node in tree.body if node not in left_out]
    while waiting:
        used = {node.id for node in ast.walk(waiting.pop()) if isinstance(node, ast.Name)} & plain.keys()
        waiting += [plain.pop(name) for name in used]
    left_out = set(plain.values())
    return ast.dump(ast.Module([node for node in tree.body if node not in left_out], [])).encode()


def is_plain(function: ast.FunctionDef) -> bool:
    """No decorator, and nothing inside that could be a kernel or change a name outside."""
    inner = (node for child in ast.iter_child_nodes(function) for node in ast.walk(child))
    return not function.decorator_list and not any(isinstance(node, CHANGES_NAMES) for node in inner)


@functools.lru_cache(maxsize=32)
def lines_of(data: bytes) -> dict[str, list[int]]:
    """Lines of the functions of each name, from the top."""
    tree, found = parsed(data), {}
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.FunctionDef):
            found.setdefault(node.name, []).append(node.lineno)
    return found


def nth(data: bytes, function: str, line: int) -> int:
    """Which of the functions of its name the one at this line is, counted from the top."""
    return sum(one < line for one in lines_of(data).get(function, ()))


def named(data: bytes, spec: Spec) -> dict[str, Any]:
    """What the kernel's names stand for, wherever in the file that stands."""
    found = {name: (AT_LINE.fullmatch(said), said) for name, said in spec.names.items()}
    return {name: [at[1], nth(data, at[1], int(at[2]))] if at else said for name, (at, said) in found.items()}
