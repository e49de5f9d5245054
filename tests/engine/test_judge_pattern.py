"""Where no known mistake fits, the shape of the error is described: what is wrong, where, and by how much."""

import math

import pytest
import torch

from drills import judge
from drills.lessons import l1_online_softmax, l2_mlo_merge, l3_lse_bases, l5_cascade
from drills.lessons.l4_merge_states import LESSON
from drills.report.causes import of_failure
from drills.report.model import Failure

LSE2 = l3_lse_bases.LESSON.exercise("lse2")
MERGE = LESSON.exercise("merge_state")


def likely(spoil, S=4, H=3, D=80, dtype=torch.float32):
    """What is said of a right answer to ordinary arguments after spoil(v, s, args), which returns the new v and s."""
    rng = torch.Generator().manual_seed(7)
    v_a, v_b = (torch.randn(S, H, D, generator=rng).to(dtype) for _ in range(2))
    args = v_a, torch.randn(S, H, generator=rng), v_b, torch.randn(S, H, generator=rng)
    v, s = MERGE.oracle(*args)
    v, s = spoil(v.to(dtype), s.float(), args)
    return judge.values(MERGE, args, (v, s)).likely


def set_to(value, *where):
    """Puts a value at these places of v."""

    def spoil(v, s, args):
        for place in where:
            v[place] = value
        return v, s

    return spoil


@pytest.mark.parametrize(
    "spoil, words",
    [
        (lambda v, s, args: (v * math.log(2), s), "v is 0.6931 (ln 2) times what it should be, everywhere."),
        (lambda v, s, args: (v, s + 1.5), "s is 1.5 more than it should be, everywhere."),
        (lambda v, s, args: (v, s - 1.5), "s is 1.5 less than it should be, everywhere."),
        (lambda v, s, args: (v * (1 + torch.arange(12.0).reshape(4, 3, 1)), s), "a factor of its own"),
        (lambda v, s, args: (v.transpose(0, 1).reshape(v.shape), s), "the right numbers in the order [H, S, D]"),
        (lambda v, s, args: (v.flip(0), s), "reversed along the positions"),
        (lambda v, s, args: (args[0], s), "v is a copy of v_a."),
        (lambda v, s, args: (torch.zeros_like(v), s), "v is 0 everywhere: is what the loop adds kept, and the"),
        (lambda v, s, args: (v + 1 + torch.arange(960.0).reshape(v.shape).sin().abs(), s), "All of v is wrong"),
        (set_to(9.0, (slice(None), slice(None), slice(64, None))), "Only the last columns are wrong (columns 64 to 79"),
        (set_to(9.0, (slice(None), slice(None), slice(3, 5))), "Only columns 3 to 4 of 80 are wrong."),
        (set_to(9.0, (slice(None), slice(None), 3)), "Only column 3 of 80 is wrong."),
        (set_to(9.0, 3), "Only the last position is wrong"),
        (set_to(9.0, 0), "Only the first position is wrong"),
        (set_to(9.0, (3, slice(1, None))), "Wrong only in position 3, heads 1 and 2."),
        (set_to(9.0, (0, 2)), "Wrong only in position 0, head 2."),
        (set_to(9.0, slice(1, None)), "Only the first position is right"),
        (set_to(9.0, (slice(None), 1)), "Wrong only in head 1."),
        (set_to(0.0, (slice(None), 1)), "v is 0 in head 1, though something weighs there: is it taken for empty, or"),
        (set_to(math.nan, (1, 2, 5)), "v is NaN in 1 of 960 elements and right elsewhere."),
        (set_to(math.nan, slice(None)), "v is NaN everywhere"),
    ],
)
def test_each_shape_has_its_words(spoil, words):
    assert words in likely(spoil)


def test_two_alike_are_not_everywhere_and_one_is_not_all():
    args = torch.tensor([[[-1.0, 1.0]]]), torch.zeros(1, 1), torch.tensor([[[1.0, 3.0]]]), torch.zeros(1, 1)
    v, s = (one.float() for one in MERGE.oracle(*args))
    assert judge.values(MERGE, args, (torch.zeros_like(v), s)).likely == ""
    near = judge.values(MERGE, args, (v + torch.tensor([[[0.0, 1e-4]]]), s)).likely
    assert "as rounding would make it" in near
    assert judge.values(MERGE, args, (v, s * 3)).likely == "s is wrong: compute it by hand and compare."


def test_a_few_numbers_to_compute_with_are_written_out_and_0_is_asked_about():
    stats = l1_online_softmax.LESSON.exercise("softmax_stats")
    x = torch.tensor([[1.0, 2.0, 3.0, 0.0]])
    m, l = (one.float() for one in stats.oracle(x))
    assert judge.values(stats, (x,), (m, l * 1.23)).likely.endswith("by hand and compare, from 1, 2, 3 and 0.")
    assert judge.values(stats, (x / 7,), (m / 7, l * 1.23)).likely.endswith("by hand and compare.")
    assert judge.values(stats, (x,), (m, l * 0)).likely.startswith("l is 0: is what the loop adds kept")


