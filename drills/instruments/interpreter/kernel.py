"""Runs a kernel: arguments converted, Triton's language in place, programs in the order asked for, all of it watched.

An exception in a kernel leaves it as it was raised, with the learner's own frames.
"""

from __future__ import annotations

import builtins
import contextlib
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import CellType, CodeType, FrameType, FunctionType, ModuleType
from typing import Any, Protocol

import numpy as np
import triton.language as tl
from triton.runtime import interpreter as plain
from triton.runtime.autotuner import Autotuner
from triton.runtime.jit import ConstexprFunction

from drills.instruments import bytecode
from drills.instruments.intact import Intact
from drills.instruments.interpreter import arguments
from drills.instruments.interpreter import signature as sig
from drills.instruments.interpreter.arithmetic import NotInterpreted
from drills.instruments.interpreter.language import Language, of_constants, of_values
from drills.instruments.interpreter.meaning import Meaning
from drills.instruments.interpreter.memory import Builder
from drills.instruments.interpreter.now import NOW
from drills.instruments.interpreter.quick import numpy_types
from drills.instruments.interpreter.syntax import bound, rewritten
from drills.instruments.meant import SCALARS, Vocabulary, captured
from drills.instruments.notes import Launch
from drills.instruments.peeks import caller
from drills.instruments.settings import Settings
from drills.instruments.told import Left
from drills.instruments.watch import Watch

_builtins_of, _globals_of = FrameType.f_builtins.__get__, FrameType.f_globals.__get__


class Recorder(Protocol):
    """What the interpreter tells of a launch, and what it asks. paused: within, torch operations are not watched.

    resumed: within that, they are again, since a kernel's own code has no use for any.
    called_python: a kernel uses a plain Python function of its file. look: for changes of what kernels are run by.
    meddled: something of that name was changed while programs ran.
    """

    masked_fill: str
    turn: int

    def look(self) -> None: ...
    def meddled(self, name: str) -> None: ...
    def begin(self, launch: Launch, tensors: list, values: dict[str, Any], line: Callable) -> Watch: ...
    def end(self, watch: Watch) -> None: ...
    def ordered(self, count: int) -> Iterable[int]: ...
    def called_python(self, name: str, line: int, file: str) -> None: ...
    def paused(self) -> Any: ...
    def resumed(self) -> Any: ...


