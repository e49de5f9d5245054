"""Rows as text: one line a function, the figures that a reader compares in columns. Knows no console."""

from __future__ import annotations

from collections.abc import Sequence

from drills.bench.rows import Machine, Row


def machine_line(machine: Machine) -> str:
    """The card, its rates and the versions."""
    versions = " · ".join(f"{name} {version}" for name, version in machine.versions.items())
    rates = f"copy {machine.copy_rate / 1e12:.2f} TB/s · matrix {machine.matrix_rate / 1e12:.0f} TFLOP/s"
    return f" {machine.device} · {rates} · an empty graph {machine.launch:.1f} µs\n {versions}"


def heading(row: Row) -> str:
    """Above an exercise's rows."""
    columns = (
        f"{'device µs':>10} {'10–90 %':>15} {'eager µs':>9} {'floor µs':>9} {'TB/s':>6} {'of floor':>9} {'ratio':>6}"
    )
    return f"\n {row.lesson.split('_')[0]} · {row.exercise}\n {'':28}{'':15}{columns}"


def line(row: Row, rows: Sequence[Row]) -> str:
    """One row. ratio: its device time over the solution's on the same shape."""
    name = f" {row.case:<28}" if _is_first(row, rows) else f" {'':<28}"
    who = f"{row.who + _short(row.dtype):<15}"
    if row.error:
        return f"{name}{who} not timed: {row.error}"
    base = solution_of(row, rows)
    ratio = f"{row.graph / base.graph:6.2f}" if base and base.graph else f"{'':6}"
    spread = f"{row.graph_low:.1f}–{row.graph_high:.1f}"
    return (
        f"{name}{who}{row.graph:10.1f} {spread:>15} {row.eager:9.1f} {row.floor:9.1f} {row.rate:6.2f} {row.share:9.2f}"
        f" {ratio}"
    )


def solution_of(row: Row, rows: Sequence[Row]) -> Row | None:
    """The solution's row on the same shape; None before it is measured."""
    for other in rows:
        if other.who == "solution" and _shape(other) == _shape(row):
            return other
    return None


def _shape(row: Row) -> tuple[str, str, str]:
    return row.exercise, row.case, row.dtype


def _is_first(row: Row, rows: Sequence[Row]) -> bool:
    return next((other for other in rows if _shape(other) == _shape(row)), row) is row


def _short(dtype: str) -> str:
    return {"float16": " f16", "bfloat16": " bf16", "float32": " f32"}.get(dtype, "")
