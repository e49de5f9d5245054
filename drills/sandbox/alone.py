"""Puts a worker's, or a gate's, machinery out of graded code's reach, before that is loaded: no boundary but a hurdle.

What runs in one process can be reached in it, by whoever tries hard enough. So nothing that decides about values is
here, and what the instruments say is believed only as far as DESIGN says. But `import drills`, the garbage collector's
list of all objects and the callers' frames are no ways in.
"""

from __future__ import annotations

import os
import re
import sys
import threading
from types import FrameType
from typing import Any

from drills.sandbox import visible

NEVER = {
    "gc.get_objects", "gc.get_referrers", "gc.get_referents",
    "sys._current_frames", "sys._current_exceptions", "sys.settrace", "sys.setprofile",
    "sys.monitoring.register_callback", "cpython.PyInterpreterState_New",
}  # fmt: skip
"""Audit events of what nothing in a worker has a use for."""

OF_ITS_TESTS = re.compile(r"(^|\.)(_test\w*capi|_testbuffer|_xx\w+|_interp\w+)$")
"""Modules that Python tests itself with, which show everything, or that start interpreters, which know no hook."""

OF_PYTHON = ("Py", "_Py", "dlsym", "dlvsym")
"""Functions of Python's own library, among them those that hand out frames and threads' states; and what finds them."""

LOOKED_UP = ("ctypes.dlsym", "ctypes.dlsym/handle")
HAND_FRAMES_ON = tuple(os.path.join(os.path.dirname(os.__file__), f"{name}.py") for name in ("inspect", "traceback"))
TRUSTED = (*(folder + os.sep for folder in [*visible.code(), *visible.spelled(), str(visible.DRILLS)]), "<frozen ")
REFUSED = "graded code may not look into the process that runs it (a debugger may, with --debug)"
_caller = FrameType.f_back.__get__
NO_DEBUGGER = "breakpoint() needs the grader's --debug, where your code runs on this terminal"


def hide_machinery() -> None:
    """No import leads to the grader any more, nor to what lies in its repository."""
    for name in [name for name in sys.modules if name.split(".")[0] == "drills"]:
        del sys.modules[name]
    sys.path[:] = [path for path in sys.path if path and os.path.realpath(path) != str(visible.ROOT)]
    sys.path_importer_cache.clear()


def refuse_debugger() -> None:
    """A breakpoint() left in graded code says what to do: nobody is at this process's terminal."""

    def refuse(*_: Any, **__: Any) -> None:
        raise RuntimeError(NO_DEBUGGER)

    sys.breakpointhook = refuse


def refuse_looks() -> None:
    """An audit hook, which nothing removes: PermissionError for NEVER, and for frames asked for by graded code."""
    busy: set[int] = set()
    own, frame_of = threading.get_ident, sys._getframe

    def asked_from_outside() -> bool:
        frame = frame_of(2)
        while frame is not None and frame.f_code.co_filename in HAND_FRAMES_ON:
            frame = _caller(frame)
        return frame is not None and not frame.f_code.co_filename.startswith(TRUSTED)

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event in NEVER:
            raise PermissionError(REFUSED)
        if event == "import" and OF_ITS_TESTS.search(str.__str__(arguments[0])):
            raise PermissionError(REFUSED)
        if event == "sys.addaudithook":
            raise RuntimeError(REFUSED)  # Python then leaves the new hook out, and says nothing
        if event in LOOKED_UP and isinstance(arguments[1], str) and arguments[1].startswith(OF_PYTHON):
            raise PermissionError(REFUSED)
        if event == "sys._getframe" or (event == "object.__getattr__" and arguments[1] == "tb_frame"):
            if own() in busy:
                return
            busy.add(own())
            try:
                if asked_from_outside():
                    raise PermissionError(REFUSED)
            finally:
                busy.discard(own())

    sys.addaudithook(hook)
