"""What a graded file sets of Triton's settings when it is loaded: a kernel is compiled by these, too.

A file is loaded twice, to run and to be compiled; what it sets must be the same both times. Some settings are
functions, which could do anything to what is compiled.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Any

PLACE = "Triton's settings"
"""Among the names of a kernel: under what it is told which settings the file has changed."""

UNCHANGED = "as they were"
PYTHON = "a Python function"
GROUPS = ("language", "compilation", "nvidia", "runtime")
PREFIXES = ("MLIR_", "LLVM_", "DISABLE_", "PTXAS_")
"""Of variables that the compiler asks for by itself."""

OF_LAUNCHES = ("launch_", "kernel_load_", "jit_")
"""How settings begin that say what happens when a kernel is launched or loaded."""

NOT_TOLD = ("TRITON_INTERPRET", "TRITON_DUMP_PTXAS_LOG", "nvidia.dump_ptxas_log")
"""By the first we run kernels, by the others we ask for figures."""

PLAIN = (bool, int, float, str)


class Settings:
    """As they are now. Make it before graded code is loaded."""

    def __init__(self) -> None:
        knobs = getattr(sys.modules.get("triton"), "knobs", None)
        self.groups = {name: vars(knobs)[name] for name in GROUPS if knobs is not None and name in vars(knobs)}
        kinds = [vars(type(group)).values() for group in self.groups.values()]
        keys = [getattr(one, "key", None) for held in kinds for one in held]
        self.variables = frozenset(key for key in keys if isinstance(key, str))
        self.before = dict(self._all())

    def changed(self) -> str:
        """Which have changed since then, as text; UNCHANGED if none has."""
        now = dict(self._all())
        names = sorted(name for name in now.keys() | self.before.keys() if now.get(name) != self.before.get(name))
        return ", ".join(f"{name} = {now.get(name, 'unset')}" for name in names) or UNCHANGED

    def _all(self) -> Iterator[tuple[str, str]]:
        for name, text in os.environ.items():
            if (name in self.variables or name.startswith(PREFIXES)) and name not in NOT_TOLD:
                yield name, repr(text)
        for group, held in self.groups.items():
            for name, value in vars(held).items():
                if not name.startswith(OF_LAUNCHES) and f"{group}.{name}" not in NOT_TOLD:
                    yield f"triton.knobs.{group}.{name}", _text(value)


def _text(value: Any) -> str:
    if value is None or type(value) in PLAIN:
        return repr(value)
    return PYTHON
