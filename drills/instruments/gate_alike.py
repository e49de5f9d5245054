"""Which launches of a kernel Triton's front end need not see because it has seen others like them.

Two launches are the same to it if types, flags and all that `gate_walk` notes are the same. Of the others, so many are
chosen that nothing is left that they could fail by. With the same way through the text (the same tests of constants
have the same result) and the same types, what differs are numbers, and it can fail by

- a value that counts as it is ("is"): each is seen, on each way;
- a constant that is not known, since it is made of others, or of types, in a way that is not understood ("mixed"): all
  that it is made of is seen together, and if it is a tensor's extent, together with the other extents;
- a constant that meets tensors ("within"): one between each two limits is seen, on each way;
- an extent of a tensor ("side"): one that is no power of two is seen itself, and so is 1, which fits everything;
- extents that do not fit each other: of each two, it is seen that they are equal, that they differ, that one is 1;
  and so are those that are written in the text as numbers;
- too large a tensor: none has more than 2^20 elements, so where extents are so large, each is seen itself;
- something that grows or shrinks with all of them: the largest and the smallest on each way are seen.

Types and flags: of each two arguments, all pairs of types are seen, and each type on each way. Where a kernel uses a
word to which extents matter in other ways (reshapes, scans: whatever is not known to be plain), each extent is seen
itself, and the largest and the smallest for each set of types; where it multiplies tiles, each extent below 32. Text
that `gate_walk` does not understand is seen for every launch.
"""

from __future__ import annotations

import builtins
import itertools
import json
import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from drills.instruments.gate_bodies import file_of
from drills.instruments.gate_kinds import RANGE, TENSOR, TYPES, Kind, Known, Note, Unclear
from drills.instruments.gate_spec import POINTS, Spec, is_size
from drills.instruments.gate_text import Text, first
from drills.instruments.gate_walk import Walk

OF_TYPES = Kind(frozenset([TYPES]))
SCALARS = (int, bool, float, type(None))

LARGE = 1 << 20
"""Elements of a tensor, at most."""

DOT = 32
"""Elements that any product takes."""

WIDE = 1 << 10
"""An extent whose square may be as large."""


@dataclass(frozen=True)
class View:
    """What the front end sees of a launch. group: the kernel. traits: what it could fail by, as hashes.

    way: of which the largest and the smallest are seen. size: by which they are. mode: the way, as far as sizes and
    types decide it. extents: of the constants that what is made depends on, the sizes. most: elements of its largest
    tensor, at most.
    """

    group: str
    traits: frozenset[int]
    way: int
    size: int
    mode: int = 0
    extents: tuple[tuple[str, int], ...] = ()
    most: float = math.inf

    def covers(self, other: View) -> bool:
        """Whether the other does the same in no place with more."""
        mine = dict(self.extents)
        return self.mode == other.mode and all(mine.get(name, 0) >= value for name, value in other.extents)


def view(text: Text, spec: Spec) -> View:
    """Of a launch of a kernel in this file. One in four is another's but for alignment, warps and stages."""
    if spec.front not in text.views:
        text.views[spec.front] = _view(text, spec)
    return text.views[spec.front]


def _view(text: Text, spec: Spec) -> View:
    group = json.dumps([spec.kernel, spec.line, spec.options, spec.closure, spec.names], sort_keys=True)
    kinds = _kinds(spec)
    try:
        _as_written(text, spec)
        walk = Walk(text, spec.line, _given(spec), tuple(kinds), *_circumstances(text, spec))
    except (Unclear, RecursionError):
        alone = hash((group, spec.front))
        return View(group, frozenset([alone]), alone, 0, extents=_sizes(spec, spec.constants))
    way = hash((group, tuple((note.value, note.place) for note in walk.notes if note.how == "if")))
    extents = [value for value, _ in {(note.value, note.of) for note in walk.notes if note.how == "side"}]
    size = math.prod(one for one in extents if one > 0)
    traits = {hash(("types", group, *pair)) for pair in itertools.combinations(kinds, 2)}
    traits |= {hash(("type", way, one)) for one in kinds}
    traits |= {hash(("value", way, _told(note, walk))) for note in walk.notes}
    traits |= {hash(("fit", way, *one)) for one in _fits(walk.notes)}
    if walk.blurred:
        joint = walk.blurred.union(*(note.of for note in walk.notes if note.how == "side"))
        traits.add(hash(("blurred", way, walk.those(joint))))
    if size > LARGE or any(one > WIDE for one in extents):
        traits.add(hash((group, spec.front)))
    pointers = tuple(one for one in kinds if walk.strict and POINTS.search(one[1]))
    counted = ("side", "is") if walk.strict else ("side",)
    made_of = walk.blurred.union(*(note.of for note in walk.notes if note.how in counted))
    mode, extents = _mode(walk, spec), _sizes(spec, made_of)
    return View(group, frozenset(traits), hash((way, pointers)), size, mode, extents, _most(walk, extents))