class Machine:
    """The interpreter of this process. recorder: of the call that runs, or None.

    loaded: the graded file's names as they were once it was loaded; told: what it had set by then. taken: what each
    function of the launch is run with. looked_up: names that the code of functions for constants looks up outside
    itself. frame: of the learner's function that runs, and its file, if they have been looked for. left: workspaces of
    earlier calls.
    """

    def __init__(self, builder: Builder, language: Language, meaning: Meaning) -> None:
        self.builder = builder
        self.language = language
        self.meaning = meaning
        self.recorder: Recorder | None = None
        self.options = sig.known_options()
        self.kernels: dict[Callable, sig.Declared] = {}
        self.codes: dict[Callable, Any] = {}
        self.bound: dict[Callable, Callable] = {}
        self.intact: Intact | None = None
        self.used: dict[Callable, frozenset[str]] = {}
        self.looked_up: dict[CodeType, frozenset[str]] = {}
        self.taken: dict[Callable, Taken] = {}
        self.loaded: dict[str, Any] = {}
        self.told: dict[str, str] = {}
        self.settings = Settings()
        self.words = Vocabulary()
        self.frame: tuple[FrameType, str] | None = None
        self.left = Left()

    def run(self, kernel: Any, args: tuple, grid: Any, keywords: dict[str, Any]) -> None:
        """kernel[grid](*args, **keywords)."""
        if kernel.fn not in self.kernels:
            self.kernels[kernel.fn] = sig.declared(kernel.fn, kernel.kwargs)
        declared = self.kernels[kernel.fn]
        values, options = declared.bind(args, keywords)
        values = {name: arguments.plainly(value) for name, value in values.items()}
        unknown = [name for name in options if name not in self.options]
        if unknown:
            raise KeyError(f"Keyword argument {unknown[0]} was specified but unrecognised")
        sizes = sig.counted(grid, dict(values))
        for hook in kernel.pre_run_hooks:
            hook(*args, **keywords)
        if self.recorder is None:
            self._programs(kernel, declared.params, values, sizes, None)
            return
        with self.recorder.paused():
            self.recorder.look()
            launch = sig.launch(kernel.fn, declared.params, values, sizes, options)
            given = {one.name: values[one.name] for one in declared.params if one.is_constexpr}
            given = {name: value for name, value in given.items() if type(value) not in SCALARS}
            self.taken.clear()
            launch.names = {**self.words.names(kernel.fn, given, self._code, self._take), **self.told}
            watch = self.recorder.begin(launch, list(arguments.tensors(values)), values, self.line)
            try:
                self._programs(kernel, declared.params, values, sizes, watch)
            finally:
                self.recorder.end(watch)

    def call(self, function: Any, args: tuple, keywords: dict[str, Any]) -> Any:
        """A @triton.jit function called from a kernel."""
        if not self.language.active:
            raise RuntimeError("Cannot call @triton.jit'd outside of the scope of a kernel")
        within, self.frame = self.frame, None
        try:
            return self.function(function)(*args, **keywords)
        finally:
            self.frame = within

    def function(self, kernel: Any) -> Callable:
        """The rewritten function, on the names that its module has now; kept until the launch ends."""
        plainly = kernel.fn
        if plainly not in self.bound:
            self._code(plainly)
            taken = self._taken(plainly)
            self._check_names(plainly, taken.seen)
            names = self.language.names(self._called_from_kernels({**taken.names, **taken.captured}))
            names["__builtins__"] = self.meaning.builtins
            self.bound[plainly] = bound(plainly, self.codes[plainly], names, taken.defaults, taken.keywords)
        return self.bound[plainly]

    def constant(self, function: Any) -> Callable:
        """A function for constants, which is Python, on the names that it had when the launch began."""
        plainly = function.fn
        if plainly not in self.bound:
            taken = self._taken(plainly)
            names, cells = {"__builtins__": vars(builtins)}, [CellType() for _ in plainly.__code__.co_freevars]
            made = FunctionType(plainly.__code__, names, plainly.__name__, taken.defaults, tuple(cells))
            made.__kwdefaults__ = taken.keywords
            self.bound[plainly] = of_values(made)
            names |= {name: self._constant(value) for name, value in taken.names.items()}
            for name, cell in zip(plainly.__code__.co_freevars, cells, strict=True):
                if name in taken.captured:
                    cell.cell_contents = self._constant(taken.captured[name])
        return self.bound[plainly]

    def _constant(self, value: Any) -> Any:
        return self.constant(value) if type(value) is ConstexprFunction else value

    def _called_from_kernels(self, names: dict[str, Any]) -> dict[str, Any]:
        """The same, with functions for constants that take nothing else."""
        found = {name: value for name, value in names.items() if type(value) is ConstexprFunction}
        return {**names, **{name: of_constants(self.constant(value)) for name, value in found.items()}}

    def _take(self, plainly: Any) -> None:
        """What a function is told to be made of is what it runs with, whatever is changed meanwhile."""
        self.taken[plainly] = self._taken(plainly)

    def _taken(self, plainly: Any) -> Taken:
        if plainly in self.taken:
            return self.taken[plainly]
        space, used = plainly.__globals__, self.used.get(plainly)
        if used is None:
            code = plainly.__code__
            used = self.looked_up.get(code)
            if used is None:
                used = self.looked_up[code] = globals_of(code)
        seen = {name: space[name] for name in ("__name__", *used) if name in space}
        names = {name: fixed(value) for name, value in seen.items()}
        held = {name: fixed(value) for name, value in captured(plainly).items()}
        defaults = plainly.__defaults__ and tuple(map(fixed, plainly.__defaults__))
        keywords = plainly.__kwdefaults__ and {name: fixed(one) for name, one in plainly.__kwdefaults__.items()}
        return Taken(seen, names, held, defaults, keywords)

    def _code(self, plainly: Any) -> CodeType:
        """What is run of a kernel's function."""
        if plainly not in self.codes:
            self.codes[plainly] = rewritten(plainly)
            self.used[plainly] = globals_of(self.codes[plainly] or plainly.__code__)
        return self.codes[plainly] or plainly.__code__

    def _check_names(self, plainly: Any, seen: dict[str, Any]) -> None:
        """What a kernel calls is what it is compiled with: the same as when the file was loaded, and no Python."""
        space = plainly.__globals__
        if of_triton(space):
            return  # its math is not the math of the graded file
        for name in self.used[plainly] & seen.keys():
            value, before = seen[name], self.loaded.get(name, seen[name])
            if value is not before and (callable(before) or isinstance(before, ModuleType)):
                raise RuntimeError(f"{name} was changed after the file was loaded, and kernels are compiled without it")
            if type(value) is type and "__triton_aggregate__" in vars(value):
                raise NotInterpreted(f"{name}, a class of values (tl.core._aggregate),")
            if type(value) is FunctionType and value.__globals__ is space and self.recorder is not None:
                self.recorder.called_python(name, value.__code__.co_firstlineno, value.__code__.co_filename)

    def line(self) -> tuple[int | None, str]:
        """Line and file of the learner's kernel that runs now: the innermost kernel frame outside Triton.

        It is looked for once a program, and once in each function that the kernel calls: Python tells its audit hooks
        of every look.
        """
        if self.frame is not None:
            frame, file = self.frame
            return frame.f_lineno, file
        frame = sys._getframe(2)
        while frame is not None and not self._is_learners(frame):
            frame = caller(frame)
        if frame is None:
            return None, ""
        code = frame.f_code
        if not code.co_name.startswith("<"):  # a part of an expression ends before its function does
            self.frame = frame, code.co_filename
        return frame.f_lineno, code.co_filename

    def _is_learners(self, frame: FrameType) -> bool:
        ours = _builtins_of(frame) is self.meaning.builtins
        return ours and not _globals_of(frame)["__name__"].startswith("triton.")

    def _programs(self, kernel: Any, params: list, values: dict, grid: tuple, watch: Watch | None) -> None:
        builder, recorder = self.builder, self.recorder
        before = NOW.watch
        count = grid[0] * grid[1] * grid[2]
        order = range(count) if recorder is None else recorder.ordered(count)
        NOW.watch = watch
        NOW.masked_fill = "poison" if recorder is None else recorder.masked_fill
        turn = 0 if recorder is None else recorder.turn
        watched = contextlib.nullcontext if recorder is None else recorder.resumed
        builder.set_grid_dim(*grid)
        self.bound.clear()
        try:
            with self.language.spoken(), np.errstate(all="ignore"):
                whole = self.intact.changes.now()
                meanwhile = "" if recorder is None else self.intact.meanwhile(whole)
                function = self.function(kernel)
                named = {param.name: arguments.argument(param, values[param.name]) for param in params}
                named = self._called_from_kernels(named)
                with watched():
                    for program in order:
                        x, rest = divmod(program, grid[1] * grid[2])
                        builder.set_grid_idx(x, *divmod(rest, grid[2]))
                        NOW.turn = (turn + program) % 2
                        if watch is not None:
                            watch.program = program
                        self.frame = None
                        function(**named)
                if recorder is not None:
                    recorder.meddled(meanwhile or self.intact.changes.since(whole))
        finally:
            NOW.watch = before
            self.frame = None
            self.bound.clear()
            self.taken.clear()


