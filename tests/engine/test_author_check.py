"""`grade.py check`: which known answers are graded, and what it makes of a folder that is not as it must be."""

from __future__ import annotations

import pytest
from sample_grades import WRONG_VALUE, failed, grade, lesson, passed

from drills.author import answers, check
from drills.cli import main


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of known answers: 2 right ones and 7 wrong ones of one lesson."""
    for kind, count in (("right", 2), ("wrong", 7)):
        place = tmp_path / kind / "l4_merge_states"
        place.mkdir(parents=True)
        header = "" if kind == "right" else "exercise: merge_state\nlevel: value\ndiagnosis: wrong_value\n"
        for number in range(count):
            (place / f"a{number}.py").write_text(f'"""Says what it is.\n\n{header}"""\n', encoding="utf-8")
    found = answers.find
    monkeypatch.setattr(answers, "find", lambda stem="*", kind="*": found(stem, kind, tmp_path))


@pytest.mark.parametrize(("one_in", "wrong"), [(1, 7), (3, 3), (7, 1), (100, 1)])
def test_a_sample_keeps_every_right_answer(folder, one_in, wrong):
    chosen = check.sampled("l4_merge_states", one_in)
    assert [one.right for one in chosen].count(True) == 2
    assert [one.right for one in chosen].count(False) == wrong


def test_a_sample_of_none_is_refused(capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["check", "--sample", "0"])
    assert "0 is no number of at least 1" in capsys.readouterr().err


def test_a_solution_that_fails_is_told_with_what_it_takes_to_repeat_it():
    """Inputs are drawn anew in each run: the next one may well pass."""
    names = ("merge_state", "merge_state_in_place", "merge_states", "variable_length_merge_states")
    results = [failed(name, WRONG_VALUE, "any strides") if name == "merge_states" else passed(name) for name in names]
    said = list(check._not_passed(grade(lesson("l4_merge_states", *results), seed=7)))
    assert said == [
        "cpu: solutions/l4_merge_states.py: merge_states is failed in 'any strides': "
        f"{WRONG_VALUE.called}: {WRONG_VALUE.got}; expected {WRONG_VALUE.expected}",
        "cpu: to repeat: grade.py l4.merge_states --solutions --seed 7",
    ]
