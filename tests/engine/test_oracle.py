"""The oracle is right: against torch's own float64 softmax, against numbers worked out by hand, and on every edge."""

import math

import pytest
import torch

from drills.lessons import l5_cascade, oracle
from drills.lessons.l4_merge_states import LESSON

INF = math.inf


def close(got, *right):
    """Equal to five decimals; infinities equal to themselves."""
    return torch.allclose(got, torch.tensor(right, dtype=torch.float64), atol=5e-5)


def test_softmax_is_that_of_torch():
    x = torch.randn(7, 13, generator=torch.Generator().manual_seed(0)) * 30
    assert torch.allclose(oracle.softmax(x), torch.softmax(x.double(), -1))
    assert torch.allclose(oracle.lse(x), torch.logsumexp(x.double(), -1))
    assert torch.allclose(oracle.lse2(x) * math.log(2), torch.logsumexp(x.double(), -1))


def test_the_story_of_all_lessons():
    scores, values = torch.tensor([1.0, 2.0, 3.0, 0.0]), torch.tensor([[10.0], [20.0], [30.0], [40.0]])
    m, l = oracle.softmax_stats(scores)
    assert float(m) == 3 and close(l, 1.55297)
    assert close(oracle.attend(scores, values), [26.2089][0])
    assert close(oracle.lse2(scores), 4.96311)


def test_two_halves_merge_to_the_whole():
    """s 3.337 and 4.398 give weights 0.479 and 1, v 26.21 and s 4.963."""
    s = torch.tensor([3.33733, 4.39821])
    v, merged = oracle.merge(torch.tensor([[17.31059], [30.47426]]), s)
    assert close(v, 26.2089) and close(merged, 4.96311)
    v, merged = oracle.merge(torch.tensor([[17.31059], [30.47426]]), s * math.log(2), exp=torch.exp, log=torch.log)
    assert close(v, 26.2089) and close(merged, 3.44017)


def test_two_equal_states_raise_s_by_one():
    v, s = oracle.merge(torch.tensor([[4.0], [8.0]]), torch.tensor([10.0, 10.0]))
    assert float(v) == 6 and float(s) == 11


def test_parts_with_m_and_l_merge_like_states():
    """Scores [0, 0, 10] and values [0, 0, 9], split 2 + 1: 8.9992, where the average is 4.5."""
    m, l, o = torch.tensor([0.0, 10.0]), torch.tensor([2.0, 1.0]), torch.tensor([[0.0], [9.0]])
    top, total, merged = oracle.merge_mlo(m, l, o)
    assert float(top) == 10 and close(total, 1.00009) and close(merged, 8.99918)


@pytest.mark.parametrize("n", [0, 1, 3])
def test_only_empty_states_give_nothing(n):
    v, s = oracle.merge(torch.full((n, 2, 5), math.nan), torch.full((n, 2), -INF))
    assert v.shape == (2, 5) and bool((v == 0).all()) and bool((s == -INF).all())
    m, l, o = oracle.merge_mlo(torch.full((n, 2), -INF), torch.zeros(n, 2), torch.full((n, 2, 5), math.nan))
    assert bool((m == -INF).all()) and bool((l == 0).all()) and bool((o == 0).all())


def test_an_empty_state_is_neutral_whatever_it_holds():
    v, s = oracle.merge(torch.tensor([[3.0], [math.nan], [INF]]), torch.tensor([2.0, -INF, -INF]))
    assert float(v) == 3 and float(s) == 2


def test_a_row_without_scores():
    x = torch.full((2, 3), -INF)
    assert bool((oracle.softmax(x) == 0).all()) and bool((oracle.lse(x) == -INF).all())
    assert bool((oracle.lse(torch.zeros(2, 0)) == -INF).all())


def test_huge_scores_keep_their_differences():
    v, s = oracle.merge(torch.tensor([[0.0], [3.0]]), torch.tensor([-70000.0, -69999.0]))
    assert float(v) == 2 and close(s + 70000, math.log2(3))


def test_the_largest_finite_score():
    assert oracle.largest_finite(torch.tensor([-INF, -3.0, math.nan]), torch.tensor([2.0])) == 3
    assert oracle.largest_finite(torch.tensor([-INF]), torch.zeros(0)) == 0


def test_in_place_keeps_what_is_masked_off():
    v, s = torch.tensor([[[1.0]], [[math.nan]]]), torch.tensor([[0.0], [-INF]])
    got_v, got_s = LESSON.exercise("merge_state_in_place").oracle(v, s, v + 2, s, torch.tensor([True, False]))
    assert got_v.flatten().tolist()[0] == 2 and math.isnan(got_v.flatten()[1])
    assert got_s.flatten().tolist() == [1, -INF]


def test_runs_take_their_own_rows():
    """indptr = [1, 3, 3, 4] of 5 rows: rows 1 and 2, none, row 3."""
    v, s = torch.arange(5.0).reshape(5, 1, 1), torch.zeros(5, 1)
    got_v, got_s = LESSON.exercise("variable_length_merge_states").oracle(v, s, torch.tensor([1, 3, 3, 4]))
    assert got_v.flatten().tolist() == [1.5, 0, 3] and got_s.flatten().tolist() == [1, -INF, 0]


@pytest.mark.parametrize(
    "name, right",
    [
        ("merge_state", 2 * 3 * (3 * 64 * 4 + 12)),
        ("merge_states", 2 * 3 * (5 + 1) * (64 * 4 + 4)),
    ],
)
def test_bytes_floors_are_those_of_the_contract(name, right):
    v, s = torch.zeros(2, 3, 64), torch.zeros(2, 3)
    args = (v, s, v, s) if name == "merge_state" else (torch.zeros(2, 5, 3, 64), torch.zeros(2, 5, 3))
    exercise = LESSON.exercise(name)
    assert exercise.floor(*args) == right
    assert exercise.must_read(*args) <= right


def test_what_has_no_weight_need_not_be_read():
    v, s = torch.zeros(1, 2, 1, 64), torch.tensor([[[0.0], [-INF]]])
    assert LESSON.exercise("merge_states").must_read(v, s) == 64 * 4 + 2 * 4


def test_without_a_query_or_a_key_nothing_need_be_read():
    q, k = torch.zeros(3, 2, 16), torch.zeros(4, 1, 16)
    pages = torch.zeros(2, 2, 4, 1, 16), torch.zeros(1, dtype=torch.int32), torch.zeros(0), torch.zeros(0)
    shared, cascade = map(l5_cascade.LESSON.exercise, ("attend_shared", "cascade"))
    assert shared.must_read(q, k, k) == (3 * 2 + 2 * 4) * 16 * 4
    assert shared.must_read(q, k[:0], k[:0]) == shared.must_read(q[:0], k, k) == 0
    assert cascade.must_read(q[:0], k, k, *pages) == 0
