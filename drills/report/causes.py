"""What went wrong in one submission, as causes that can be counted over a class.

A cause is a misconception, in the words of its first sentence ("exp was used where s is in base 2"), or a kind of
failure where no misconception was recognized. One cause counts once a submission and lesson, in however many tests.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from drills.report import kinds, words
from drills.report.model import Failure, Grade
from drills.report.standing import is_graded

_SENTENCE = re.compile(r"(?<=[^.])[.?!](?:\s|$)")
_SHORTEST = 12
_CAPITAL = re.compile(r"[A-Z][a-z]*(?=[ ,'’]|$)")


@dataclass(frozen=True, order=True)
class Cause:
    """lesson: its stem. says: a phrase without a full stop. mistake: whether a misconception was recognized.

    explained: it says what was misunderstood; False for "wrong values, no known cause" and its like.
    """

    lesson: str
    says: str
    mistake: bool = False
    explained: bool = True


def causes(grade: Grade) -> set[Cause]:
    """Every cause of a failure in the lessons that could be graded."""
    found: set[Cause] = set()
    for lesson in filter(is_graded, grade.lessons):
        for exercise in lesson.exercises:
            here = {of_failure(lesson.stem, test.failure) for test in exercise.tests if _failed(test.failure)}
            # Where one failure of an exercise is explained, those that are not most often have the same cause.
            found |= {one for one in here if one.explained} or here
            if exercise.state == "missing":
                found.add(of_failure(lesson.stem, Failure("missing_function", "value")))
    return found


def of_failure(stem: str, failure: Failure) -> Cause:
    """The cause of one failure."""
    if failure.mistake:
        return Cause(stem, short(failure.likely) or words.clean(failure.mistake).replace("_", " "), mistake=True)
    return Cause(stem, kinds.phrase(failure.kind), explained=failure.kind not in kinds.UNEXPLAINED)


def short(says: str) -> str:
    """What a mistake says, cut to what was done: the first sentence, up to a colon if enough stands before it.

    "The max was not subtracted: exp overflows from 88.8 on. Take exp(x - m)." → "the max was not subtracted"
    """
    sentence = next(_sentences(words.clean(says)), "")
    head, colon, _ = sentence.partition(": ")
    phrase = head if colon and len(head) >= _SHORTEST else sentence
    first = _CAPITAL.match(phrase)
    return phrase[0].lower() + phrase[1:] if first and len(first[0]) + 1 < len(phrase) and _plain(first[0]) else phrase


def _plain(word: str) -> bool:
    """ "The" and "A", but neither "T" nor "Hkv": a single capital letter is a name in this field, unless it is "A"."""
    return len(word) > 1 or word == "A"


def _sentences(says: str) -> Iterator[str]:
    yield from (one.strip() for one in _SENTENCE.split(says) if one.strip())


def _failed(failure: Failure | None) -> bool:
    return failure is not None and failure.kind != "not_run"
