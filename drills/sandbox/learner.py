"""Loads a graded file and says what went wrong in it, in the learner's own lines. Runs in the worker only."""

from __future__ import annotations

import builtins
import contextlib
import difflib
import importlib.machinery
import importlib.util
import io
import linecache
import sys
import traceback
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

from drills.instruments.interpreter import syntax
from drills.instruments.notes import Finding

MESSAGE_LIMIT = 2000
ALIKE = 0.8
"""How far a name must agree with another (`difflib`) for that to be named: maxmum and maximum do, log1p and log not."""


def load(file: Path, text: bytes | None = None) -> ModuleType:
    """Run the graded file as a module named after it; whatever it raises comes out.

    Always from its source: compiled code that lies beside it may be of another text. text: its bytes; the file itself
    may then be out of reach.
    """
    text = file.read_bytes() if text is None else text
    remember_lines(str(file), text)
    syntax.know(str(file), text)
    loader = importlib.machinery.SourceFileLoader(file.stem, str(file))
    module = importlib.util.module_from_spec(importlib.util.spec_from_file_location(file.stem, file, loader=loader))
    sys.modules[file.stem] = module
    sys.dont_write_bytecode = True
    exec(loader.source_to_code(text, str(file)), module.__dict__)
    return module


def remember_lines(name: str, text: bytes) -> None:
    """Let Python quote the lines of a file that it cannot open. A line ends where Python's do: not at a form feed."""
    with contextlib.suppress(SyntaxError, UnicodeDecodeError):
        lines = io.StringIO(importlib.util.decode_source(text)).readlines()
        linecache.cache[name] = (len(text), None, lines, name)


def functions(module: ModuleType) -> list[str]:
    """Names of what can be called in it."""
    return sorted(name for name, value in vars(module).items() if isinstance(name, str) and callable(value))


def describe(error: BaseException, file: Path) -> dict[str, Any]:
    """type, message, line and source of an exception: the innermost line of the learner's file, first cause first."""
    chain = _chain(error)
    line = next((line for one in reversed(chain) if (line := _line(one, file)) is not None), None)
    root = chain[-1]
    source = linecache.getline(str(file), line).strip() if line else ""
    message = _message(root) + _meant(root, file)
    return {"type": type(root).__name__, "message": message, "line": line, "source": source}


def finding(error: BaseException) -> Finding | None:
    """What an instrument had found when it stopped the call with this exception; None if none did."""
    found = (getattr(one, "finding", None) for one in _chain(error))
    return next((one for one in found if isinstance(one, Finding)), None)


def _chain(error: BaseException) -> list[BaseException]:
    """The exception, then what it was raised from, to the first cause."""
    chain = [error]
    while (cause := chain[-1].__cause__) is not None and cause not in chain:
        chain.append(cause)
    return chain


def _line(error: BaseException, file: Path) -> int | None:
    if isinstance(error, SyntaxError) and error.filename == str(file):
        return error.lineno
    lines = [line for _, line in _frames(error, file)]
    return lines[-1] if lines else None


def _frames(error: BaseException, file: Path) -> list[tuple[FrameType, int]]:
    """The frames of the learner's own functions that the exception went through, the innermost last, with the line."""
    return [(one, line) for one, line in traceback.walk_tb(error.__traceback__) if one.f_code.co_filename == str(file)]


def _meant(error: BaseException, file: Path) -> str:
    """ ". Did you mean: 'm_new'?", as Python says where nobody catches the exception; "" if nothing is called alike."""
    with contextlib.suppress(Exception):  # whatever the names belong to may be the learner's own
        known: set[str] = set()
        if isinstance(error, NameError) and not isinstance(error, UnboundLocalError):
            for frame, _ in _frames(error, file)[-1:]:
                code = frame.f_code  # a kernel's frame shows no values, but its code says what it calls them
                known |= {*code.co_varnames, *code.co_cellvars, *code.co_freevars, *frame.f_globals, *dir(builtins)}
        elif isinstance(error, AttributeError) and error.name:
            known |= {*dir(error.obj if isinstance(error.obj, ModuleType) else type(error.obj))}
        alike = difflib.get_close_matches(error.name, [one for one in known if one[0] != "_"], 1, ALIKE)
        return f". Did you mean: '{alike[0]}'?" if alike else ""
    return ""


def _message(error: BaseException) -> str:
    try:
        return str(error)[:MESSAGE_LIMIT]
    except Exception:
        return ""
