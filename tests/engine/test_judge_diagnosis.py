"""A cause is named if it is the only one that explains at least two failing cases, and never otherwise."""

import pytest
import torch

from drills import judge
from drills.instruments.notes import Finding
from drills.judge.form import result_dtype
from drills.judge.signature import parameters
from drills.lessons import l1_online_softmax, l2_mlo_merge, l3_lse_bases, l4_merge_states, l5_cascade
from drills.lessons.base import Mistake
from drills.lessons.l4_merge_states import LESSON
from drills.lessons.softmax_formulas import MOST_STEPS, Recurrence

LESSONS = [one.LESSON for one in (l1_online_softmax, l2_mlo_merge, l3_lse_bases, l4_merge_states, l5_cascade)]
ALIKE = {"merge_state_in_place": "merge_state", "variable_length_merge_states": "merge_states"}
"""Exercises whose mistakes are, for the most part, those of another one on other arguments."""


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


def named(exercise, formula, cases, lesson=LESSON, asked=None):
    """The id that is named for code with this formula which failed on one case; None if it never fails."""
    rng = torch.Generator().manual_seed(11)
    for _ in range(6):
        args = cases(rng)
        results = answer(exercise, formula, args)
        if judge.values(exercise, args, results) is not None:
            break
    else:
        return None
    ask = asked or (lambda fresh: answer(exercise, formula, fresh))
    mistake = judge.diagnose(lesson, exercise, [(args, results)], ask, rng)
    return mistake.id if mistake else ""


@pytest.mark.parametrize("name", [exercise.name for exercise in LESSON.exercises])
def test_every_mistake_is_told_from_all_others(name):
    exercise = LESSON.exercise(name)
    elsewhere = {mistake.id for mistake in LESSON.mistakes if mistake.exercise == ALIKE.get(name)}
    mine = [mistake for mistake in LESSON.mistakes if mistake.exercise == name and mistake.id not in elsewhere]
    got = {one.id: named(exercise, one.formula, one.cases or exercise.draw) for one in mine}
    assert {wanted: found for wanted, found in got.items() if wanted != found} == {}


@pytest.mark.parametrize("name", [exercise.name for exercise in l5_cascade.LESSON.exercises])
def test_every_mistake_of_cascade_is_told_from_all_others(name):
    lesson = l5_cascade.LESSON
    exercise = lesson.exercise(name)
    mine = [mistake for mistake in lesson.mistakes if mistake.exercise == name]
    got = {one.id: named(exercise, one.formula, one.cases or exercise.draw, lesson) for one in mine}
    assert {wanted: found for wanted, found in got.items() if wanted != found} == {}


@pytest.mark.parametrize("lesson", [LESSON, l5_cascade.LESSON], ids=lambda lesson: lesson.short)
def test_right_code_fails_nowhere(lesson):
    for exercise in lesson.exercises:
        for mistake in lesson.mistakes:
            if mistake.exercise == exercise.name:
                assert named(exercise, exercise.oracle, mistake.cases or exercise.draw, lesson) is None


def test_a_formula_answers_where_there_is_no_level():
    """Every formula of multi_level_cascade is put to any case that fails, this one included."""
    exercise = l5_cascade.LESSON.exercise("multi_level_cascade")
    q, kv_cache, _ = exercise.draw(torch.Generator().manual_seed(3))
    for mistake in l5_cascade.LESSON.mistakes:
        if mistake.exercise == exercise.name:
            for formula in (mistake.formula, *mistake.variants):
                assert [x.shape for x in formula(q, kv_cache, []) if x is not None] == [q.shape, q.shape[:2]]


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.short)
def test_a_formula_takes_the_exercises_own_defaults(lesson):
    """A graded test may leave out what has a default: a formula that raises there ends the whole grade."""
    for exercise in lesson.exercises:
        optional = exercise.signature.partition("->")[0].count("=")
        required = len(parameters(exercise)) - optional
        args = exercise.draw(torch.Generator().manual_seed(3))[:required]
        for mistake in lesson.mistakes if optional else ():
            if mistake.exercise == exercise.name:
                for formula in (mistake.formula, *mistake.variants):
                    assert len(formula(*args)) == len(exercise.outputs), mistake.id


