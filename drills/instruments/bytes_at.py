"""Memory as bytes, by a function that graded code cannot replace: Python's `string_at` looks its reader up by name."""

from __future__ import annotations

from _ctypes import _string_at_addr
from ctypes import PYFUNCTYPE, c_int, c_void_p, py_object

bytes_at = PYFUNCTYPE(py_object, c_void_p, c_int)(_string_at_addr)
"""So many bytes from an address on."""
