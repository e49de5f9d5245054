"""Keeps which exercises passed, each with a fingerprint of its own code, so that a later change can be told.

Never needed for grading. Must never import torch, and never spoils a verdict: trouble with the file is only said.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from drills.catalog import ROOT, Entry
from drills.study import own_code, progress

if TYPE_CHECKING:
    from drills.report.model import Grade


def fingerprint(code: str) -> str:
    """The sha256 of an exercise's own code, as `own_code` gives it; "" for none."""
    return hashlib.sha256(code.encode("utf-8", "replace")).hexdigest() if code else ""


def news(grade: Grade) -> str:
    """Exercises that pass for the first time, and below them the way to the solution; "" if there is none.

    Of a grade in which all passed the scorecard says it. To be asked before `keep`.
    """
    before = progress.load().passed
    every = [(lesson, exercise) for lesson in grade.lessons for exercise in lesson.exercises]
    names = [f"{one.stem.split('_', 1)[0]}.{exercise.name}" for one, exercise in every if exercise.state == "passed"]
    new = [name for name in names if name not in before]
    if not new or len(names) == len(every):
        return ""
    return f"Passed for the first time: {', '.join(new)}\n Compare  python grade.py show {new[-1]}"


def keep(grade: Grade) -> str:
    """Notes what passed in a grade of mine/. "", or one sentence for the learner about the file that keeps it."""
    names: dict[str, str] = {}
    for lesson in grade.lessons:
        passed = [exercise.name for exercise in lesson.exercises if exercise.state == "passed"]
        codes = _codes(lesson.stem, lesson.sha256, passed) if passed else {}
        for name in passed:
            names[f"{lesson.stem.split('_', 1)[0]}.{name}"] = fingerprint(codes.get(name, ""))
    return progress.record_passed(names) if names else ""


def changed(lesson: Entry, done: progress.Progress) -> frozenset[str]:
    """The exercises of a lesson that have passed and whose own code is another now. Reads the file, runs nothing."""
    kept = {name: done.passed.get(f"{lesson.short}.{name}", {}).get("sha256", "") for name in lesson.exercises}
    if not any(kept.values()):
        return frozenset()
    now = own_code.codes(lesson.mine, lesson.exercises)
    return frozenset(name for name, sha256 in kept.items() if sha256 and fingerprint(now.get(name, "")) != sha256)


def standing(lesson: Entry, done: progress.Progress) -> frozenset[str]:
    """The exercises of a lesson whose code, as it is in the file now, has passed. Reads the file, runs nothing."""
    ever = {name for name in lesson.exercises if f"{lesson.short}.{name}" in done.passed}
    return frozenset(ever - changed(lesson, done))


def _codes(stem: str, sha256: str, names: list[str]) -> dict[str, str]:
    """Each exercise's own code as it was graded; nothing if the file has been saved again since."""
    try:
        data = (ROOT / "mine" / f"{stem}.py").read_bytes()
    except OSError:
        return {}
    return own_code.of_bytes(data, names) if hashlib.sha256(data).hexdigest() == sha256 else {}
