"""A wrong value is shown as the worst element beside the right one, with where it is and what those rows share."""

import math

import torch

from drills import judge
from drills.instruments.notes import Finding
from drills.lessons import l1_online_softmax
from drills.lessons.l4_merge_states import LESSON
from drills.report.model import Failure

MERGE, MANY = LESSON.exercise("merge_state"), LESSON.exercise("merge_states")
IN_PLACE = LESSON.exercise("merge_state_in_place")


def case(S=4, H=3, D=8):
    """Two states and the right results, to be spoiled."""
    rng = torch.Generator().manual_seed(S * H * D)
    v_a, v_b = (torch.randn(S, H, D, generator=rng) for _ in range(2))
    s_a, s_b = (torch.randn(S, H, generator=rng) for _ in range(2))
    args = (v_a, s_a, v_b, s_b)
    return args, tuple(one.float() for one in MERGE.oracle(*args))


def test_a_right_answer_passes():
    args, results = case()
    assert judge.values(MERGE, args, results) is None


def test_the_worst_element_is_shown():
    args, (v, s) = case()
    v[1, 2, 3] += 1
    v[1, 2, 4] += 0.1
    failure = judge.values(MERGE, args, (v, s), level="edge")
    assert (failure.kind, failure.level) == ("wrong_value", "edge")
    assert failure.got.startswith(f"v[1, 2, 3] = {float(v[1, 2, 3]):.6g}; 2 of 96 elements of v are wrong")
    assert failure.got.endswith("s is right") and "position 1, head 2" in failure.got
    assert failure.expected.startswith(f"v[1, 2, 3] = {float(v[1, 2, 3] - 1):.6g}, give or take ")


def test_what_the_wrong_rows_share_is_said():
    args, _ = case()
    args[1][1], args[3][1] = -math.inf, -math.inf
    args[1][2, 0] = -math.inf
    v, s = (one.float() for one in MERGE.oracle(*args))
    v[1], s[1] = math.nan, math.nan
    failure = judge.values(MERGE, args, (v, s))
    assert failure.kind == "not_finite"
    assert (
        failure.got
        == "v[1, 0, 0] = nan; 24 of 96 elements of v are wrong (position 1: s_a = s_b = -inf); s is wrong too"
    )
    assert failure.expected == "v = 0 there"


def test_rows_that_a_mask_forbids_are_named():
    args, right = case()
    mask = torch.tensor([True, False, True, False])
    failure = judge.values(IN_PLACE, (*args, mask), right)
    assert "positions 1 and 3: mask is False" in failure.got


def test_empty_states_among_many_are_named():
    v, s = torch.randn(2, 3, 2, 4, generator=torch.Generator().manual_seed(1)), torch.zeros(2, 3, 2)
    s[0, 1, 0] = -math.inf
    right_v, right_s = (one.float() for one in MANY.oracle(v, s))
    right_v[0, 0] = 0
    assert "position 0, head 0: one s or more is -inf" in judge.values(MANY, (v, s), (right_v, right_s)).got


def test_rows_of_several_scores_are_spoken_of_one_by_one():
    attend = l1_online_softmax.LESSON.exercise("attend")
    scores, v = torch.zeros(2, 3), torch.ones(3, 4)
    scores[1] = -math.inf
    got = torch.ones(2, 4)
    got[1] = math.nan
    assert "(row 1: every score is -inf)" in judge.values(attend, (scores, v), (got,)).got


def test_numbers_that_differ_late_are_shown_with_enough_digits():
    args, (v, s) = case()
    s[0, 0] += 3e-5
    failure = judge.values(MERGE, args, (v, s))
    assert failure.got.split(";")[0] != failure.expected.split(",")[0]


def test_two_answers_that_disagree():
    args, (v, s) = case()
    assert judge.agree(MERGE, args, (v, s), (v, s)) is None
    assert judge.agree(MERGE, args, (v, s + 1), (v, s)).kind == "disagree"


def test_facts_are_compared_bit_for_bit():
    args, (v, s) = case()
    assert judge.exact(MERGE, args, (v, s), {"s": s, "v": v}) is None
    failure = judge.exact(MERGE, args, (v, s + 1e-7), {"s": s})
    assert failure.kind == "wrong_value" and failure.got.startswith("s[")


def test_results_without_elements():
    args, _ = case(S=0)
    assert judge.values(MERGE, args, (torch.zeros(0, 3, 8), torch.zeros(0, 3))) is None


def test_a_kind_that_no_mistake_explains_points_to_what_the_page_says_of_it():
    lesson = LESSON
    failure = judge.finding(Finding("out_of_bounds", "v[9]", likely="The offset wrapped at 2^31: cast it."), "memory")
    assert judge.pointed(failure, lesson).read == "content/l4_merge_states.md#offsets-past-231"
    twice = Failure("traffic", "traffic", likely="Load v once.")
    assert judge.pointed(twice, lesson).read == "content/l4_merge_states.md#values-read-twice"
    assert judge.pointed(Failure("race", "memory"), lesson).read == ""
    mistake = lesson.mistakes[0]
    named = judge.named(twice, lesson, mistake)
    assert judge.pointed(named, lesson) == named
