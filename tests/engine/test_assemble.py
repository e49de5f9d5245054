"""Which levels of an exercise failed: only those that its failures say something of."""

from types import SimpleNamespace

import pytest

from drills.assemble import fill
from drills.report.model import LEVELS, ExerciseResult, Failure, LessonResult, TestResult


def levels(**kinds):
    """The state of every level where one test of each failed with these kinds, and the others passed."""
    results = {}
    for level in LEVELS:
        kind = kinds.get(level)
        own = {"race": "memory", "traffic": "traffic"}.get(kind, level)
        failure = Failure(kind, own) if kind else None
        results[level] = TestResult(level, level, "one", level, "failed" if kind else "passed", failure)
    lesson = SimpleNamespace(
        loaded=None, wanted=("one",), traffic={}, reports={}, results=results, tests=results, instruments_on=True,
        gate_off="", sees_traffic=True, lesson=SimpleNamespace(exercise=lambda name: SimpleNamespace(load_width=0)),
    )  # fmt: skip
    exercise = ExerciseResult("one", "")
    fill(LessonResult("l9", "", "", exercises=[exercise]), lesson, None)
    assert exercise.state == "failed"
    return [exercise.levels[level].state for level in LEVELS]


@pytest.mark.parametrize("kind", ["wrong_value", "not_finite", "exception", "not_triton"])
def test_wrong_values_leave_the_levels_above_undecided(kind):
    kinds = dict.fromkeys(("value", "edge", "memory", "traffic"), kind)
    assert levels(**kinds) == ["failed", "blocked", "blocked", "blocked", "passed"]


def test_what_is_found_beside_wrong_values_counts():
    kinds = {"value": "wrong_value", "memory": "race", "traffic": "traffic"}
    assert levels(**kinds) == ["failed", "passed", "failed", "failed", "passed"]


def test_values_that_are_wrong_at_one_level_alone_count_there():
    assert levels(edge="wrong_value") == ["passed", "failed", "blocked", "passed", "passed"]
    assert levels(memory="wrong_value") == ["passed", "passed", "failed", "passed", "passed"]
