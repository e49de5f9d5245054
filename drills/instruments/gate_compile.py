"""One kernel through Triton's compiler for one GPU target, without a GPU.

The only module of the gate that touches the compiler's internals. On the versions it knows it runs the compiler's own
stages one by one, which spares the disk cache (its key reads the whole compiler: 0.3 to 1.5 s on the first call) and
lets a specialisation stop on the way (see `gate_depth`). On any other version it calls the public `triton.compile`,
slower, with the same result. It never loads a binary and never asks for a driver.
"""

from __future__ import annotations

import contextlib
import functools
import io
import re
import sys
import textwrap
from dataclasses import dataclass, field
from types import FunctionType, MethodType, SimpleNamespace
from typing import Any

from drills.instruments import sources
from drills.instruments.gate_binary import IR_TF32, TF32, WIDE_TF32, Figures, figures
from drills.instruments.gate_depth import Depth

KNOWN = ("3.6.", "3.7.")
DEF = re.compile(r"^def\s+\w+\s*\(", re.MULTILINE)
WARP = 32
THREADS = 1024
"""Most threads of a block, on every target."""

SHARED = {80: 166912, 90: 232448}
"""Bytes of shared memory a block may have, by target: 163 KiB and 227 KiB."""


class TooMuch(Exception):
    """The kernel compiles but asks for more than the target has; the message holds both numbers."""


@dataclass(frozen=True)
class Specialisation:
    """What the JIT would compile: types by parameter, constants and divisibility by path, options by name."""

    signature: dict[str, Any]
    constants: dict[tuple[int, ...], Any]
    divisible: tuple[tuple[int, ...], ...]
    options: dict[str, Any] = field(default_factory=dict)


_asked_for: list[Any] = []


def tell_targets() -> None:
    """Have kernels that ask for the GPU that they are compiled for be told that, though there is none."""
    info = sys.modules.get("triton.language.target_info")
    if info is not None:
        info.current_target = current_target


def current_target() -> Any:
    """What the kernel is compiled for."""
    return _asked_for[0] if _asked_for else None


current_target.__triton_builtin__ = True


def knows(version: str) -> bool:
    """Whether the compiler's stages of this Triton version are known."""
    return version.startswith(KNOWN)


def compile_kernel(kernel: Any, spec: Specialisation, arch: int, depth: Depth = Depth.FULL) -> Figures:
    """Compile `kernel` that far.

    arch: 80 or 90. Returns the figures; zero where the depth does not tell them. Raises what Triton raises, or TooMuch.
    """
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    threads = spec.options.get("num_warps", 4) * WARP
    if threads > THREADS:
        raise TooMuch(f"threads: the block has {threads}, the limit is {THREADS}")
    attrs = {path: [["tt.divisibility", 16]] for path in spec.divisible}
    source = ASTSource(kernel, spec.signature, spec.constants, attrs)
    target = GPUTarget("cuda", arch, WARP)
    _asked_for[:] = [target]
    staged = knows(triton.__version__)
    with compiler_output() as log:
        if staged and depth is Depth.FRONT:
            front_end(source, target, spec.options)
        elif staged:
            made = by_stages(source, target, spec.options, depth)
        else:
            made = by_compile(source, target, spec.options)
    if depth is Depth.FRONT or made is None:
        return Figures()
    if made.shared > SHARED[arch]:
        raise TooMuch(f"shared memory: the block needs {made.shared} bytes, sm_{arch} has {SHARED[arch]}")
    if staged and depth < Depth.FULL:
        return Figures(shared=made.shared, tf32=made.tf32)
    return figures(made.ttir, made.ptx, log.getvalue(), made.shared)


def front_end(source: Any, target: Any, options: dict[str, Any]) -> None:
    """Python made into IR and verified, and no more. Many of these share one context: a new one takes 3 ms."""
    backend, parsed = backend_for(target, options)
    context = shared_context(target)
    try:
        to_ir(source, target, parsed, backend, context)
    except BaseException:
        shared_context.cache_clear()  # nothing of a failure reaches the next one
        raise


