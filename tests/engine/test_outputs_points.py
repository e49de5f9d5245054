"""Points: the rules, the default table, and an instructor's own."""

import argparse
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sample_class import L4, NOT_TRITON, levels, result
from sample_grades import WRONG_VALUE, failed, gone, grade, lesson, passed, stopped, waiting

from drills import result_files
from drills.catalog import ROOT
from drills.errors import WrongUse
from drills.report import points_file
from drills.report.model import LEVELS, ExerciseResult, LevelResult, TestResult
from drills.report.points import DEFAULT, Points, earned, shown, total

POINTS = Points()
NOTHING = "\n".join(f"{level} = 0" for level in LEVELS)


def got(exercise, points=POINTS):
    """(earned, most) of an exercise, in points."""
    found = earned(points, L4, exercise)
    return found.earned / 100, found.most / 100


def test_what_passed_earns_everything():
    assert got(passed("merge_state")) == (10, 10)


@pytest.mark.parametrize("exercise", [waiting("merge_state"), gone("merge_state"), stopped("merge_state")])
def test_what_is_not_there_earns_nothing_of_the_same(exercise):
    assert got(exercise) == (0, 10)


@pytest.mark.parametrize(("level", "points"), [("edge", 8), ("memory", 8), ("traffic", 9), ("compile", 9)])
def test_a_failed_level_costs_its_own_points(level, points):
    assert got(result("merge_state", **{level: "failed"})) == (points, 10)


def test_an_undecided_level_earns_nothing():
    assert got(result("merge_state", memory="failed", traffic="blocked", compile="blocked")) == (6, 10)


@pytest.mark.parametrize("state", ["failed", "blocked"])
def test_without_right_values_nothing_counts(state):
    one = result("merge_state", value=state)
    assert got(one) == (0, 10)
    assert earned(POINTS, L4, one).why_void == "the values are not right"


def test_a_result_that_no_kernel_computed_counts_nothing_at_any_level():
    tests = [TestResult("t", "t", "merge_state", "edge", "failed", NOT_TRITON)]
    one = result("merge_state", tests, edge="failed")
    assert got(one) == (0, 10)
    assert earned(POINTS, L4, one).why_void == "the result does not come from Triton kernels"


@pytest.mark.parametrize("state", ["none", "off"])
def test_a_level_without_a_test_gives_its_points_to_the_others(state):
    assert got(result("merge_state", traffic=state)) == (10, 10)
    assert got(result("merge_state", traffic=state, edge="failed")) == (7.77, 10)


def test_of_one_level_alone_the_exercise_is_worth_the_same():
    others = {level: "off" for level in LEVELS if level != "edge"}
    assert got(result("merge_state", **others)) == (10, 10)


STATES = st.fixed_dictionaries(
    {level: st.sampled_from(["passed", "failed", "blocked", "off", "none"]) for level in LEVELS}
)
TABLE = st.fixed_dictionaries({level: st.integers(0, 10_000) for level in LEVELS})


@given(STATES, TABLE)
def test_the_levels_add_up_to_the_exercise(states, table):
    found = earned(Points(table), L4, ExerciseResult("merge_state", "failed", levels(**states)))
    judged = sum(table[level] for level in found.levels)
    assert sum(most for _, most in found.levels.values()) == (found.most if judged else 0)
    assert found.earned == sum(one for one, _ in found.levels.values()) <= found.most
    assert all(0 <= one <= most for one, most in found.levels.values())


@pytest.mark.parametrize(
    ("hundredths", "says"), [(0, "0"), (1000, "10"), (750, "7.5"), (33, "0.33"), (100_005, "1000.05")]
)
def test_points_are_shown_without_zeros(hundredths, says):
    assert shown(hundredths) == says


def test_a_grade_adds_up_over_lessons():
    made = grade(
        lesson("l1_online_softmax", passed("softmax")),
        lesson(L4, failed("merge_state", WRONG_VALUE, "t"), passed("merge_states")),
    )
    assert total(POINTS, made) == (2000, 7000)
    assert total(Points(own={(L4, "merge_states"): {"value": 50}}), made) == (1050, 6050)


def table(text, tmp_path):
    """The table that a file with this text holds."""
    path = tmp_path / "points.toml"
    path.write_text(text, encoding="utf-8")
    return points_file.load(path)