def enough(views: Sequence[View], seen: Collection[int]) -> list[int]:
    """Which of these must be seen besides those that are, by number, so that what is said above holds."""
    left = frozenset().union(*(one.traits for one in views))
    chosen: list[int] = []
    sizes: dict[int, list[int]] = {}
    for number, one in enumerate(views):
        sizes.setdefault(one.way, []).append(number)
    for numbers in sizes.values():
        for end in (max, min):
            size = end(views[number].size for number in numbers)
            ends = [number for number in numbers if views[number].size == size]
            if not any(number in seen or number in chosen for number in ends):
                chosen.append(ends[0])
    for number in (*seen, *chosen):
        left -= views[number].traits
    while left:
        best = max(range(len(views)), key=lambda number: len(views[number].traits & left))
        left -= views[best].traits
        chosen.append(best)
    return chosen


def _sizes(spec: Spec, names: Iterable[str]) -> tuple[tuple[str, int], ...]:
    """Those of these constants that are sizes."""
    held = ((name, spec.constants.get(name)) for name in sorted(names))
    return tuple((name, value) for name, value in held if is_size(value))


def _mode(walk: Walk, spec: Spec) -> int:
    """What is the same for launches that do the same in tiles of different sizes. Flags are left out."""
    tests = [note for note in walk.notes if note.how == "if"]
    decided = [note for note in tests if TYPES in note.of or _sizes(spec, note.of)]
    types = walk.those([TYPES]) if TYPES in walk.blurred else ()
    return hash((types, *((note.value, note.place) for note in decided)))


def _most(walk: Walk, extents: tuple[tuple[str, int], ...]) -> float:
    """The most elements of a tensor: of all ranges together, of all extents together, or of one that is filled."""
    if walk.blurred:
        return math.inf
    ranges = math.prod(note.value for note in walk.notes if note.how == "side" and note.place[-1] == RANGE)
    shapes: dict[Any, list[int]] = {}
    for note in walk.notes:
        if note.how == "side":
            shapes.setdefault(note.place[:-1], []).append(note.value)
    spanned = math.prod(value for _, value in extents)
    return math.prod(walk.literals) * max([ranges, spanned, *map(math.prod, shapes.values())])


def _given(spec: Spec) -> dict[str, Any]:
    """What the kernel's parameters are, for `Walk`."""
    given: dict[str, Any] = {name: TENSOR for name, kind in spec.signature.items() if isinstance(kind, str)}
    given |= {name: OF_TYPES for name, kind in spec.signature.items() if not isinstance(kind, str)}
    given |= {name.partition(".")[0]: OF_TYPES for name in spec.constants}
    plain = {name: value for name, value in spec.constants.items() if type(value) in SCALARS and "." not in name}
    return given | {name: Known(value, frozenset([name])) for name, value in plain.items()}


def _as_written(text: Text, spec: Spec) -> None:
    """`Unclear` if a helper of the text, or a word of Python's, is by its name something else where the kernel runs."""
    helpers = {name: f"{name}, line {first(one)}" for name, one in file_of(text).helpers.items()}
    for name, said in spec.names.items():
        path = name.partition(" in ")[0]
        if path == "builtins" or hasattr(builtins, path) or helpers.get(path, said) != said:
            raise Unclear


def _circumstances(text: Text, spec: Spec) -> tuple[bool, bool]:
    """Whether tl is what the text says, and whether there are integers of 8 bits."""
    small = text.says_eight or any("8" in str(kind) for kind in spec.signature.values())
    return not any(name.startswith("tl") for name in spec.names), small


def _kinds(spec: Spec) -> list[tuple[str, str]]:
    """Every parameter's type, or its value if that is no size."""
    kinds = {name: json.dumps(kind) for name, kind in spec.signature.items()}
    for name, value in spec.constants.items():
        kinds[name] = "a size" if type(value) is int and "." not in name else json.dumps(value)
    return sorted(kinds.items())


def _told(note: Note, walk: Walk) -> Any:
    """A note, without the value of an extent that is a power of two like others."""
    value = note.value
    least = DOT if walk.multiplies else 2
    plain = note.how == "side" and not walk.strict and value >= least and not value & (value - 1)
    return ("a power of two", note.place) if plain and value not in walk.literals else note[:3]


def _fits(notes: Iterable[Note]) -> Iterator[Any]:
    """How numbers that count compare, two at a time."""
    numbers = dict.fromkeys((note.place, note.value) for note in notes if note.how in ("side", "is"))
    for (one, a), (other, b) in itertools.combinations(numbers, 2):
        yield one, other, a == b, a == 1, b == 1