def by_stages(source: Any, target: Any, options: dict[str, Any], depth: Depth) -> SimpleNamespace | None:
    """The compiler's stages in their order, to the end, until LLVM's turn, or (None) behind the passes on tiles."""
    backend, parsed = backend_for(target, options)
    if depth < Depth.FULL:
        backend.make_llir = MethodType(lowering_only(type(backend).make_llir), backend)
    stages: dict[str, Any] = {}
    backend.add_stages(stages, parsed, source.language)
    module = to_ir(source, target, parsed, backend, new_context(backend))
    metadata: dict[str, Any] = {}
    texts = {}
    for name, stage in stages.items():
        try:
            module = stage(module, metadata)
        except Lowered:
            tf32 = bool(IR_TF32.search(texts["ttir"]) and TF32.search(str(module)))
            return SimpleNamespace(shared=module.get_int_attr("ttg.shared"), tf32=tf32)
        if name in ("ttir", "ptx"):
            texts[name] = str(module)
        if name == "ttir" and depth is Depth.TILES and not WIDE_TF32.search(texts[name]):
            return None
    return SimpleNamespace(shared=metadata["shared"], **texts)


class Lowered(Exception):
    """A module is LLVM's instructions now, as far as Triton makes them."""


class LLVM:
    """In place of the binding to LLVM: the first thing asked of it ends the stage."""

    @staticmethod
    def init_targets() -> None:
        raise Lowered


class Tidying:
    """In place of passes that tidy up, refuse nothing, and make LLVM's turn shorter, which does not come."""

    def __getattr__(self, name: str) -> Any:
        return lambda *_: None


class Passes:
    """Triton's passes of this stage without those that tidy up: all of those stand behind the lowering."""

    common = llvmir = Tidying()

    def __init__(self, passes: Any) -> None:
        self.passes = passes

    def __getattr__(self, name: str) -> Any:
        return getattr(self.passes, name)


def lowering_only(stage: Any) -> Any:
    """The stage's function as it is, but for what `llvm` and `passes` stand for in it. The compiler stays untouched."""
    names = stage.__globals__
    return FunctionType(
        stage.__code__, {**names, "llvm": LLVM, "passes": Passes(names["passes"])}, closure=stage.__closure__
    )


def backend_for(target: Any, options: dict[str, Any]) -> tuple[Any, Any]:
    """The target's backend and the options as it reads them; KeyError for one that it does not know."""
    from triton.compiler.compiler import make_backend

    backend = make_backend(target)
    parsed = backend.parse_options(dict(options))
    unknown = [name for name in options if not hasattr(parsed, name)]
    if unknown:
        raise KeyError(f"Keyword argument {unknown[0]} was specified but unrecognised")
    return backend, parsed


def to_ir(source: Any, target: Any, parsed: Any, backend: Any, context: Any) -> Any:
    """The module that Triton makes of the kernel's Python; it has verified it."""
    parse_once()
    helpers = backend.get_codegen_implementation(parsed)
    module = source.make_ir(target, parsed, helpers, backend.get_module_map(), context)
    source.hash()  # looks for names that a kernel must not use
    return module


def new_context(backend: Any) -> Any:
    """A context with the dialects that the backend needs."""
    from triton._C.libtriton import ir

    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    return context


@functools.lru_cache(maxsize=1)
def shared_context(target: Any) -> Any:
    """The context of all front ends for this target."""
    from triton.compiler.compiler import make_backend

    return new_context(make_backend(target))


@functools.cache
def parse_once() -> None:
    """From now on Triton parses a function's text once, not at every call of it; it only reads the tree.

    The text is what stands in the file: a graded file could have given its kernel another.
    """
    from triton.runtime.jit import JITFunction

    parse = JITFunction.parse
    trees: dict[tuple[str, int, str], Any] = {}

    def parse_or_recall(function: Any) -> Any:
        code, text = function.fn.__code__, function.src
        place = code.co_filename, code.co_firstlineno, text
        if place not in trees:
            if text != written(function.fn):
                raise ValueError(f"{code.co_name} is not what the text of the file says")
            trees[place] = parse(function)
        return trees[place]

    JITFunction.parse = parse_or_recall


def written(function: Any) -> str:
    """Its text from "def" on, as Triton takes it; "" where it is not in the file."""
    text = textwrap.dedent(sources.block(function) or "")
    begins = DEF.search(text)
    return text[begins.start() :] if begins else ""


def by_compile(source: Any, target: Any, options: dict[str, Any]) -> SimpleNamespace:
    """The public way, through Triton's disk cache (TRITON_CACHE_DIR says where that is)."""
    import triton

    made = triton.compile(source, target=target, options=dict(options))
    return SimpleNamespace(ttir=made.asm["ttir"], ptx=made.asm["ptx"], shared=made.metadata.shared)


@contextlib.contextmanager
def compiler_output() -> Any:
    """Ask for ptxas's log, which Triton prints, and catch all that is printed meanwhile."""
    from triton import knobs

    knobs.nvidia.dump_ptxas_log = True
    with contextlib.redirect_stdout(io.StringIO()) as text:
        yield text
