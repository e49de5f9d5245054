"""Tolerances are the ones that LESSONS states, number by number."""

import importlib
import itertools
import math

import pytest
import torch

from drills import twins
from drills.judge import compare, tolerance
from drills.lessons.attend_draws import draw_far_sides
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


def in_float32(q, keys, values, scale, before):
    """v and s of q[D], by two right ways to have scores of base 2 in float32: q is scaled, or its products are."""
    factor = torch.tensor(scale * math.log2(math.e), dtype=torch.float32)
    score = torch.zeros(len(keys))
    for column in range(len(q)):
        score = score + (q[column] * factor if before else q[column]) * keys[:, column]
    score = score if before else score * factor
    p = torch.exp2(score - score.max())
    return p @ values / p.sum(), score.max() + torch.log2(p.sum())


@pytest.mark.parametrize("before", [True, False])
def test_scores_in_the_thousands_leave_room_for_a_right_answer(before):
    """And so does a twin of the call. With 8 columns some seeds do not; nor with values of both signs."""
    cascade = importlib.import_module("drills.lessons.l5_cascade").LESSON.exercise("cascade")
    for seed in range(150):
        rng = torch.Generator().manual_seed(seed)
        args = draw_far_sides(rng)
        for call in (args, twins.other_values(args, rng)):
            q, k, v, kv_cache, indptr, indices, last = call
            results = torch.empty(q.shape), torch.empty(q.shape[:2])
            for b, h in itertools.product(range(q.shape[0]), range(q.shape[1])):
                own = kv_cache[indices[indptr[b] : indptr[b + 1]].long(), :, :, h // 2].transpose(0, 1).flatten(1, 2)
                own = own[:, : own.shape[1] - kv_cache.shape[2] + int(last[b])]
                keys, values = torch.cat([k[:, h // 2], own[0]]), torch.cat([v[:, h // 2], own[1]])
                results[0][b, h], results[1][b, h] = in_float32(q[b, h], keys, values, q.shape[-1] ** -0.5, before)
            assert all(one.right for one in compare(cascade, call, results, cascade.oracle(*call))), seed
