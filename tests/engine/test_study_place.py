"""Which lesson a learner is at: for `hint` without a name, and for `watch` when it opens."""

import pytest
from sample_watch import file, selection

from drills.source import Problem
from drills.study import place
from drills.study.place import Standing
from drills.study.watch_state import State

NEW, WHOLE = Standing(False, False, 9), Standing(True, True, 9)


def begun(saved):
    return Standing(True, False, saved)


@pytest.mark.parametrize(
    ("lessons", "at"),
    [
        ([NEW, NEW, NEW], 0),
        ([NEW, begun(1), NEW], 1),
        ([begun(3), begun(5), NEW], 1),
        ([begun(5), begun(3), NEW], 0),
        ([NEW, WHOLE, NEW], 2),
        ([begun(1), WHOLE, NEW], 0),
        ([NEW, NEW, WHOLE], 0),
        ([WHOLE, WHOLE, WHOLE], 2),
    ],
)
def test_the_lesson_a_learner_is_at(lessons, at):
    assert place.where(lessons) == at


def opened(begun, passed=(), problem=None):
    stems = ("l1_online_softmax", "l4_merge_states")
    files = {stem: file(stem) for stem in stems} | {stems[1]: file(stems[1], *begun, problem=problem)}
    return State([selection(stem) for stem in stems], files, set(passed))


def test_watch_opens_on_what_is_begun():
    state = opened(["merge_state_in_place"])
    assert (state.stem, state.exercise) == ("l4_merge_states", "merge_state_in_place")


def test_watch_opens_on_the_lesson_of_which_the_begun_exercise_passed():
    state = opened(["merge_state"], ["l4.merge_state"])
    assert (state.stem, state.exercise) == ("l4_merge_states", "merge_state_in_place")


def test_watch_opens_on_a_file_that_cannot_be_parsed():
    assert opened([], problem=Problem("syntax", "unmatched ')'", 1)).stem == "l4_merge_states"


def test_watch_opens_on_the_first_lesson_where_nothing_is_begun():
    assert opened([]).stem == "l1_online_softmax"


def test_a_hint_is_for_the_next_exercise_once_the_one_on_the_screen_has_passed():
    state = opened(["merge_state"], ["l4.merge_state"])
    assert state.stuck_at == ("l4_merge_states", "merge_state_in_place")
    state.exercise = "merge_state"
    assert state.stuck_at == ("l4_merge_states", "merge_state_in_place")
    assert state.exercise == "merge_state", "looking for it turns nothing"


def test_a_new_text_has_not_passed():
    state = opened(["merge_state", "merge_state_in_place"], ["l4.merge_state"])
    new = file("l4_merge_states", "merge_state", "merge_state_in_place")
    new.codes["merge_state"] = "other code"
    state.saved("l4_merge_states", new)
    assert state.stuck_at == ("l4_merge_states", "merge_state")
