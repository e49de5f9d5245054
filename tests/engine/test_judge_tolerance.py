"""Tolerances are the ones that LESSONS states, number by number."""

import math

import pytest
import torch

from drills.judge import compare, tolerance
from drills.lessons.l4_merge_states import LESSON, S, V

MERGE = LESSON.exercise("merge_state")


def args(dtype=torch.float32, s=0.0):
    v, s = torch.zeros(1, 2, 2, dtype=dtype), torch.full((1, 2), s)
    return v, s, v, s


@pytest.mark.parametrize("dtype, rel", [(torch.float32, 1e-5), (torch.float16, 2e-3), (torch.bfloat16, 1.6e-2)])
def test_values_are_measured_by_row_and_by_five_percent_of_the_tensor(dtype, rel):
    expected = torch.tensor([[[1.0, -4.0], [0.0, 0.0]]])
    limit = tolerance(MERGE, args(dtype), V, expected)
    assert limit.shape == expected.shape
    assert limit[0, 0].tolist() == pytest.approx([rel * 4.2] * 2, rel=1e-3)
    assert limit[0, 1].tolist() == pytest.approx([rel * 0.2] * 2, rel=1e-3)


def test_large_scores_widen_the_tolerance_of_values():
    limit = tolerance(MERGE, args(s=-(2.0**16)), V, torch.ones(1, 2, 2))
    assert float(limit[0, 0, 0]) == pytest.approx((1e-5 + 2.0**-22 * 2**16) * 1.05)


def test_zeros_must_be_zero_in_float32():
    assert float(tolerance(MERGE, args(), V, torch.zeros(1, 2, 2)).max()) < 1e-44


def test_lse_is_absolute_until_it_is_large():
    limit = tolerance(MERGE, args(), S, torch.tensor([[3.0, 2.0**22], [-math.inf, 0.0]]))
    assert limit.tolist() == [[1e-5, 1.0], [1e-5, 1e-5]]


@pytest.mark.parametrize("got", [math.nan, math.inf, 0.0])
def test_minus_infinity_is_met_by_itself_alone(got):
    v, s = torch.zeros(1, 1, 1), torch.tensor([[-math.inf]])
    right = compare(MERGE, (v, s, v, s), (v, s), (v, s))
    wrong = compare(MERGE, (v, s, v, s), (v, torch.tensor([[got]])), (v, s))
    assert right[1].right and not wrong[1].right


def test_nan_is_never_near_a_number():
    v, s = torch.ones(1, 1, 2), torch.zeros(1, 1)
    one = compare(MERGE, (v, s, v, s), (torch.tensor([[[1.0, math.nan]]]), s), (v, s))[0]
    assert one.wrong.tolist() == [[[False, True]]] and one.worst() == (0, 0, 1)
