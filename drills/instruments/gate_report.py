"""What the compile gate says of one specialisation for one target, and what may be concluded from it.

Answers come from a process that ran graded code: `report` takes nothing in them for granted. Imports neither torch nor
triton.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from drills.instruments.gate_advice import advise, said
from drills.instruments.gate_depth import Depth
from drills.instruments.gate_phrases import IMPORT, SUM_TF32, TF32
from drills.instruments.gate_spec import Spec
from drills.instruments.gate_text import PRODUCTS, Text

KINDS = (
    "compile_error",
    "compile_resources",
    "compile_import",
    "compile_timeout",
    "compile_died",
    "compile_tf32",
    "compile_unfinished",
    "compile_too_many",
)
LASTING = ("", "compile_error", "compile_resources", "compile_tf32")
"""Outcomes that the same content always has; the others are not kept."""

MAX_TEXT = 400
MAX_FIGURE = 1 << 40
NUMBERS = ("load_width", "store_width", "tile", "registers", "shared", "spills")
NARROW = 4
WIDE = 16


@dataclass(frozen=True)
class CompileReport:
    """One specialisation for one target.

    kernel, target: names: "merge_kernel", "sm_90". ok: it compiles and fits. kind: "" or one of KINDS.
    specialisation: "q: *fp16, …, BLOCK_N=64". line, source: in the graded file; None and "" where no line is at fault.
    error: Triton's message, tidied. advice: one sentence, "" where nothing is known.
    depth: "machine code"; "lowered" or "front end" where another specialisation was compiled to the end instead (see
    `gate_depth`).
    load_width, store_width: bytes a thread an instruction, of the accesses that move most. loads, stores: width →
    instructions. registers: a thread. shared, spills: bytes. tf32: a float32 product is rounded to TF32.
    tile: elements of the largest load; threads: of a block; half: a tensor of 16-bit or 8-bit floats is an argument.
    """

    kernel: str
    target: str
    ok: bool
    kind: str = ""
    specialisation: str = ""
    line: int | None = None
    source: str = ""
    error: str = ""
    advice: str = ""
    depth: str = Depth.FULL.shown
    load_width: int = 0
    store_width: int = 0
    loads: dict[int, int] = field(default_factory=dict)
    stores: dict[int, int] = field(default_factory=dict)
    tile: int = 0
    threads: int = 0
    registers: int = 0
    shared: int = 0
    spills: int = 0
    tf32: bool = False
    half: bool = False

    def to_json(self) -> dict[str, Any]:
        """A JSON-able dict of all fields."""
        return asdict(self)


def report(answer: Any, spec: Spec, target: str, depth: Depth, text: Text) -> CompileReport:
    """A report from a gate's answer (any JSON at all)."""
    if not isinstance(answer, dict) or not isinstance(answer.get("ok"), bool):
        return refused(spec, target, "compile_died", "the compiler gave no answer that can be read")
    if not answer["ok"]:
        kind = answer.get("kind")
        line = whole(answer.get("line"), 1, len(text.lines)) or None
        return refused(
            spec,
            target,
            kind if kind in KINDS else "compile_error",
            clean(answer.get("error")),
            line,
            clean(answer.get("node")),
            text,
        )
    figures = answer.get("figures") if isinstance(answer.get("figures"), dict) else {}
    numbers = {name: whole(figures.get(name), 0, MAX_FIGURE) for name in NUMBERS}
    rounded = figures.get("tf32") is True
    made = CompileReport(
        kernel=spec.kernel,
        target=target,
        ok=not (rounded and not spec.reads_half),
        specialisation=inside(spec),
        depth=depth.shown,
        loads=histogram(figures.get("loads")),
        stores=histogram(figures.get("stores")),
        threads=32 * spec.num_warps,
        tf32=rounded,
        half=spec.reads_half,
        **numbers,
    )
    if made.ok:
        return made
    written = text.says(spec.line, PRODUCTS)
    line = lone_call(text, spec, "dot" if written else "sum")
    told = {"kind": "compile_tf32", "line": line, "source": text.line(line), "advice": TF32 if written else SUM_TF32}
    what = "a tl.dot of float32" if written else "a sum of float32 products"
    return CompileReport(**{**asdict(made), **told, "error": f"{what} is compiled to TF32, which keeps 10 of 23 bits"})


