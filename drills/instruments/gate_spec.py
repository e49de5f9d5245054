"""What is to be compiled: one distinct specialisation, taken from a launch's notes and checked.

Launch notes come from the process that ran graded code, so every field is checked and capped here before it is used.
Imports neither torch nor triton. Also says which specialisations stand for others like them (see `family` and `rank`).
"""

from __future__ import annotations

import functools
import json
import math
import re
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

from drills.instruments.constants import are_fields
from drills.instruments.notes import Launch

MAX_PARAMETERS = 200
MAX_BYTES = 20_000
MAX_DEPTH = 8
MAX_SHOWN = 90
MAX_SAID = 400
NAME = re.compile(r"[A-Za-z_]\w{0,99}")
PATH = re.compile(r"[A-Za-z_]\w{0,99}(\.\d{1,3})*")
TYPE = re.compile(r"[\w*<>\[\], ]{1,200}")
POINTS = re.compile(r"\*|tensordesc")
INTEGER = re.compile(r"\bk?u?i\d+\b")
SIXTEEN = re.compile(r"\bk?(fp16|bf16)\b")
HALF = re.compile(r"\*k?(fp16|bf16|fp8\w*)$")


class Malformed(ValueError):
    """Notes of a form that no instrument writes."""


@dataclass(frozen=True)
class Spec:
    """One specialisation of one kernel. The fields are those of `notes.Launch`, checked; `text` is their JSON."""

    kernel: str
    line: int
    signature: dict[str, Any]
    constants: dict[str, Any]
    divisible: tuple[str, ...]
    num_warps: int
    num_stages: int
    options: dict[str, Any]
    closure: dict[str, Any]
    names: dict[str, str]

    @cached_property
    def text(self) -> str:
        """The same specialisation always gives the same text."""
        return json.dumps(self.to_json(), sort_keys=True, allow_nan=False)

    @cached_property
    def anywhere(self) -> str:
        """The text, wherever in its file the kernel and what it names stand."""
        return json.dumps({**self.to_json(), "line": 0, "names": {}}, sort_keys=True, allow_nan=False)

    @cached_property
    def front(self) -> str:
        """Text of all that the front end looks at: neither alignment nor warps nor stages."""
        return json.dumps({**self.to_json(), "divisible": (), "num_warps": 0, "num_stages": 0}, sort_keys=True)

    def to_json(self) -> dict[str, Any]:
        """A JSON-able dict of all fields. It shares them with this object: for reading only."""
        return {one.name: getattr(self, one.name) for one in fields(self)}

    def family(self, products: bool, atomics: bool, targets: frozenset[str] | None = None) -> str:
        """Text shared by specialisations that differ in sizes and alignment only.

        products, atomics: what the kernel does. Either makes warps and stages count; products whether values have 16
        bits or more: float16 and bfloat16 take the same registers and bytes; atomics the types of those pointers that
        their targets depend on. targets: these, None for all. Flags, dtypes and strings among the constants always
        count; integers above 0 are sizes and strides, and without an argument (None) a kernel does less than with it.
        """
        flags = {name: value for name, value in self.constants.items() if not is_size(value) and value is not None}
        pointers = {name: kind for name, kind in self.signature.items() if POINTS.search(str(kind))}
        types = {name: width(str(kind)) for name, kind in pointers.items()} if products else {}
        if atomics:
            types |= {name: kind for name, kind in pointers.items() if targets is None or name in targets}
        shape = [types, self.num_warps, self.num_stages] if products or atomics else []
        return json.dumps([self.kernel, self.line, flags, self.options, shape, self.closure], sort_keys=True)

    @cached_property
    def rank(self) -> tuple[int, bool, float, int, str]:
        """Orders a family: the most arguments, half floats, the largest tile a thread, the most known of alignment.

        More shared memory, registers and wider accesses come with the last two, so the highest stands for the rest.
        """
        return -len(self.absent), self.reads_half, self.size - math.log2(self.num_warps), len(self.divisible), self.text

    @cached_property
    def absent(self) -> frozenset[str]:
        """Arguments that it has not been given."""
        return frozenset(name for name, value in self.constants.items() if value is None)

    @cached_property
    def size(self) -> float:
        """Grows with every size and stride among the constants: the logarithm of their product."""
        return sum(math.log2(value) for value in self.constants.values() if is_size(value))

    @cached_property
    def reads_half(self) -> bool:
        """Whether a pointer to 16-bit or 8-bit floats is among the arguments."""
        return any(HALF.match(kind) for kind in flat(self.signature.values()))

    def called(self) -> str:
        """For people: "attend_kernel(q: *fp16, k: *fp16, …, BLOCK_N=64)"."""
        typed = [f"{name}: {show_type(kind)}" for name, kind in self.signature.items() if kind != "constexpr"]
        fixed = [f"{name}={show(value)}" for name, value in self.constants.items()]
        parts = typed + fixed
        keep = len(typed)
        while keep > 1 and len(", ".join(parts)) + len(self.kernel) > MAX_SHOWN:
            keep -= 1
            parts = [*typed[:keep], "…", *fixed]
        while len(fixed) > 1 and len(", ".join(parts)) + len(self.kernel) > MAX_SHOWN:
            fixed = fixed[1:]
            parts = [*typed[:keep], "…", *fixed]
        return f"{self.kernel}({', '.join(parts)})"


