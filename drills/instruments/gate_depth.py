"""How far through Triton's compiler a kernel is taken."""

from __future__ import annotations

from enum import IntEnum


class Depth(IntEnum):
    """Each depth tells all that the ones before it tell.

    FRONT: Python made into IR and verified: what is no kernel is refused there.
    LOWERED: all of Triton's own passes, up to LLVM's instructions: shared memory and TF32 are known.
    FULL: machine code by LLVM and ptxas: registers, spills and access widths too.
    """

    FRONT = 0
    LOWERED = 1
    FULL = 2

    @property
    def shown(self) -> str:
        """For people and for reports."""
        return ("front end", "lowered", "machine code")[self]
