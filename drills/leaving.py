"""The end of `grade.py`: at once, since Python would take half a second to take torch apart.

Must never import anything heavy.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
from typing import NoReturn


def leave(code: int) -> NoReturn:
    """What was registered for the end is done, what was printed is written; then the process is gone."""
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)
