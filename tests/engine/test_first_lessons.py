"""l1, l2 and l3: every mistake fails, is told from all others, and has a sentence and a place; the maths holds."""

import importlib

import hypothesis
import hypothesis.strategies as st
import pytest
import torch

from drills import judge
from drills.judge.form import result_dtype
from drills.lessons import oracle
from drills.lessons.parts import partial, spans

LESSONS = [importlib.import_module(f"drills.lessons.{stem}").LESSON for stem in (
    "l1_online_softmax", "l2_mlo_merge", "l3_lse_bases",
)]  # fmt: skip
EXERCISES = [pytest.param(lesson, one, id=one.name) for lesson in LESSONS for one in lesson.exercises]
SCORES = st.lists(st.floats(-50, 50, width=32) | st.just(-float("inf")), min_size=1, max_size=9)


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """These tensors are small: a second thread only makes the first one wait."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def answer(exercise, formula, args):
    """What code with this formula would return: in the results' dtypes, right where the formula says nothing."""
    all_three = zip(exercise.outputs, formula(*args), exercise.oracle(*args), strict=True)
    return tuple(
        (right if one is None else one).to(result_dtype(exercise, args, output)) for output, one, right in all_three
    )


def named(lesson, exercise, formula, cases):
    """The id that is named for code with this formula which failed on one case; None if it never fails."""
    rng = torch.Generator().manual_seed(7)
    for _ in range(6):
        args = cases(rng)
        results = answer(exercise, formula, args)
        if judge.values(exercise, args, results) is not None:
            mistake = judge.diagnose(lesson, exercise, [(args, results)], lambda a: answer(exercise, formula, a), rng)
            return mistake.id if mistake else ""
    return None


@pytest.mark.parametrize("lesson, exercise", EXERCISES)
def test_every_mistake_is_told_from_all_others(lesson, exercise):
    mine = [one for one in lesson.mistakes if one.exercise == exercise.name]
    got = {one.id: named(lesson, exercise, one.formula, one.cases or exercise.draw) for one in mine}
    assert {wanted: found for wanted, found in got.items() if wanted != found} == {}


@pytest.mark.parametrize("lesson, exercise", EXERCISES)
def test_right_code_fails_nowhere(lesson, exercise):
    for mistake in lesson.mistakes:
        if mistake.exercise == exercise.name:
            assert named(lesson, exercise, exercise.oracle, mistake.cases or exercise.draw) is None


@hypothesis.given(SCORES, st.integers(1, 12))
def test_parts_of_any_number_merge_to_the_whole(scores, num_splits):
    x = torch.tensor([scores])
    v = torch.arange(len(scores)).reshape(-1, 1, 1)
    merged = oracle.merge_mlo(*partial(x, v, spans(len(scores), num_splits)))
    whole = partial(x, v, [slice(None)])
    for one, other in zip(merged, whole, strict=True):
        assert torch.allclose(one, other[0], rtol=1e-9, atol=1e-9)


@hypothesis.given(SCORES, st.floats(-1000, 1000, width=32))
def test_a_shift_moves_the_lse_and_not_the_weights(scores, shift):
    x = torch.tensor(scores, dtype=torch.float64)
    assert torch.allclose(oracle.softmax(x + shift), oracle.softmax(x), atol=1e-9)
    assert torch.allclose(oracle.lse(x + shift), oracle.lse(x) + shift, atol=1e-9)


@hypothesis.given(SCORES, st.randoms(use_true_random=False))
def test_any_tree_of_merges_gives_one_answer(scores, random):
    states = [(torch.tensor([float(n)]), torch.tensor(s, dtype=torch.float64)) for n, s in enumerate(scores)]
    at_once = oracle.merge(torch.stack([v for v, _ in states]), torch.stack([s for _, s in states]))
    while len(states) > 1:
        (v_a, s_a), (v_b, s_b) = (states.pop(random.randrange(len(states))) for _ in range(2))
        states.append(oracle.merge(torch.stack([v_a, v_b]), torch.stack([s_a, s_b])))
    if len(scores) > 1:
        assert torch.allclose(states[0][0], at_once[0], atol=1e-9)
        assert torch.allclose(states[0][1], at_once[1], atol=1e-9)