def refused(
    spec: Spec, target: str, kind: str, error: str, line: int | None = None, node: str = "", text: Text | None = None
) -> CompileReport:
    """A report of something that did not compile."""
    function = text.function(line) if text else None
    names = [one.name for one in text.functions] if text else []
    return CompileReport(
        kernel=spec.kernel,
        target=target,
        ok=False,
        kind=kind,
        specialisation=inside(spec),
        line=line,
        source=text.line(line)[:MAX_TEXT] if text else "",
        error=said(error, node)[:MAX_TEXT],
        advice=IMPORT if kind == "compile_import" else advise(error, node, function, names),
        threads=32 * spec.num_warps,
        half=spec.reads_half,
    )


def inside(spec: Spec) -> str:
    """The arguments of `spec.called()`, without the kernel's name and the brackets."""
    return spec.called()[len(spec.kernel) + 1 : -1]


def lone_call(text: Text, spec: Spec, name: str) -> int | None:
    """The only line of the kernel that calls tl.<name> without a precision; None if there are several or none."""
    kernel = next((one for one in text.functions if one.name == spec.kernel), None)
    calls = [node for node in ast.walk(kernel) if isinstance(node, ast.Call)] if kernel else []
    found = [
        call
        for call in calls
        if isinstance(call.func, ast.Attribute)
        and call.func.attr == name
        and not any(keyword.arg in ("input_precision", "allow_tf32") for keyword in call.keywords)
    ]
    return found[0].lineno if len(found) == 1 else None


def whole(value: Any, low: int, high: int) -> int:
    """`value` if it is a whole number in low … high, else 0."""
    good = isinstance(value, int) and not isinstance(value, bool) and low <= value <= high
    return value if good else 0


def histogram(value: Any) -> dict[int, int]:
    """Width → count, as far as it is one. JSON writes the widths as text."""
    items = list(value.items())[:16] if isinstance(value, dict) else []
    return {int(width): whole(count, 0, MAX_FIGURE) for width, count in items if str(width).isdecimal()}


def clean(value: Any) -> str:
    """Printable text of bounded length, one line."""
    text = value if isinstance(value, str) else ""
    return "".join(letter if letter.isprintable() else " " for letter in text[: 4 * MAX_TEXT])


def main_width(reports: Sequence[CompileReport]) -> int:
    """Bytes a load of these kernels is wide at best, for the narrowest float type tested; 0 if nothing was measured."""
    return max((one.load_width for one in comparable(reports)), default=0)


def comparable(reports: Sequence[CompileReport]) -> list[CompileReport]:
    """Reports with measured loads, of 16-bit floats where there are any."""
    measured = [one for one in reports if one.ok and one.load_width]
    return [one for one in measured if one.half] or measured


def width_advice(mine: Sequence[CompileReport], solution: int) -> str:
    """A sentence if the loads that move most are 4 bytes or narrower where the solution's are 16; else "".

    solution: `main_width` of the solution's reports, a lesson's constant.
    """
    width = main_width(mine)
    if not 0 < width <= NARROW or solution < WIDE:
        return ""
    widest = max((one for one in comparable(mine) if one.load_width == width), key=lambda one: one.tile)
    each = widest.tile / max(widest.threads, 1)
    if each <= 1:
        reason = (
            f"a tile of {widest.tile} leaves each of {widest.threads} threads a single element at most."
            " Give a program several rows"
        )
    elif each * width < WIDE:
        reason = f"{math.ceil(each)} elements a thread are too few. Give a program a larger tile, or fewer warps"
    else:
        reason = "neighbors in a row must be neighbors in the tile's last axis, at addresses known to be aligned"
    return f"loads {width} bytes wide, the solution's are {solution}: {reason}"
