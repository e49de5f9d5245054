"""Triton's interpreter, repaired and recorded: the only place that touches Triton's internals.

On a version that it does not know it changes nothing and says so. On a GPU (no TRITON_INTERPRET) it only notes
launches.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drills.instruments.notes import Status
from drills.instruments.settings import PLACE, UNCHANGED

if TYPE_CHECKING:
    from drills.instruments.interpreter.compiled import Launches
    from drills.instruments.interpreter.kernel import Machine

KNOWN = ("3.6.", "3.7.")
_machines: list[Machine | Launches] = []


def install() -> Status:
    """Repair and record, once for this process."""
    import numpy
    import torch
    import triton

    from drills.instruments import peeks

    versions = {"triton": triton.__version__, "torch": torch.__version__, "numpy": numpy.__version__}
    interprets = triton.knobs.runtime.interpret
    if not triton.__version__.startswith(KNOWN):
        where = "plain interpreter" if interprets else "on a GPU"
        return Status(False, f"triton {triton.__version__} is not known: {where}, no recorder", versions)
    if not _machines:
        _machines.append(_machine() if interprets else _launches())
    if not interprets:
        return Status(False, "on a GPU there is no recorder: guard zones and poison remain", versions)
    peeks.listen(None)  # its audit hook has to be there before others are refused
    return Status(True, "interpreter repaired and recorded", versions)


def remember(names: dict[str, Any]) -> None:
    """The graded file is loaded: what its names stand for now, its kernels may use."""
    for made in _machines:
        made.loaded = dict(names)
        changed = made.settings.changed()
        made.told = {PLACE: changed} if changed != UNCHANGED else {}


def machine() -> Machine | Launches | None:
    """What tells of this process's launches; None where nothing does."""
    return _machines[0] if _machines else None


def _machine() -> Machine:
    from drills.instruments.interpreter.device import tell_target
    from drills.instruments.interpreter.kernel import Machine, replace
    from drills.instruments.interpreter.language import Language
    from drills.instruments.interpreter.meaning import Meaning, Semantic
    from drills.instruments.interpreter.memory import Builder

    tell_target()
    builder = Builder()
    semantic = Semantic(builder)
    meaning = Meaning(semantic)
    made = Machine(builder, Language(semantic, meaning), meaning)
    replace(made)
    return made


def _launches() -> Launches:
    from drills.instruments.interpreter.compiled import Launches, replace

    made = Launches()
    replace(made)
    return made
