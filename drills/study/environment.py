"""Trouble with torch, Triton or numpy is said as such: one line that names `doctor`, never a wrong answer.

Must never import torch: what is broken may not load.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

from drills.errors import GraderFailed
from drills.report.model import Grade

DOCTOR = "python grade.py doctor  shows whether this machine is fit"
UNKNOWN = "is not known"
"""What the instruments say of a Triton version that they do not know; see `instruments.interpreter`."""

TESTED_PYTHONS = ((3, 10), (3, 13))
SHOWN_PYTHONS = " to ".join(".".join(map(str, one)) for one in TESTED_PYTHONS)


@contextlib.contextmanager
def blamed() -> Iterator[None]:
    """Within, a package that does not load is the environment's fault: GraderFailed."""
    try:
        yield
    except ImportError as error:
        if (error.name or "").split(".")[0] == "drills":
            raise
        first = (str(error).strip().splitlines() or [""])[0]
        raise GraderFailed(f"a package that grading needs does not load: {first}. {DOCTOR}") from error


def examined(grade: Grade) -> Grade:
    """The grade; with a grader's error if something failed, and versions not tested fail a right kernel too."""
    failed = any(exercise.state == "failed" for lesson in grade.lessons for exercise in lesson.exercises)
    strange = grade.instruments.startswith("off") and UNKNOWN in grade.instruments or newer_python()
    if failed and not grade.grader_error and strange:
        from drills.study import doctor_checks

        problems = [one.says for one in doctor_checks.results() if one.state == "problem"]
        grade.grader_error = problems[0] if problems else ""
    return grade


def newer_python() -> bool:
    """Whether this Python is newer than those that the drills were tested with."""
    return sys.version_info[:2] > TESTED_PYTHONS[1]