@pytest.mark.parametrize("name", ["softmax_stats", "softmax"])
def test_no_formula_goes_through_a_long_row_score_by_score(name, monkeypatch):
    """All of them are put to a wrong answer, which waits for its diagnosis."""
    factor, steps = Recurrence.factor, []
    monkeypatch.setattr(Recurrence, "factor", lambda *args: steps.append(None) or factor(*args))
    x = torch.randn(1, 16448, generator=torch.Generator().manual_seed(3))
    for mistake in l1_online_softmax.LESSON.mistakes:
        if mistake.exercise == name:
            for formula in (mistake.formula, *mistake.variants):
                steps.clear()
                formula(x)
                assert len(steps) <= 2 * MOST_STEPS, mistake.id  # of l and of o


def test_what_nobody_listed_gets_no_name():
    exercise = LESSON.exercise("merge_states")
    assert named(exercise, lambda v, s: (exercise.oracle(v, s)[0] + 0.1, None), exercise.draw) == ""


def test_two_mistakes_at_once_get_no_name():
    exercise = LESSON.exercise("merge_states")
    swapped = next(one for one in LESSON.mistakes if one.exercise == "merge_states" and one.id == "exp_for_exp2")
    assert named(exercise, lambda v, s: (swapped.formula(v, s)[0], s.double().amax(1)), exercise.draw) == ""


def test_what_says_nothing_about_the_error_explains_nothing():
    """v is averaged; a mistake that speaks of s alone, and is right about it here, is no candidate."""
    exercise = LESSON.exercise("merge_state")
    mistake = next(one for one in LESSON.mistakes if one.exercise == "merge_state" and one.id == "plain_average")
    other = next(one for one in LESSON.mistakes if one.exercise == "merge_state" and one.id == "epsilon_in_log")
    lesson = type(LESSON)(LESSON.stem, LESSON.title, LESSON.exercises, (other, mistake))
    asked = []

    def ask(fresh):
        asked.append(fresh)
        return answer(exercise, mistake.formula, fresh)

    assert named(exercise, mistake.formula, exercise.draw, lesson, ask) == "plain_average"
    assert len(asked) == 1


def test_one_failing_case_is_not_enough():
    """The learner's code gives nothing more to look at: no second case, no name."""
    exercise = LESSON.exercise("merge_state")
    mistake = next(one for one in LESSON.mistakes if one.exercise == "merge_state" and one.id == "plain_average")
    assert named(exercise, mistake.formula, exercise.draw, asked=lambda fresh: None) == ""


def test_a_mistake_that_predicts_errors_where_there_are_none_is_ruled_out():
    """Wrong as the plain average on two cases that were given, right on every fresh one."""
    exercise = LESSON.exercise("merge_state")
    mistake = next(one for one in LESSON.mistakes if one.exercise == "merge_state" and one.id == "plain_average")
    twin = Mistake("another", "merge_state", mistake.formula, "Another one.", "anchor")
    rng = torch.Generator().manual_seed(2)
    cases = [exercise.draw(rng) for _ in range(2)]
    failed = [(args, answer(exercise, mistake.formula, args)) for args in cases]
    lesson = type(LESSON)(LESSON.stem, LESSON.title, LESSON.exercises, (mistake, twin))
    right = judge.diagnose(lesson, exercise, failed, lambda fresh: answer(exercise, exercise.oracle, fresh), rng)
    assert right is None


def test_twins_may_be_named_for_each_other():
    exercise = LESSON.exercise("merge_state")
    mistake = next(one for one in LESSON.mistakes if one.exercise == "merge_state" and one.id == "plain_average")
    twin = Mistake("another", "merge_state", mistake.formula, "Another.", "anchor", twins=("plain_average",))
    lesson = type(LESSON)(LESSON.stem, LESSON.title, LESSON.exercises, (mistake, twin))
    assert named(exercise, mistake.formula, exercise.draw, lesson) == "plain_average"


def test_a_name_brings_its_sentence_and_its_place_on_the_page():
    mistake = LESSON.mistakes[0]
    failure = judge.named(judge.finding(Finding("wrong_value", "x"), "value"), LESSON, mistake)
    assert (failure.mistake, failure.likely) == (mistake.id, mistake.says)
    assert failure.read == f"content/l4_merge_states.md#{mistake.anchor}"


def test_every_sentence_is_short_and_its_own():
    by_sentence = {}
    for mistake in LESSON.mistakes:
        assert 20 < len(mistake.says) <= 120 and mistake.says[-1] in ".?", mistake.id
        by_sentence.setdefault((mistake.exercise, mistake.says), set()).add(mistake.id)
    assert all(len(ids) == 1 for ids in by_sentence.values())