def checked(launch: Launch) -> Spec:
    """The specialisation of a launch; Malformed if the notes hold anything that they cannot."""
    try:
        spec = Spec(
            kernel=matching(NAME, launch.kernel),
            line=number(launch.line, 0, 10_000_000),
            signature={matching(NAME, name): types(kind) for name, kind in launch.signature.items()},
            constants={matching(PATH, name): constant(value) for name, value in launch.constants.items()},
            divisible=tuple(sorted({matching(PATH, name) for name in launch.divisible})),
            num_warps=number(launch.num_warps, 1, 1024),
            num_stages=number(launch.num_stages, 0, 1024),
            options={matching(NAME, name): constant(value) for name, value in launch.options.items()},
            closure={matching(NAME, name): constant(value) for name, value in launch.closure.items()},
            names={said(name): said(value) for name, value in launch.names.items()},
        )
        size = len(spec.text)
    except (TypeError, AttributeError, ValueError, RecursionError) as error:
        raise Malformed(f"launch notes: {error}") from None
    if len(spec.signature) > MAX_PARAMETERS or size > MAX_BYTES:
        raise Malformed("launch notes: too large")
    return spec


def matching(pattern: re.Pattern[str], text: Any) -> str:
    """`text` if it is a string of the pattern; Malformed if not."""
    if not isinstance(text, str) or not pattern.fullmatch(text):
        raise Malformed(f"{str(text)[:60]!r} has no business here")
    return text


def said(text: Any) -> str:
    """`text` if it is a string of a length that `meant` writes; Malformed if not."""
    if not isinstance(text, str) or len(text) > MAX_SAID:
        raise Malformed("what a name stands for is no short text")
    return text


def number(value: Any, low: int, high: int) -> int:
    """`value` if it is an integer in low … high; Malformed if not."""
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise Malformed(f"{str(value)[:60]} is no number from {low} to {high}")
    return value


def types(kind: Any, depth: int = 0) -> Any:
    """A type's text, or a list of them for a tuple argument; a dict with its fields for a NamedTuple."""
    if depth < MAX_DEPTH and isinstance(kind, dict):
        parts, fields = kind.get("tuple"), kind.get("fields")
        if len(kind) != 2 or not isinstance(parts, list) or not are_fields(fields, len(parts)):
            raise Malformed("a type is no NamedTuple of types")
        return {"tuple": types(parts, depth), "fields": list(fields)}
    if isinstance(kind, (list, tuple)) and depth < MAX_DEPTH:
        return [types(part, depth + 1) for part in kind]
    return matching(TYPE, kind)


def constant(value: Any, depth: int = 0) -> Any:
    """A JSON tree of bounded depth; Malformed if it is none."""
    if value is None or isinstance(value, (bool, int, str)) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if depth < 2 * MAX_DEPTH and isinstance(value, dict):
        return {str(key): constant(item, depth + 1) for key, item in value.items()}
    if depth < 2 * MAX_DEPTH and isinstance(value, (list, tuple)):
        return [constant(item, depth + 1) for item in value]
    raise Malformed("a constant is no JSON")


@functools.lru_cache(maxsize=256)
def width(kind: str) -> str:
    """A type as far as registers depend on it: float16 and bfloat16 are one, and so are the integers, which address."""
    return INTEGER.sub("int", SIXTEEN.sub("half", kind))


def is_size(value: Any) -> bool:
    """Whether a constant is an integer above 0, as block sizes, counts and strides are."""
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def flat(kinds: Any) -> list[str]:
    """All types in nested lists of types."""
    kinds = [kind["tuple"] if isinstance(kind, dict) else kind for kind in kinds]
    return [one for kind in kinds for one in (flat(kind) if isinstance(kind, (list, tuple)) else [kind])]


def show_type(kind: Any) -> str:
    """A type as Triton writes it; of a NamedTuple, its fields too."""
    if isinstance(kind, dict):
        parts = zip(kind["fields"], kind["tuple"], strict=True)
        return f"({', '.join(f'{name}: {show_type(part)}' for name, part in parts)})"
    return f"({', '.join(show_type(part) for part in kind)})" if isinstance(kind, (list, tuple)) else kind


def show(value: Any) -> str:
    """An encoded constant, short."""
    if isinstance(value, dict):
        inner = next(iter(value.values()), "")
        return f"({', '.join(show(part) for part in inner)})" if isinstance(inner, list) else str(inner)[:30]
    return repr(value)[:30]
