"""Which known answers a name means, and what is said of a name that means none."""

from dataclasses import replace

import pytest

from drills.author import answers, matrix
from drills.errors import WrongUse

WRONG = answers.FOLDER / "wrong" / "l4_merge_states"


def test_a_file_is_one_answer():
    path = WRONG / "state_exp_for_exp2.py"
    assert [one.path for one in matrix.chosen([str(path)])] == [path]


def test_a_lesson_is_all_of_its_answers():
    assert matrix.chosen(["l4"]) == answers.find("l4_merge_states") != []


def test_no_name_is_all_answers():
    assert matrix.chosen([]) == answers.find()


def test_a_file_that_is_not_there_is_named(capsys):
    with pytest.raises(WrongUse, match="there is no file nowhere.py"):
        matrix.chosen(["nowhere.py"])
    assert matrix.main(["nowhere.py"]) == WrongUse.code
    assert "nowhere.py" in capsys.readouterr().out


def test_a_wrong_answer_that_is_told_something_else_is_a_problem():
    known = answers.read(answers.FOLDER / "wrong" / "l1_online_softmax" / "stats_row_stride_is_n.py")
    assert known.told.startswith("x.stride(0) is 1, but here 40 is taken")
    told = answers.Outcome(known, False, known.level, known.diagnosis, told=f"{known.told}: multiply by its strides.")
    assert told.problem == ""
    assert "was told It is not contiguous" in replace(told, told="It is not contiguous: …").problem


def test_other_inputs_may_show_a_mistake_at_a_lower_level():
    known = answers.read(answers.FOLDER / "wrong" / "l2_mlo_merge" / "partial_o_not_rescaled.py")
    sooner = answers.Outcome(known, False, "value", known.diagnosis)
    assert known.level == "edge" and "came out value/partial_o_not_rescaled" in sooner.problem
    assert replace(sooner, by_chance=True).problem == replace(sooner, level="edge").problem == ""
    for other in ({"level": "memory"}, {"diagnosis": "wrong_value"}, {"passed": True}):
        assert replace(sooner, by_chance=True, **other).problem
