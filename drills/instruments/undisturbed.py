"""A time in which torch does what it is told, by its own kernels alone, whatever graded code has put in their way.

Graded code may leave modes on torch's stacks, below the instruments' own or after its call, hand over tensors of a
class that dispatches, switch on the dispatcher that Python can be registered with, or include further keys. None of
these is asked within, whether the instruments compute something or run what graded code has asked for.
"""

from __future__ import annotations

from typing import Any

import torch

_C, _Key = torch._C, torch._C.DispatchKey
_Unheard, _Heard, _Forced = _C.DisableTorchFunction, _C._EnableTorchFunction, _C._ForceDispatchKeyGuard
_included, _excluded = _C._dispatch_tls_local_include_set, _C._dispatch_tls_local_exclude_set
_Keys = _C.DispatchKeySet


def keys() -> tuple[Any, Any]:
    """What torch's dispatcher looks at beyond the tensors' own keys, and what it leaves aside, in this thread."""
    return _included(), _excluded()


INCLUDED = _included()
"""What torch's dispatcher always looks at, as it is before any graded code."""

PLAIN = _excluded() | _Keys(_Key.Python) | _Keys(_Key.PythonTLSSnapshot)
"""What it leaves aside within: modes and classes that dispatch."""

BELOW_MODES = PLAIN | (_C._dispatch_keyset_full() - _C._dispatch_keyset_full_after(_Key.Python))
"""And what torch itself has left behind by the time that it calls a mode."""


class Undisturbed:
    """Such a time. excluded: keys that the dispatcher leaves aside. outside: its keys as they were before."""

    def __init__(self, excluded: Any = PLAIN) -> None:
        self.excluded = excluded

    def __enter__(self) -> Undisturbed:
        self.outside = keys()
        self.guards = _Unheard(), _Forced(INCLUDED, self.excluded)
        for guard in self.guards:
            guard.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        for guard in reversed(self.guards):
            guard.__exit__(*error)


class AsOutside:
    """Within such a time, one in which everybody is asked again. outside: as `Undisturbed` found it."""

    def __init__(self, outside: tuple[Any, Any]) -> None:
        self.guards = _Heard(), _Forced(*outside)

    def __enter__(self) -> None:
        for guard in self.guards:
            guard.__enter__()

    def __exit__(self, *error: Any) -> None:
        for guard in reversed(self.guards):
            guard.__exit__(*error)
