"""Rows as text: one line a function, the figures that a reader compares in columns. Knows no console."""

from __future__ import annotations

from collections.abc import Sequence

from drills.bench.rows import Machine, Row

COLUMNS = "device, eager: µs · share: floor / device · ratio: device / solution's"


def machine_line(machine: Machine) -> str:
    """The card, its rates, the versions, and what the columns are."""
    versions = " · ".join(f"{name} {version}" for name, version in machine.versions.items())
    rates = f"copy {machine.copy_rate / 1e12:.2f} TB/s · matrix {machine.matrix_rate / 1e12:.0f} TFLOP/s"
    return f" {machine.device} · {rates} · an empty graph {machine.launch:.1f} µs\n {versions}\n {COLUMNS}"


def heading(row: Row) -> str:
    """Above an exercise's rows."""
    columns = f"{'device':>8}{'10–90 %':>16}{'eager':>8}{'TB/s':>6}{'share':>7}{'ratio':>7}"
    return f"\n {row.lesson.split('_')[0]} · {row.exercise:<22}{columns}"


def line(row: Row, rows: Sequence[Row]) -> str:
    """One row of at most 80 columns, below its shape if it is the first. ratio: its device time over the solution's."""
    shape = f" {row.case} · {row.dtype}" + (f" · floor {row.floor:.1f} µs" if row.floor else "") + "\n"
    who = f"{shape if _is_first(row, rows) else ''}   {row.who:<25}"
    if row.error:
        return f"{who} not timed: {row.error}"
    base = solution_of(row, rows)
    ratio = f"{row.graph / base.graph:7.2f}" if base and base.graph else f"{'':7}"
    spread = f"{row.graph_low:.1f}–{row.graph_high:.1f}"
    return f"{who}{row.graph:8.1f}{spread:>16}{row.eager:8.1f}{row.rate:6.2f}{row.share:7.2f}{ratio}"


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
