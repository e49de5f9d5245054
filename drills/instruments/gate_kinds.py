"""What a walk through a kernel's text (see `gate_walk`) knows of a value, and what it notes of one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple


class Unclear(Exception):
    """Text that is not understood here."""


TYPES = "the types"
"""Stands among sizes for what depends on arguments' types."""


RANGE = "a range"
"""Stands where others say which of several extents a "side" is."""


class Note(NamedTuple):
    """Something that counts. how: "side", "is", "if", "within" or "mixed". place: the calls, and where. of: its sizes.

    Of what is mixed, the value is that of all that it depends on, in which TYPES may be. An "if" may be so.
    """

    how: str
    value: Any
    place: tuple[Any, ...]
    of: frozenset[str]


@dataclass(frozen=True)
class Known:
    """A constant of this value. sizes: which parameters' values it is computed of; none if it stands in the text."""

    value: Any
    sizes: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Kind:
    """What is no known constant. sizes: if it is an unknown one, all that it is computed of, and TYPES."""

    sizes: frozenset[str] = frozenset()
    tensor: bool = False


TENSOR, OTHER = Kind(tensor=True), Kind()
"""A tensor for sure; anything."""


SHAPE = Kind(frozenset(["a shape"]))
"""A tensor's extents, as they are: they count where they came from."""


def mixed(*kinds: Any) -> Kind:
    """What is computed of these in a way that is not known."""
    return Kind(frozenset().union(*(mixed(*one).sizes if isinstance(one, tuple) else one.sizes for one in kinds)))
