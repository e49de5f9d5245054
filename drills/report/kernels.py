"""What the compile gate measured of each kernel, as one line a kernel: access widths, registers, spills."""

from __future__ import annotations

from drills.report import words

_FIGURES = (("load_width", "loads", "B wide"), ("store_width", "stores", "B wide"), ("registers", "", "registers"))


def kernel_lines(reports: list[dict]) -> list[str]:
    """One line for each kernel that compiled, for the newest target: the span over all shapes and dtypes tested.

    "merge_state_kernel on sm_90: loads 16 B wide, stores 16 B wide, 30 to 38 registers, nothing spilled"
    """
    compiled = [one for one in reports if one.get("ok")]
    newest = max((words.clean(one.get("target", ""), 12) for one in compiled), default="")
    by_kernel: dict[str, list[dict]] = {}
    for one in compiled:
        if words.clean(one.get("target", ""), 12) == newest:
            by_kernel.setdefault(words.clean(one.get("kernel", ""), 40), []).append(one)
    return [f"{kernel} on {newest}: {_figures(found)}" for kernel, found in by_kernel.items()]


def _figures(reports: list[dict]) -> str:
    parts = []
    for key, before, after in _FIGURES:
        values = _numbers(reports, key)
        if values:
            parts.append(f"{before} {_span(values)} {after}".strip())
    spilled = _numbers(reports, "spills")
    return ", ".join([*parts, f"{_span(spilled)} B spilled" if spilled else "nothing spilled"])


def _numbers(reports: list[dict], key: str) -> list[int]:
    """The values above 0; what is no whole number is left out."""
    return [value for one in reports if isinstance(value := one.get(key), int) and value > 0]


def _span(values: list[int]) -> str:
    low, high = min(values), max(values)
    return str(low) if low == high else f"{low} to {high}"
