"""Where a learner is: the lesson that they work on, of those that are not whole yet.

Reads files at most; must never run or grade one.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from drills import source
from drills.catalog import Entry, Selection
from drills.study import passed, progress


@dataclass(frozen=True)
class Standing:
    """A lesson as its learner has it. begun: something in the file is no stub. whole: all of it has passed.

    saved: when the file was last written, in nanoseconds; 0 for none.
    """

    begun: bool
    whole: bool
    saved: int


def where(lessons: Sequence[Standing]) -> int:
    """The index of the lesson that the learner is at.

    The begun one that was saved last and is not whole; else the first one not whole after the last that is; else the
    first one not whole; the last lesson if all are.
    """
    open_ones = [at for at, one in enumerate(lessons) if one.begun and not one.whole]
    if open_ones:
        return max(open_ones, key=lambda at: lessons[at].saved)
    last = max((at for at, one in enumerate(lessons) if one.whole), default=-1)
    waiting = [at for at, one in enumerate(lessons) if not one.whole]
    return next(iter([at for at in waiting if at > last] + waiting), len(lessons) - 1)


def begun(found: source.Source) -> bool:
    """Whether there is something of the learner's in a file; a syntax error is."""
    if found.problem:
        return found.problem.kind == "syntax"
    return any(function.state == "written" for function in found.functions)


def of(selections: Sequence[Selection], done: progress.Progress) -> Selection:
    """The selection, of at least one, that the learner is at."""
    return selections[where([_standing(one, done) for one in selections])]


def saved(lesson: Entry) -> int:
    """When the learner's file was last written, in nanoseconds; 0 if there is none."""
    try:
        return os.stat(lesson.mine).st_mtime_ns
    except OSError:
        return 0


def _standing(selection: Selection, done: progress.Progress) -> Standing:
    lesson = selection.lesson
    found = source.inspect(lesson.mine, lesson.exercises, lesson.stub)
    whole = set(selection.exercises) <= passed.standing(lesson, done)
    return Standing(begun(found), whole, saved(lesson))
