"""One question to the compile gate answered, inside the gate's own process: what compiles, and what Triton said if not.

Loads the graded file, so it must only run where `gate_worker` runs it. Every failure becomes an answer; none escapes.
"""

from __future__ import annotations

import contextlib
import importlib
import re
import signal
import time
import traceback
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from drills.instruments import sources
from drills.instruments.constants import tupled
from drills.instruments.gate_compile import Specialisation, TooMuch, compile_kernel, parse_once, tell_targets
from drills.instruments.gate_depth import Depth
from drills.instruments.gate_kernels import GradedFile, Unbuildable
from drills.instruments.intact import COMPILERS, Intact
from drills.instruments.meant import MEDDLED, SCALARS, Vocabulary
from drills.instruments.settings import PLACE, PYTHON, UNCHANGED, Settings

MAX_ERROR = 2000
LOADING_S = 10.0
"""Seconds in which the graded file must be loaded."""

INTACT = "the compiler as it was"
"""Where, beside the files, it is kept what Triton's compiler was before any graded file was loaded."""

WORDS = "the words of Triton's language"
"""And where its vocabulary is kept, taken at the same time."""

SET = "what is set"
"""And Triton's settings."""

REASON = re.compile(r"^Currently we only support .*$", re.MULTILINE)
"""What a pass says to stderr before it gives up; the diagnostic that follows says no more than that it failed."""

DIAGNOSTIC = re.compile(r"^(.+?):(\d+):\d+: error: (.*)$", re.MULTILINE)


_before: dict[str, Any] = {}


def ready(files: dict[str, Any]) -> None:
    """What must be known before any graded file is loaded; later, the machinery is out of its reach."""
    prepare()
    files.update(_before)


def prepare() -> None:
    """Take note of the compiler as it is, once for this process and what it forks."""
    if _before:
        return
    importlib.import_module("triton.compiler.code_generator")
    importlib.import_module("torch")  # it gives `inspect` a function of its own, and graded files import it
    parse_once()
    tell_targets()
    _before.update({INTACT: Intact(packages=COMPILERS), WORDS: Vocabulary(), SET: Settings()})


def answer(question: dict[str, Any], files: dict[str, Any], log: Any) -> dict[str, Any]:
    """The answer to one question. files: graded files loaded so far, by path and hash."""
    graded = kernel = None
    log.truncate(0)
    intact = files[INTACT]
    try:
        graded = load(question, files)
        kernel, spec = rebuild(graded, question["spec"])
        names = dict(question["spec"]["names"])
        strange = set_otherwise(files[SET].changed(), names.pop(PLACE, UNCHANGED))
        if strange := strange or another(kernel, spec, names, files[WORDS]):
            return failed("compile_error", strange)
        lost, before = intact.changed(), intact.changes.now()
        figures = compile_kernel(kernel, spec, int(question["arch"]), Depth(question["depth"])) if not lost else None
        if lost := lost or intact.changes.since(before) or intact.changed():
            return failed("compile_error", f"the file replaces or changes {lost}, by which kernels are compiled")
        return {"ok": True, "kind": "", "line": None, "node": "", "error": "", "figures": asdict(figures)}
    except TooMuch as error:
        return failed("compile_resources", str(error))
    except Unbuildable as error:
        return failed("compile_error", str(error))
    except BaseException as error:
        if graded is None:
            line = top_line(error, str(question["file"]))
            name = type(error).__name__
            return failed("compile_import", f"{name}: {error}", line)
        log.seek(0)
        return explain(error, graded, kernel, log.read())


def load(question: dict[str, Any], files: dict[str, Any]) -> Any:
    """The question's file, loaded once; raises what its top level raises."""
    path = str(question["file"])
    key, data = f"{question['sha256']} {path}", question["text"].encode("latin-1")
    sources.know(path, data)
    if key not in files:
        with at_most(LOADING_S):
            files[key] = GradedFile(path, data)
    return files[key]


@contextlib.contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Within, the alarm that ends this process goes off after so long, if not sooner."""
    left, _ = signal.setitimer(signal.ITIMER_REAL, 0)
    begun = time.monotonic()
    signal.setitimer(signal.ITIMER_REAL, min(seconds, left or seconds))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, max(0.01, left - (time.monotonic() - begun)) if left else 0)


def rebuild(graded: Any, asked: dict[str, Any]) -> tuple[Any, Any]:
    """The JIT function and the specialisation that a launch's notes describe."""
    kernel = graded.kernel(asked["kernel"], asked["line"], asked["closure"])
    order = {name: place for place, name in enumerate(kernel.arg_names)}
    signature = {name: kind for name, kind in asked["signature"].items() if name in order}
    constants = {}
    for name, value in asked["constants"].items():
        top = name.split(".")[0]
        if top in order:
            constants[path(name, order)] = graded.decode(value)
            if "." not in name:
                signature[name] = "constexpr"
    for parameter in kernel.params:
        declared_otherwise(parameter, signature.get(parameter.name), constants.get((parameter.num,)))
        if parameter.name not in signature and parameter.has_default:
            signature[parameter.name] = "constexpr"
            constants[(parameter.num,)] = parameter.default
    missing = [name for name in kernel.arg_names if name not in signature]
    if missing:
        raise Unbuildable(f"the launch says nothing of {missing[0]}")
    signature = {name: as_tuple(signature[name]) for name in kernel.arg_names}
    divisible = tuple(path(name, order) for name in asked["divisible"] if name.split(".")[0] in order)
    options = {name: graded.decode(value) for name, value in asked["options"].items()}
    options |= {"num_warps": asked["num_warps"], "num_stages": asked["num_stages"]}
    if getattr(kernel, "debug", None):
        options["debug"] = True
    return kernel, Specialisation(signature, constants, divisible, options)


