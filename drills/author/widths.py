"""Whether the lessons state how wide their solutions' loads are, as the compile gate measures it.

The advice on narrow loads compares with what is stated.
"""

from __future__ import annotations

from collections.abc import Iterator

from drills.instruments.gate_report import CompileReport, main_width
from drills.lessons.base import Lesson
from drills.report.model import LessonResult


def problems(result: LessonResult, lesson: Lesson) -> Iterator[str]:
    """One line an exercise whose stated width is not the measured one. result: the solutions', graded on the CPU."""
    for exercise in result.exercises:
        stated = lesson.exercise(exercise.name).load_width
        measured = main_width([CompileReport(**kernel) for kernel in exercise.kernels])
        if stated and measured and stated != measured:
            name = f"{lesson.short}.{exercise.name}"
            yield f"{name}: load_width is {stated}, the solution's loads are {measured} bytes wide"
