"""The instruments around one call of graded code: a recorder in Triton's interpreter, guard zones, poison, purity.

    status = install()                                  once, before the graded file is imported
    interpreter.remember(vars(module))                  once, when it is imported
    placed = place(args, device, names)                 arguments in guarded memory
    with recording(options, inputs) as record:          one call
        results = function(*placed.args)
    notes = record.notes(results)                       launches and findings
    findings = placed.findings(inplace)                 guards touched, inputs changed

Importing this package imports neither torch nor triton: the parent reads notes and must stay light.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from drills.instruments.notes import CallOptions, Status

if TYPE_CHECKING:
    import torch

    from drills.instruments.guards import Placed
    from drills.instruments.one_call import Recording


def install() -> Status:
    """Put the recorder and the repairs into Triton, for the life of this process; says whether they are on.

    With TRITON_INTERPRET=1 in the environment before Triton is imported, the interpreter is instrumented; without it,
    launches on a GPU are noted and nothing else.
    """
    from drills.instruments import interpreter

    return interpreter.install()


def place(args: Any, device: str | torch.device = "cpu", names: Iterable[str] = ()) -> Placed:
    """Copies of the arguments with the same strides between guard zones; see `guards.place`."""
    from drills.instruments import guards

    return guards.place(args, device, names)


def recording(options: CallOptions, inputs: dict[str, Any], inplace: Iterable[str] = ()) -> Recording:
    """A context manager around one call of a graded function.

    inputs: argument name → tensor or nested lists of tensors, as placed. inplace: names of the arguments that the
    function may write to. After the call, whether it returned or raised, `Recording.notes(results)` tells what was
    seen; results is None if it raised.
    """
    from drills.instruments.one_call import Recording

    return Recording(options, inputs, inplace)
