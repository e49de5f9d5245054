"""What a class came to: how it stands, how far each exercise and level came, what was misunderstood most.

Counts one submission after the other and keeps none. `statistics_text` puts the numbers into words.
"""

from __future__ import annotations

from array import array
from collections import Counter
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from drills.report import standing
from drills.report.causes import Cause, causes
from drills.report.model import LEVELS, ExerciseResult, LessonResult
from drills.report.points import Points, earned, total
from drills.report.standing import is_graded
from drills.report.submission import Submission

SCHEMA = 1
Column = tuple[str, str]
"""A lesson's stem and an exercise's name."""


@dataclass
class Tally:
    """How one exercise came out over the class. levels, tests: outcome counts; titles: a test's id → its words."""

    states: Counter = field(default_factory=Counter)
    levels: dict[str, Counter] = field(default_factory=lambda: {level: Counter() for level in LEVELS})
    tests: dict[str, Counter] = field(default_factory=dict)
    titles: dict[str, tuple[str, str]] = field(default_factory=dict)
    earned: int = 0

    def add(self, exercise: ExerciseResult, hundredths: int) -> None:
        """Counts one submission's result."""
        self.states[exercise.state] += 1
        self.earned += hundredths
        for level, result in exercise.levels.items():
            self.levels.setdefault(level, Counter())[result.state] += 1
        for test in exercise.tests:
            self.tests.setdefault(test.id, Counter())[test.outcome] += 1
            if test.outcome == "passed" or test.id not in self.titles:  # a failed one may be called by what was tried
                self.titles[test.id] = (test.title, test.level)


@dataclass
class Statistics:
    """The counts. begun: lesson's stem → submissions in which one of its exercises was begun."""

    submissions: int = 0
    standings: Counter = field(default_factory=Counter)
    exercises: dict[Column, Tally] = field(default_factory=dict)
    causes: Counter = field(default_factory=Counter)
    begun: Counter = field(default_factory=Counter)
    titles: dict[str, str] = field(default_factory=dict)
    seconds: array = field(default_factory=lambda: array("d"))
    scores: array = field(default_factory=lambda: array("l"))
    isolation: Counter = field(default_factory=Counter)
    refused: int = 0

    def add(self, submission: Submission, points: Points) -> None:
        """Counts one submission."""
        stands = standing.standing(submission)
        self.submissions += 1
        self.standings[stands] += 1
        self.refused += bool(submission.refused)
        if submission.grade is None or submission.grade.grader_error:
            return
        grade = submission.grade
        self.isolation[grade.isolation or "none"] += 1
        self.causes.update(causes(grade))
        for lesson in grade.lessons:
            self._lesson(lesson, points)
        if stands != standing.NOT_GRADED:
            self.scores.append(total(points, grade)[0])
            self.seconds.extend([grade.seconds] if grade.seconds and stands != standing.NOT_STARTED else [])

    def _lesson(self, lesson: LessonResult, points: Points) -> None:
        self.titles.setdefault(lesson.stem, lesson.title)
        self.begun[lesson.stem] += is_graded(lesson) and any(one.state != "not started" for one in lesson.exercises)
        for exercise in lesson.exercises:
            tally = self.exercises.setdefault((lesson.stem, exercise.name), Tally())
            if is_graded(lesson):
                tally.add(exercise, earned(points, lesson.stem, exercise).earned)

    @property
    def columns(self) -> list[Column]:
        """The exercises that occur: the lessons by number, and within one in the order in which they first came."""
        order = {stem: index for index, stem in enumerate(sorted(self.titles, key=_number))}
        return sorted(self.exercises, key=lambda one: order[one[0]])

    def not_graded(self, column: Column) -> int:
        """Submissions in which this exercise could not be graded: with its states they add up to all of them."""
        return self.submissions - sum(self.exercises[column].states.values())

    def median_seconds(self) -> float | None:
        """Over the submissions of which something was run and timed; None if there is none."""
        return median(self.seconds) if self.seconds else None

    def top(self, most: int | None = None) -> list[tuple[Cause, int]]:
        """The causes, the most common first; among equals misconceptions first, then by their words."""
        ranked = sorted(self.causes.items(), key=lambda one: (-one[1], not one[0].mistake, one[0]))
        return ranked[:most]

    def tree(self, points: Points) -> dict[str, Any]:
        """All of it as JSON's own types."""
        return {
            "schema": SCHEMA,
            "submissions": self.submissions,
            "standings": {name: self.standings[name] for name in standing.ALL},
            "with_refused_files": self.refused,
            "median_seconds": self.median_seconds(),
            "median_points": median(self.scores) / 100 if self.scores else None,
            "points_possible": sum(points.most(*column) for column in self.columns) / 100,
            "isolation": dict(sorted(self.isolation.items())),
            "exercises": [self._exercise(column, points) for column in self.columns],
            "causes": [
                {"lesson": cause.lesson, "says": cause.says, "mistake": cause.mistake, "submissions": count,
                 "of": self.begun[cause.lesson]}
                for cause, count in self.top()
            ],
        }  # fmt: skip

    def _exercise(self, column: Column, points: Points) -> dict[str, Any]:
        tally = self.exercises[column]
        graded, left = sum(tally.states.values()), self.not_graded(column)
        return {
            "lesson": column[0],
            "exercise": column[1],
            "states": dict(sorted(({**tally.states} | ({"not graded": left} if left else {})).items())),
            "mean_points": round(tally.earned / 100 / graded, 2) if graded else None,
            "points_possible": points.most(*column) / 100,
            "levels": {level: dict(sorted(counts.items())) for level, counts in tally.levels.items() if counts},
            "tests": [
                {"id": id_, "title": tally.titles[id_][0], "level": tally.titles[id_][1]} | dict(sorted(counts.items()))
                for id_, counts in tally.tests.items()
            ],
        }


def _number(stem: str) -> tuple[int, str]:
    digits = "".join(one for one in stem.split("_", 1)[0] if one.isdigit())
    return (int(digits) if digits else 0, stem)