def test_a_file_overrides_default_lesson_and_exercise(tmp_path):
    points = table(
        """
        [default]
        edge = 3
        [l4]
        traffic = 0.25
        [l4.merge_states]
        value = 8
        """,
        tmp_path,
    )
    assert points.of("l1_online_softmax", "softmax") == DEFAULT | {"edge": 300}
    assert points.of(L4, "merge_state") == DEFAULT | {"edge": 300, "traffic": 25}
    assert points.of(L4, "merge_states") == DEFAULT | {"edge": 300, "traffic": 25, "value": 800}


def test_a_number_is_a_whole_exercise_split_as_its_levels_are(tmp_path):
    points = table("[l4_merge_states]\nmerge_states = 20\nmerge_state = 0", tmp_path)
    assert points.of(L4, "merge_states") == {"value": 800, "edge": 400, "memory": 400, "traffic": 200, "compile": 200}
    assert points.most(L4, "merge_state") == 0
    assert got(ExerciseResult("merge_state", "passed", {"value": LevelResult("passed")}), points) == (0, 0)


def test_an_empty_file_is_the_default_table(tmp_path):
    assert table("", tmp_path) == Points()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[l9]\nvalue = 1", "there is no lesson l9: did you mean"),
        ("[defaults]\nvalue = 1", "there is no lesson defaults: did you mean default?"),
        ("[l4]\nmerge_stats = 3", "l4 has no exercise or level merge_stats: did you mean merge_states?"),
        ("[l4.merge_states]\nvalues = 3", "l4.merge_states has no level values: did you mean value?"),
        ("[default]\nspeed = 3", "default has no level speed"),
        ("[default]\nvalue = -1", "default.value = -1: points lie between 0 and 100000"),
        ("[default]\nvalue = nan", "default.value = nan: points lie between 0 and 100000"),
        ("[default]\nvalue = inf", "default.value = inf: points lie between 0 and 100000"),
        ("[default]\nvalue = 0.333", "default.value = 0.333: points have two decimals at most"),
        ("[default]\nvalue = '4'", "default.value must be a number of points, not '4'"),
        ("[default]\nvalue = true", "default.value must be a number of points, not True"),
        ("[l4]\nmerge_states = [1]", "l4.merge_states must be a number of points, not [1]"),
        ("l4 = 3", "l4 must be a table: [l4]"),
        ("default = 3", "default must be a table: [default]"),
        (f"[default]\n{NOTHING}\n[l4]\nmerge_state = 5", "l4.merge_state: no level has points to split 5 by"),
        ("[l4", "is no TOML"),
        ("[l4]\nvalue = 1\nvalue = 2", "is no TOML"),
    ],
)
def test_what_is_wrong_with_a_file_is_one_line_that_names_the_place(text, says, tmp_path):
    with pytest.raises(WrongUse) as caught:
        table(text, tmp_path)
    assert says in str(caught.value)
    assert str(caught.value).startswith(str(tmp_path / "points.toml"))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", [None, b"\xff\xfe\x00"])
def test_a_file_that_cannot_be_read_is_one_line(content, tmp_path):
    path = tmp_path / "points.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(WrongUse, match=r"cannot be read|is no TOML"):
        points_file.load(path)


def test_the_docstring_is_a_table_that_can_be_loaded(tmp_path):
    example = points_file.__doc__.split("small TOML file:")[1].split("A level that")[0]
    points = table(example, tmp_path)
    assert points.of(L4, "merge_states") == {"value": 800, "edge": 200, "memory": 200, "traffic": 200, "compile": 100}
    assert points.most("l5_cascade", "cascade") == 2000


def test_the_instructors_page_states_the_default_and_an_example_that_can_be_loaded(tmp_path):
    page = (ROOT / "INSTRUCTORS.md").read_text(encoding="utf-8").split("### Points")[1]
    worth = ", ".join(f"`{level}` {shown(hundredths)}" for level, hundredths in DEFAULT.items())
    assert f"An exercise is worth {shown(sum(DEFAULT.values()))} points: {worth}." in page
    points = table(page.split("```toml")[1].split("```")[0], tmp_path)
    assert points.most(L4, "merge_states") == 2000
    assert points.of(L4, "merge_state") == {"value": 800, "edge": 300, "memory": 200, "traffic": 200, "compile": 100}


def test_the_line_after_a_scorecard_is_there_only_if_points_were_asked_for(tmp_path):
    made = grade(lesson(L4, passed("merge_state")))
    path = tmp_path / "points.toml"
    path.write_text("[default]\nvalue = 4.5", encoding="utf-8")
    options = argparse.Namespace(points=path, json=Path("x.json"))
    assert result_files.points_line(made, options) == ""
    result_files.check(options)
    assert result_files.points_line(made, options) == "10.5 of 42 points"