def test_nobody_is_asked_to_compute_thousands_of_elements_by_hand():
    stats = l1_online_softmax.LESSON.exercise("softmax_stats")
    x = torch.randn(1, 2000, generator=torch.Generator().manual_seed(1))
    m, l = (one.float() for one in stats.oracle(x))
    assert judge.values(stats, (x,), (m, l * 3.7)).likely.startswith("l is wrong: call it with less")


def test_an_axis_n_holds_the_columns_of_a_row_or_the_parts_of_the_keys():
    softmax = l1_online_softmax.LESSON.exercise("softmax")
    x = torch.randn(3, 7, generator=torch.Generator().manual_seed(1))
    (y,) = (one.float() for one in softmax.oracle(x))
    assert judge.values(softmax, (x,), (y.flip(1),)).likely == "y is reversed along the columns."
    partial = l2_mlo_merge.LESSON.exercise("partial_attention")
    args = partial.draw(torch.Generator().manual_seed(1))
    m, l, o = (one.float() for one in partial.oracle(*args))
    l[1] *= 1 + torch.arange(l.shape[1])
    l[1, 0] += 3.0
    assert judge.values(partial, args, (m, l, o)).likely.endswith("part 1.")


def test_of_logarithms_that_are_alike_the_difference_is_told():
    """Two of 0.2 more are also two of so many times what they should be, which says less."""
    args = torch.zeros(1, 2, 4), torch.zeros(1, 2), torch.zeros(1, 2, 4), torch.zeros(1, 2)
    v, s = (one.float() for one in MERGE.oracle(*args))
    assert judge.values(MERGE, args, (v, s + 0.2)).likely == "s is 0.2 more than it should be, everywhere."
    assert (
        judge.values(MERGE, args, (v, s * math.log(2))).likely
        == "s is 0.6931 (ln 2) times what it should be, everywhere."
    )


def test_a_result_with_the_strides_of_its_argument():
    args = torch.randn(2, 3, 4), torch.zeros(2, 3), torch.randn(2, 3, 4), torch.zeros(2, 3)
    right, s = (one.float() for one in MERGE.oracle(*args))
    v = torch.empty_like(right.transpose(0, 1).contiguous().transpose(0, 1))
    v.as_strided((2, 3, 4), (12, 4, 1)).copy_(right)
    said = judge.values(MERGE, args, (v, s)).likely
    assert said.startswith("v holds the right numbers as if it were contiguous, but has strides (4, 8, 1)")
    assert "torch.empty_like" in said


def test_one_element_of_a_row_is_no_factor():
    args = torch.tensor([[[-1.0, 0, 0, 0]]]), torch.zeros(1, 1), torch.tensor([[[3.0, 0, 0, 0]]]), torch.zeros(1, 1)
    v, s = (one.float() for one in MERGE.oracle(*args))
    assert "a factor of its own" not in judge.values(MERGE, args, (v * 3 + torch.tensor([0, 1e-3, 0, 0]), s)).likely


def test_a_short_constant_is_a_factor_and_no_offset():
    x = torch.tensor([[3.0, 1.0], [14.0, 2.0], [4.0, 4.5]])
    (right,) = LSE2.oracle(x)
    off = judge.values(LSE2, (x,), ((right * 1.44269 / math.log2(math.e)).float(),)).likely
    assert off.startswith("s is 0.9999965 times what it should be, everywhere: is a constant")
    for more in (2e-5, 1.5):
        assert f"s is {more:g} more than" in judge.values(LSE2, (x,), ((right + more).float(),)).likely
    noise = torch.tensor([1.4e-5, -0.4e-5, 2.6e-5])
    assert "more than" not in judge.values(LSE2, (x,), (right.float() + noise,)).likely


def test_rounding_looks_like_rounding():
    noise = torch.Generator().manual_seed(1)
    said = likely(lambda v, s, args: (v * (1 + 1e-4 * torch.randn(v.shape, generator=noise)), s))
    assert "as rounding would make it. No input is in half precision" in said


def test_few_rows_of_a_small_error_are_no_place():
    """A constant cut short shows first where |s| is largest: the other rows are not right, but within tolerance."""
    x = torch.tensor([[1.0, 2.0], [3.0, 0.0]])
    (right,) = LSE2.oracle(x)
    said = judge.values(LSE2, (x,), ((right * 1.4427 / math.log2(math.e)).float(),)).likely
    assert "a constant such as log2(e) cut short" in said


def test_axes_of_one_element_have_no_other_order():
    for spoil in (lambda v, s, args: (v, s + 1.6e-5), lambda v, s, args: (v + 8e-6, s)):
        assert "as rounding would make it" in likely(spoil, S=1, H=1, D=1)


def test_half_values_may_be_off_by_their_own_step():
    def off(relative):
        return lambda v, s, args: ((v.float() * (1 + relative)).half(), s)

    with pytest.raises(AttributeError):
        likely(off(5e-4), dtype=torch.float16)
    assert likely(off(1e-2), dtype=torch.float16)


