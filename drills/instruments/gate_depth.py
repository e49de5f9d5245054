"""How far through Triton's compiler a kernel is taken."""

from __future__ import annotations

from enum import IntEnum


class Depth(IntEnum):
    """Each depth tells all that the ones before it tell.

    FRONT: Python made into IR and verified: what is no kernel is refused there.
    TILES: Triton's passes that know no target yet: whether a float32 product may become TF32 is known; if one may, it
    is LOWERED.
    LOWERED: all of Triton's own passes that can refuse, up to LLVM's instructions: shared memory and TF32 are known.
    FULL: machine code by LLVM and ptxas: registers, spills and access widths too.
    """

    FRONT = 0
    TILES = 1
    LOWERED = 2
    FULL = 3

    @property
    def shown(self) -> str:
        """For people and for reports."""
        return ("front end", "tile passes", "lowered", "machine code")[self]