def set_otherwise(here: str, there: str) -> str:
    """What the file sets, if that is another thing where kernels run, or Python that could change what is compiled."""
    if PYTHON in here:
        return f"the file sets {here}, by which kernels are compiled"
    return "" if here == there else f"{PLACE} are {there} where the kernel runs, but {here} on a GPU"


def declared_otherwise(parameter: Any, kind: Any, value: Any) -> None:
    """Unbuildable if a kernel's parameter is not declared here as it was where the kernel ran."""
    fixed, folded = parameter.annotation_type, value is None or (type(value) is int and value == 1)
    if kind == "constexpr" and not (parameter.is_constexpr or folded):
        raise Unbuildable(f"{parameter.name} is a tl.constexpr where the kernel runs, but not on a GPU")
    if kind not in (None, "constexpr") and (parameter.is_constexpr or (fixed and kind != fixed)):
        there = "tl.constexpr" if parameter.is_constexpr else fixed
        raise Unbuildable(f"{parameter.name} is of another type where the kernel runs than on a GPU: {there}")


def another(kernel: Any, spec: Any, names: dict[str, str], words: Vocabulary) -> str:
    """What a name in the kernel stands for here, if that is not what it stood for where it ran."""
    constants = {one.name: spec.constants.get((one.num,)) for one in kernel.params if one.is_constexpr}
    given = {name: value for name, value in constants.items() if type(value) not in SCALARS}
    here = words.names(kernel.fn, given) if names else {}
    meddled = next((said for said in (words.meddled(kernel), *here.values()) if MEDDLED in said), "")
    if meddled:
        return f"the file gives a kernel a {meddled.rpartition(MEDDLED)[2]} of its own, by which it is compiled"
    for name, said in names.items():
        if here.get(name, "") != said:
            return f"{name} is {said} where the kernel runs, but {here.get(name) or 'a word of Triton'} on a GPU"
    python = [name for name, said in here.items() if said.startswith("a Python ") and name not in names]
    return f"{python[0]} is {here[python[0]]} on a GPU, but not where the kernel runs" if python else ""


def path(name: str, order: dict[str, int]) -> tuple[int, ...]:
    """ "x.0" as Triton counts it: the parameter's place, then the place inside its tuple."""
    top, *parts = name.split(".")
    return (order[top], *(int(part) for part in parts))


def as_tuple(kind: Any) -> Any:
    """JSON's lists of types, and its NamedTuples of types, as the tuples that Triton expects."""
    fields = None
    if isinstance(kind, dict):
        kind, fields = kind["tuple"], kind["fields"]
    return tupled((as_tuple(part) for part in kind), fields) if isinstance(kind, list) else kind


def failed(kind: str, error: str, line: int | None = None, node: str = "") -> dict[str, Any]:
    """A negative answer."""
    return {"ok": False, "kind": kind, "line": line, "node": node, "error": error[:MAX_ERROR], "figures": None}


def explain(error: BaseException, graded: Any, kernel: Any, log: str) -> dict[str, Any]:
    """Triton's message cut to the graded file's own line.

    An error in a helper is the cause of an error at its call. The innermost place in the graded file is named, with the
    innermost message.
    """
    chain = [error]
    while (cause := chain[-1].__cause__) is not None and len(chain) < 50:
        chain.append(cause)
    text = next((said for said in map(message, reversed(chain)) if said), type(error).__name__)
    starts = graded.starts(kernel)
    for one in reversed(chain):
        node, source = getattr(one, "node", None), getattr(one, "src", None)
        if source in starts and hasattr(node, "lineno"):
            return failed("compile_error", text, starts[source] + node.lineno - 1, type(node).__name__)
    for place, line, said in DIAGNOSTIC.findall(log):
        if place == graded.path:
            reason = REASON.search(log)
            return failed("compile_error", reason[0] if reason else said, int(line))
    return failed("compile_error", text)


def message(error: BaseException) -> str:
    """What one exception of Triton's chain says for itself."""
    return str(getattr(error, "error_message", error) or "")


def top_line(error: BaseException, file: str) -> int | None:
    """The line at the graded file's top level that raised, itself or by a call; or that a syntax error names."""
    if isinstance(error, SyntaxError) and error.filename == file:
        return error.lineno
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    return lines[0] if lines else None
