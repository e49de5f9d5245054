"""Ctrl-C is KeyboardInterrupt while a command runs, and ends the process without a word before and after that.

Python drops a KeyboardInterrupt that falls into a callback (of a module's import lock, say) and prints a traceback of
it; here it comes again a moment later. Must never import anything heavy.
"""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from collections.abc import Iterator
from typing import Any

AGAIN_SECONDS = 0.02


@contextlib.contextmanager
def interrupts() -> Iterator[None]:
    """Within, Ctrl-C raises KeyboardInterrupt; afterwards it means what it meant before. Of use in the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before, hook = signal.signal(signal.SIGINT, signal.default_int_handler), sys.unraisablehook
    sys.unraisablehook = _again
    try:
        yield
    finally:
        sys.unraisablehook = hook
        signal.signal(signal.SIGINT, before)


def _again(dropped: Any) -> None:
    if not issubclass(dropped.exc_type, KeyboardInterrupt) or not hasattr(signal, "setitimer"):
        sys.__unraisablehook__(dropped)
        return
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, AGAIN_SECONDS)
