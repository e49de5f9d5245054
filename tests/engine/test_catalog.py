"""Lessons are found by their stems, and a name that means nothing gets one line with the nearest that does."""

import pytest
import small_repository

from drills import catalog
from drills.errors import GraderFailed, WrongUse


@pytest.fixture
def root(tmp_path):
    return small_repository.build(tmp_path)


def test_lessons_come_by_number_with_title_and_exercises(root):
    (root / "content" / "l10_later.md").write_text("")
    (root / "content" / "lists.md").write_text("")
    found = catalog.lessons(root)
    assert [one.short for one in found] == ["l1", "l4", "l10"]
    assert found[0].title == "First steps"
    assert found[1].exercises == ("merge_state", "merge_state_in_place", "merge_states")
    assert found[2].missing[0] == "solutions/l10_later.py"


@pytest.mark.parametrize(
    ("text", "stem", "exercises"),
    [
        ("l1", "l1_first_steps", ("double", "merge_pair")),
        ("L1", "l1_first_steps", ("double", "merge_pair")),
        ("l1_first", "l1_first_steps", ("double", "merge_pair")),
        ("mine/l1_first_steps.py", "l1_first_steps", ("double", "merge_pair")),
        ("content/l1_first_steps.md", "l1_first_steps", ("double", "merge_pair")),
        ("tests/test_l1_first_steps.py", "l1_first_steps", ("double", "merge_pair")),
        ("l4.merge_state", "l4_merge_states", ("merge_state",)),
        ("l4_merge_states.merge_states", "l4_merge_states", ("merge_states",)),
        ("l4.merge_state_in", "l4_merge_states", ("merge_state_in_place",)),
        ("merge_pair", "l1_first_steps", ("merge_pair",)),
    ],
)
def test_a_prefix_is_enough(root, text, stem, exercises):
    selection = catalog.find(text, root)
    assert (selection.lesson.stem, selection.exercises) == (stem, exercises)


def test_a_number_is_not_a_prefix_of_a_longer_one(root):
    (root / "content" / "l10_later.md").write_text("")
    assert catalog.find("l1", root).lesson.stem == "l1_first_steps"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("l7", 'no lesson "l7": there are l1 and l4'),
        ("l4_merge_stats", 'no lesson "l4_merge_stats": did you mean l4?'),
        ("merge_pear", "did you mean l1.merge_pair?"),
        ("l", '"l" could be l1 or l4'),
        ("", 'no lesson "": there are l1 and l4'),
        ("zzz", 'no lesson "zzz": there are l1 and l4'),
        ("l4.merge_stats", 'l4 has no exercise "merge_stats": did you mean l4.merge_states?'),
        ("l4.merge", '"l4.merge" could be merge_state, merge_state_in_place or merge_states'),
        ("l1.", 'l1 has no exercise "": it has double and merge_pair'),
    ],
)
def test_what_means_nothing_gets_one_line(root, text, says):
    with pytest.raises(WrongUse) as caught:
        catalog.find(text, root)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_several_names_of_one_lesson_are_one_selection_in_order(root):
    chosen = catalog.select(["l4.merge_states", "l1", "l4.merge_state", "l4.merge_states"], root)
    assert [(one.lesson.short, one.exercises) for one in chosen] == [
        ("l1", ("double", "merge_pair")),
        ("l4", ("merge_state", "merge_states")),
    ]
    assert [one.whole for one in chosen] == [True, False]


def test_no_name_means_every_complete_lesson(root):
    (root / "content" / "l9_draft.md").write_text("")
    assert [one.lesson.short for one in catalog.select([], root)] == ["l1", "l4"]


def test_an_incomplete_lesson_is_named_with_what_it_lacks(root):
    (root / "tests" / "test_l4_merge_states.py").unlink()
    with pytest.raises(WrongUse, match="l4_merge_states is incomplete: tests/test_l4_merge_states.py missing"):
        catalog.select(["l4"], root)


def test_an_unreadable_solution_is_the_graders_fault(root):
    (root / "solutions" / "l4_merge_states.py").write_bytes(b"\xff")
    with pytest.raises(GraderFailed, match="solutions/l4_merge_states.py cannot be read"):
        catalog.find("l4", root)
