"""Answers of the wrong form are told what they are and what the contract asks for, both shown."""

import pytest
import torch

from drills.judge import form, unpack
from drills.lessons.l4_merge_states import LESSON
from drills.sandbox.wire import Opaque

V, S = torch.zeros(5, 3, 8, dtype=torch.float16), torch.zeros(5, 3)
ARGS = (V, S, V, S)
MERGE, IN_PLACE = LESSON.exercise("merge_state"), LESSON.exercise("merge_state_in_place")


def test_the_right_form_passes():
    assert form(MERGE, ARGS, (V, S)) is None
    assert form(MERGE, ARGS, [V, S]) is None
    assert form(IN_PLACE, ARGS, None) is None


@pytest.mark.parametrize(
    "returned, got",
    [
        (None, "None"),
        (V, "a tensor[5, 3, 8] float16, not a tuple"),
        ((V,), "1 result"),
        ((V, S, S), "3 results"),
        ((V, None), "s is None"),
        ((V, 3.0), "s is the number 3.0"),
        ((V, Opaque("ndarray")), "s is an object of type ndarray"),
        ((V.float(), S), "v[5, 3, 8] float32"),
        ((V, S.half()), "s[5, 3] float16"),
        ((V[:4], S), "v[4, 3, 8]"),
        ((V, S.t()), "s[3, 5]"),
    ],
)
def test_what_came_back_is_named(returned, got):
    failure = form(MERGE, ARGS, returned)
    assert (failure.kind, failure.got) == ("wrong_form", got)
    assert failure.expected == "(v[5, 3, 8] float16, s[5, 3] float32)"
    assert failure.called == "merge_state(v_a[5, 3, 8] float16, s_a[5, 3], v_b[5, 3, 8] float16, s_b[5, 3])"
    assert failure.likely


def test_in_place_returns_nothing():
    failure = form(IN_PLACE, ARGS, (V, S))
    assert (failure.got, failure.expected) == ("a tuple of 2 returned", "None")


def test_results_in_swapped_order_are_told_so():
    assert "order" in form(MERGE, ARGS, (S, V)).likely


def test_results_in_place_are_taken_from_the_arguments():
    assert unpack(IN_PLACE, None, {0: V, 1: S}) == (V, S)
    assert unpack(MERGE, (V, S)) == (V, S)


def test_a_result_and_an_input_of_one_name_are_told_apart():
    failure = form(LESSON.exercise("merge_states"), (V[:, None], S[:, None]), (V.float(), S))
    assert failure.likely.startswith("v has the dtype of the v given: allocate it with dtype=v.dtype")
