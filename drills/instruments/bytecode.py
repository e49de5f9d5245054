"""What Python's code does, read by tables that are what they were before graded code was loaded.

Python's reader of its own code looks names up in lists that anybody can write to.
"""

from __future__ import annotations

import dis
import opcode
from collections.abc import Iterator
from types import CodeType

_read = dis.get_instructions
_tables = [
    (table, table.copy())
    for module in (dis, opcode)
    for table in vars(module).values()
    if type(table) in (list, dict, set) and table is not vars(module).get("__builtins__")
]


def instructions(code: CodeType) -> Iterator[dis.Instruction]:
    """The instructions of this code; RuntimeError where the tables are no longer what they were."""
    if any(table != before for table, before in _tables):
        raise RuntimeError("Python's tables of its own code were changed")
    return _read(code)
