"""The verdict of the compile gate as a Failure. Looks at reports only; compiles nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from drills.report.model import Failure

if TYPE_CHECKING:
    from drills.instruments.gate import CompileReport

PRECISION = "products of float32 that keep float32's precision"


def compiled(reports: Sequence[CompileReport]) -> Failure | None:
    """None if there are reports and every one of them is of a launch that compiles."""
    if not reports:
        return Failure(
            "compile_nothing",
            "compile",
            got="no kernel was launched, so none could be compiled",
            expected="the result comes from a @triton.jit kernel",
        )
    for report in reports:
        if not report.ok:
            rounded = report.kind == "compile_tf32"
            return Failure(
                report.kind or "compile_error",
                "compile",
                called=f"{report.target}, {report.kernel}({report.specialisation})",
                got=report.error,
                expected=PRECISION if rounded else f"{report.kernel} compiles for {report.target}",
                likely=report.advice,
                line=report.line,
                source=report.source,
            )
    return None