@dataclass(frozen=True)
class Taken:
    """What a function is run with. seen: its names' values as they are. names: those that are constants for good."""

    seen: dict[str, Any]
    names: dict[str, Any]
    captured: dict[str, Any]
    defaults: tuple | None
    keywords: dict[str, Any] | None


def made_of(handle: Any, data: np.ndarray, dtype: Any, attr: dict[str, Any] | None = None) -> None:
    """A value of the interpreter's, without a check of its own work."""
    handle.data, handle.dtype, handle.attr = data, dtype, {} if attr is None else attr


def fixed(value: Any) -> Any:
    """A constant that nobody else holds: what a tl.constexpr stands for can be changed."""
    if type(value) is tl.constexpr:
        return tl.constexpr(fixed(value.value))
    return tuple(map(fixed, value)) if type(value) is tuple else value


def of_triton(space: dict[str, Any]) -> bool:
    """Whether these are the names of one of Triton's own modules."""
    module = sys.modules.get(space.get("__name__", ""))
    return module is not None and module.__name__.startswith("triton.") and vars(module) is space


def globals_of(code: CodeType) -> frozenset[str]:
    """Names that this code, or code inside it, looks up outside itself."""
    own = {one.argval for one in bytecode.instructions(code) if one.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    return frozenset(own.union(*(globals_of(inner) for inner in code.co_consts if isinstance(inner, CodeType))))


def replace(machine: Machine) -> None:
    """Have Triton's interpreter run kernels and device functions through `machine`, and note what it all is now."""

    def run(self: Any, *args: Any, grid: Any, warmup: bool, **keywords: Any) -> None:
        if not warmup:
            machine.run(self, args, grid, keywords)

    def call(self: Any, *args: Any, **keywords: Any) -> Any:
        return machine.call(self, args, keywords)

    plain.InterpretedFunction.run = run
    plain.InterpretedFunction.__call__ = call
    plain.interpreter_builder = machine.builder
    plain.interpreter_semantic = machine.meaning.semantic
    plain._get_np_dtype = numpy_types()
    plain.TensorHandle.__init__ = made_of
    Autotuner._bench = first_is_best
    swapped = [owner for owner, _ in machine.language.by_owner]
    machine.intact = Intact(machine.builder, machine.meaning.semantic, swapped=swapped)


def first_is_best(tuner: Any, *args: Any, config: Any, **meta: Any) -> list[float]:
    """In place of timing a configuration, which needs a GPU: all take the same time, so the first one is kept."""
    return [0.0, 0.0, 0.0]
