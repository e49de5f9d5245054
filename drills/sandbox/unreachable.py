"""Takes away, in a worker or a gate, the ways by which Python objects lead to the machinery behind them.

A generator shows the frame that called it, Python's module for logs hands one out, a function shows its closure and its
module's names, `object` every class there is. None of these is of use to graded code, and each leads from what it may
touch to the recorder. So a generator has no frame here, frames of the machinery and of kernels show neither names nor
callers, the machinery's functions show nothing, its classes are not listed and cannot be changed. A hurdle, not a
boundary, as `alone` says: who reads memory by its address is not stopped.
"""

from __future__ import annotations

import _signal
import builtins
import ctypes
import gc
import sys
from types import AsyncGeneratorType, CoroutineType, FrameType, FunctionType, GeneratorType, MappingProxyType
from typing import Any

from drills.instruments import sources
from drills.sandbox import visible

FRAMES = ((GeneratorType, "gi_frame"), (CoroutineType, "cr_frame"), (AsyncGeneratorType, "ag_frame"))
HELD = ("f_locals", "f_globals", "f_builtins")
INSIDE = ("__globals__", "__closure__", "__code__", "__defaults__", "__kwdefaults__")
OURS = "drills."
FLAGS_AT = 168
"""Where a type's flags stand in it, on every 64-bit machine since Python 3.10; looked at before anything is written."""

IMMUTABLE = 1 << 8
TORCHS = ("aten", "_")
"""Namespaces in which torch's operations lie, the second for any."""

ELSEWHERE = ("Meta", "CUDA", "MPS", "FuncTorchBatched")
"""Where torch's own modules register some of them when they are loaded; none of it is what runs on a CPU."""

REFUSED = "graded code may not look into the process that runs it"


def close() -> None:
    """For the rest of this process. Before anything is refused to look at; nothing on a Python that is not known."""
    if not supported():
        return
    modules = [module for name, module in sys.modules.items() if name.startswith(OURS)]
    values = (value for module in modules for value in vars(module).values())
    # Asked of its own class: in Python 3.10 list[int] says that it is an instance of type.
    freeze([kind for kind in {one for one in values if issubclass(type(one), type)} if _is_ours(kind)])
    keep_operations()
    keep_signals()
    hide_frames()
    hide_callers((str(visible.DRILLS), sources.TRITON))
    hide_functions(str(visible.DRILLS))
    hide_classes()


def keep_operations() -> None:
    """Nobody puts a function of Python's in the place of what an operation of torch's does."""
    bindings = sys.modules["torch"]._C if "torch" in sys.modules else None
    if bindings is None:
        return
    make = bindings._dispatch_library

    def library(kind: str, namespace: str, key: str = "", *place: Any) -> Any:
        if namespace in TORCHS and key not in ELSEWHERE:
            raise PermissionError(REFUSED)
        return make(kind, namespace, key, *place)

    bindings._dispatch_library = library


def keep_signals() -> None:
    """No function of Python's is called by a signal: it could leave the machinery, by an exception, wherever it is."""
    put = _signal.signal

    def signal(number: int, handler: Any) -> Any:
        if callable(handler):
            raise PermissionError(REFUSED)
        return put(number, handler)

    _signal.signal = signal


def hide_frames() -> None:
    """No generator and no coroutine shows its frame."""
    for kind, name in FRAMES:
        _names(kind).pop(name, None)
        _changed(kind)


def hide_callers(folders: tuple[str, ...]) -> None:
    """A frame of code in these folders, or of a kernel, shows neither names nor callers, and is nobody's caller.

    A kernel's is known by its builtins, which are its own.
    """
    names = _names(FrameType)
    code_of, builtins_of, back = (names[name].__get__ for name in ("f_code", "f_builtins", "f_back"))
    plainly = vars(builtins)

    def hidden(frame: Any) -> bool:
        return code_of(frame).co_filename.startswith(folders) or builtins_of(frame) is not plainly

    def caller(frame: Any) -> Any:
        found = back(frame)
        return None if found is None or hidden(frame) or hidden(found) else found

    for name in HELD:

        def held(frame: Any, own: Any = names[name].__get__) -> Any:
            return {} if hidden(frame) else own(frame)

        names[name] = property(held)
    names["f_back"] = property(caller)
    _changed(FrameType)


def hide_functions(folder: str) -> None:
    """What functions whose code lies in this folder hold is not shown, and cannot be set."""
    code_of = FunctionType.__code__.__get__
    for name in INSIDE:
        own = _names(FunctionType)[name]

        def get(function: Any, own: Any = own) -> Any:
            if code_of(function).co_filename.startswith(folder):
                raise AttributeError(REFUSED)
            return own.__get__(function)

        def put(function: Any, value: Any, own: Any = own) -> None:
            if code_of(function).co_filename.startswith(folder):
                raise AttributeError(REFUSED)
            own.__set__(function, value)

        _names(FunctionType)[name] = property(get, put)
    _changed(FunctionType)


def hide_classes() -> None:
    """`__subclasses__` leaves the machinery's classes out."""
    listed = type.__subclasses__

    def subclasses(kind: type) -> list[type]:
        return [one for one in listed(kind) if not _is_ours(one)]

    _names(type)["__subclasses__"] = subclasses
    _changed(type)


def freeze(kinds: list[type]) -> None:
    """No attribute of these classes can be set any more."""
    for kind in kinds:
        flags = ctypes.c_ulong.from_address(id(kind) + FLAGS_AT)
        if flags.value == kind.__flags__:
            flags.value |= IMMUTABLE
            _changed(kind)


_module_of = type.__dict__["__module__"].__get__


def _is_ours(kind: type) -> bool:
    module = _module_of(kind)
    return isinstance(module, str) and module.startswith(OURS)


def _names(kind: type) -> dict[str, Any]:
    """The dict behind a type's read-only view of it."""
    view = kind.__dict__
    assert type(view) is MappingProxyType
    return gc.get_referents(view)[0]


def _changed(kind: type) -> None:
    """Python forgets what it remembers of a type's attributes."""
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(kind))


def supported() -> bool:
    """Whether this Python is one whose types are laid out like this."""
    return sys.implementation.name == "cpython" and (3, 10) <= sys.version_info < (3, 14)
