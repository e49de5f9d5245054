"""What the compiled code says of itself: access widths from the PTX, registers and spills from ptxas's log.

Text in, numbers out: this module runs nothing and imports neither torch nor triton. Triton's PTX carries a `.loc`
before each access, and its IR says how many elements the statement on that line loads; together they tell how wide the
loads are *that move most*, not merely the widest or the commonest instruction.

>>> accesses('''.file 1 "/x" "k.py"
...     .loc 1 31 9
...     @%p1 ld.global.v4.b32 { %r1, %r2, %r3, %r4 }, [ %rd1 + 0 ];''')
[Access(kind='load', width=16, place=('k.py', 31))]
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

Place = tuple[str, int]
"""File's base name and line."""

LOC = re.compile(r"^\s*\.loc\s+(\d+)\s+(\d+)")
FILE = re.compile(r'^\s*\.file\s+(\d+)\s+(?:"[^"]*"\s+)?"([^"]*)"')
PLAIN = re.compile(r"\b(ld|st)\.global((?:\.\w+|::\w+)*)\s")
ASYNC = re.compile(r"\bcp\.async\.c[ag]\.shared\.global[^,]*,[^,]*,\s*(0x[0-9a-fA-F]+|\d+)")
BULK = re.compile(r"\bcp\.async\.bulk\.tensor\.\S*?(?:shared::cluster|shared::cta|global)\.(global|shared::cta)")
TF32 = re.compile(r"\.tf32[.\s]")
BULK_WIDTH = 16
"""Bytes: a tensor-memory copy moves whole 16-byte units and no thread's registers."""

IR_ACCESS = re.compile(r"\btt\.(load|store|descriptor_load|descriptor_store)\b.*?: (.*?) loc\((#loc\w*)\)")
IR_TENSOR = re.compile(r"(?:tensor<((?:\d+x)*)|^)(?:!tt\.ptr<)?([a-z]+)(\d+)")
IR_LOC = re.compile(r"^(#loc\w*) = loc\((.*)\)\s*$", re.MULTILINE)
IR_PLACE = re.compile(r'"([^"]+)":(\d+):\d+')
IR_TF32 = re.compile(r"\btt\.dot\b.*inputPrecision = tf32(?![x\w])")
WIDE_TF32 = re.compile(IR_TF32.pattern + r".*tensor<[\dx]*xf32> \*")
"""The same of float32: of float16 every value is one of TF32's."""

REGISTERS = re.compile(r"Used (\d+) registers")
SPILLS = re.compile(r"(\d+) bytes spill stores, (\d+) bytes spill loads")


@dataclass(frozen=True)
class Access:
    """One global memory instruction: kind "load" or "store", bytes a thread, and where it stands in the source."""

    kind: str
    width: int
    place: Place | None


@dataclass
class Figures:
    """Numbers of one compiled kernel. Widths in bytes a thread an instruction, 0 where there is no such access.

    loads, stores: width → number of instructions. tile: elements of the widest-reaching load, over all threads.
    spills: bytes stored plus bytes loaded. shared: bytes a block. tf32: a float32 product is rounded to 10 bits.
    """

    load_width: int = 0
    store_width: int = 0
    loads: dict[int, int] = field(default_factory=dict)
    stores: dict[int, int] = field(default_factory=dict)
    tile: int = 0
    registers: int = 0
    spills: int = 0
    shared: int = 0
    tf32: bool = False


def figures(ttir: str, ptx: str, log: str, shared: int) -> Figures:
    """The numbers of one kernel from its IR, its PTX, ptxas's log and its shared memory in bytes."""
    seen = accesses(ptx)
    moved = statements(ttir)
    loads = {place: size for (kind, place), size in moved.items() if kind == "load"}
    stores = {place: size for (kind, place), size in moved.items() if kind == "store"}
    most = max(loads.values(), default=(0, 0))
    return Figures(
        load_width=main_width(seen, "load", loads),
        store_width=main_width(seen, "store", stores),
        loads=dict(sorted(Counter(a.width for a in seen if a.kind == "load").items())),
        stores=dict(sorted(Counter(a.width for a in seen if a.kind == "store").items())),
        tile=most[1],
        registers=max((int(n) for n in REGISTERS.findall(log)), default=0),
        spills=sum(int(stored) + int(loaded) for stored, loaded in SPILLS.findall(log)),
        shared=shared,
        tf32=bool(TF32.search(ptx) and IR_TF32.search(ttir)),
    )


def accesses(ptx: str) -> list[Access]:
    """Every global load and store of the PTX, in its order; atomics are not counted."""
    files: dict[str, str] = dict(re.findall(FILE.pattern, ptx, re.MULTILINE))
    place: Place | None = None
    found = []
    for line in ptx.splitlines():
        if loc := LOC.match(line):
            place = (files.get(loc[1], "").rsplit("/", 1)[-1], int(loc[2]))
        elif plain := PLAIN.search(line):
            found.append(Access("load" if plain[1] == "ld" else "store", plain_width(plain[2]), place))
        elif copy := ASYNC.search(line):
            found.append(Access("load", int(copy[1], 0), place))
        elif bulk := BULK.search(line):
            found.append(Access("load" if bulk[1] == "global" else "store", BULK_WIDTH, place))
    return found


def plain_width(suffix: str) -> int:
    """Bytes of ".L1::evict_first.v4.b32": 16."""
    lanes = re.search(r"\.v(\d+)", suffix)
    bits = re.search(r"\.[busf](\d+)(?!.*\.[busf]\d)", suffix)
    return (int(lanes[1]) if lanes else 1) * (int(bits[1]) if bits else 8) // 8


def statements(ttir: str) -> dict[tuple[str, Place], tuple[int, int]]:
    """(kind, place) → (bytes, elements) of the largest access that the IR holds at that place."""
    places = dict(IR_LOC.findall(ttir))
    found: dict[tuple[str, Place], tuple[int, int]] = {}
    for kind, types, loc in IR_ACCESS.findall(ttir):
        place = locate(loc, places)
        size = max((tensor_size(part) for part in types.split("->")), default=(0, 0))
        if place:
            key = ("load" if kind.endswith("load") else "store", place)
            found[key] = max(found.get(key, (0, 0)), size)
    return found


def tensor_size(text: str) -> tuple[int, int]:
    """(bytes, elements) of "tensor<8x128x!tt.ptr<f16>>" or "!tt.ptr<f32>"."""
    best = (0, 0)
    for shape, _, bits in IR_TENSOR.findall(text.strip()):
        elements = 1
        for n in shape.split("x"):
            elements *= int(n or 1)
        best = max(best, (elements * max(int(bits), 8) // 8, elements))
    return best


def locate(loc: str, places: dict[str, str]) -> Place | None:
    """File and line that a "#loc12" stands for, through names and call sites (the innermost)."""
    for _ in range(8):
        text = places.get(loc, "")
        if place := IR_PLACE.search(text):
            return place[1].rsplit("/", 1)[-1], int(place[2])
        inner = re.search(r"#loc\w*", text)
        if not inner:
            return None
        loc = inner[0]
    return None


def main_width(seen: list[Access], kind: str, moved: dict[Place, tuple[int, int]]) -> int:
    """Width of the accesses on the lines that move most bytes; where no line matches, of those that add up to most."""
    mine = [access for access in seen if access.kind == kind]
    most = max((size for place, size in moved.items() if any(a.place == place for a in mine)), default=None)
    if most is not None:
        return max(a.width for a in mine if a.place is not None and moved.get(a.place) == most)
    total = Counter()
    for access in mine:
        total[access.width] += access.width
    return max(total, key=lambda width: (total[width], width), default=0)