def test_rows_with_minus_infinity_are_recognized():
    v_a, s_a = torch.ones(4, 2, 8), torch.zeros(4, 2)
    s_a[1, 1] = s_a[2, 0] = -math.inf
    args = v_a, s_a, 2 * v_a, torch.zeros(4, 2)
    v, s = (one.float() for one in MERGE.oracle(*args))
    v[s_a == -math.inf] = 0
    assert judge.values(MERGE, args, (v, s)).likely == "Wrong only where s_a = -inf."


def test_the_first_run_may_be_right_by_its_length():
    """Runs differ in length: that the first alone is right says nothing of offsets."""
    v, s = torch.arange(84.0).reshape(7, 1, 12), torch.zeros(7, 1)
    args = v, s, torch.tensor([0, 1, 4, 7])
    runs = LESSON.exercise("variable_length_merge_states")
    right_v, right_s = runs.oracle(*args)
    right_v[1:] += torch.rand(2, 1, 12, generator=torch.Generator().manual_seed(7))
    assert judge.values(runs, args, (right_v.float(), right_s.float())).likely == "Wrong only in positions 1 and 2."


def read_by(position, strides, *shown):
    """What is said where argument `position` was read by other strides. The arguments at `shown` have gaps."""
    rng = torch.Generator().manual_seed(7)
    shapes = (4, 3, 8), (4, 3), (4, 3, 8), (4, 3)
    args = [torch.randn(*shape, generator=rng) for shape in shapes]
    for at in shown:
        args[at] = args[at].repeat_interleave(2, dim=-1)[..., ::2]
    read = list(args)
    for at in position if isinstance(position, tuple) else (position,):
        read[at] = args[at].as_strided(args[at].shape, strides(args[at].stride()))
    v, s = MERGE.oracle(*read)
    return judge.values(MERGE, tuple(args), (v.float(), s.float())).likely


@pytest.mark.parametrize(
    "position, strides, shown, words",
    [
        (2, lambda own: (*own[:2], 1), (2,), "was read with a stride that is not its own: v_b.stride(2) is 2, and 1"),
        (2, lambda own: (own[0], 8, 2), (2,), "v_b.stride(1) is 16, and 8 was taken, as if v_b were contiguous."),
        (2, lambda own: (24, 8, 1), (2,), "v_b.stride() is (48, 16, 2), and (24, 8, 1) was taken, as if v_b were"),
        (1, lambda own: (3, 1), (1,), "s_a.stride() is (6, 2), and (3, 1) was taken"),
        (1, lambda own: (3, 2), (1,), "s_a.stride(0) is 6, and 3 was taken"),
        ((0, 2), lambda own: (48, 8, 2), (0, 2), "v_a and v_b were each read with a stride that is not its own: v_a."),
    ],
)
def test_other_strides_than_an_arguments_own_are_told(position, strides, shown, words):
    assert words in read_by(position, strides, *shown)


def test_the_strides_of_another_argument_are_told():
    rng = torch.Generator().manual_seed(7)
    v_a, v_b = torch.randn(8, 3, 4, generator=rng).permute(2, 1, 0), torch.randn(4, 3, 8, generator=rng)
    s_a, s_b = torch.randn(4, 3, generator=rng), torch.randn(4, 3, generator=rng)
    v, s = MERGE.oracle(v_a, s_a, v_b.as_strided(v_b.shape, v_a.stride()), s_b)
    says = judge.values(MERGE, (v_a, s_a, v_b, s_b), (v.float(), s.float())).likely
    assert "v_b.stride() is (24, 8, 1), and v_a's, (1, 4, 12), was taken. Pass each tensor its own" in says


def test_a_mistake_with_strides_says_what_was_taken_in_the_case_that_is_shown():
    mistake = next(one for one in LESSON.mistakes if one.id == "strides_ignored" and one.exercise == "merge_state")
    failure = Failure("wrong_value", "edge", likely=read_by(2, lambda own: (24, 8, 1), 2))
    told = judge.named(failure, LESSON, mistake)
    assert told.likely == failure.likely and told.mistake == "strides_ignored" and told.read
    assert judge.named(Failure("wrong_value", "edge", likely="All is wrong"), LESSON, mistake).likely == mistake.says


def test_a_table_is_not_read_by_other_strides():
    """An oracle looks up whatever page it is told."""
    paged = l5_cascade.LESSON.exercise("attend_paged")
    rng = torch.Generator().manual_seed(7)
    indices = torch.tensor([2, -(10**9), 0, 10**9, 1])[::2]
    cache, q = torch.randn(3, 2, 4, 1, 8, generator=rng), torch.randn(2, 1, 8, generator=rng)
    args = q, cache, torch.tensor([0, 2, 3]), indices, torch.tensor([3, 4])
    v, s = paged.oracle(*args)
    wrong = v.float() + 1 + torch.rand(v.shape, generator=rng)
    assert "stride" not in judge.values(paged, args, (wrong, s.float())).likely


def test_causes_of_a_class_are_counted_without_the_strides_of_a_case():
    failure = Failure("wrong_value", "edge", likely=read_by(2, lambda own: (24, 8, 1), 2), mistake="strides_ignored")
    assert of_failure("l4_merge_states", failure).says == "v_b was read with a stride that is not its own"
