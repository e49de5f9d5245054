"""Graded tests of lesson 1: the running max and sum, softmax, and the output carried along."""

import math

import pytest
import torch

from drills.lessons.strides import far_apart

DTYPES = [torch.float16, torch.bfloat16, torch.float32]
BLOCKS = [2, 16, 1024]
FAR = [-(2.0**127), -(2.0**20), 2.0**20, 2.0**127]
"""Far beyond any sentinel. Equal powers of two, so that no way to scale or shift them rounds."""
STORY = torch.tensor([[1.0, 2.0, 3.0, 0.0]])


def short(value):
    """A dtype's name for a test id; None: pytest's own."""
    return str(value).removeprefix("torch.") if isinstance(value, torch.dtype) else None


def power(value):
    """2.0**20 as a test id: "2^20"."""
    return f"{'-' if value < 0 else ''}2^{math.frexp(abs(value))[1] - 1}"


def rows(rng, M=3, N=40, dtype=torch.float32):
    """Ordinary scores [M, N]."""
    return (torch.randn(M, N, generator=rng) * 2).to(dtype)


def long_rows(rng):
    """[2, 16448]: more columns than a kernel takes in one tile, and a multiple of 64 that fills no block of 1024.

    The max of row 0 stands near its end, its first 1100 scores are masked, and all of row 1.
    """
    x = rows(rng, M=2, N=16 * 1024 + 64)
    x[0, -100] = 12.0
    x[0, :1100] = x[1] = -math.inf
    return x


def scores_and_values(rng, M=2, N=40, D=16, dtype=torch.float32):
    """scores[M, N], v[N, D]."""
    return rows(rng, M, N, dtype), torch.randn(N, D, generator=rng).to(dtype)


def some_masked(x):
    """The scores with some of them -inf: single ones, and all but two of row 0, so that its first blocks hold none.

    Of row 1 a block of 16 amid others.
    """
    x = x.clone()
    x[:, ::3] = -math.inf
    x[0, :-3] = x[1, 16:32] = -math.inf
    return x


def low_after_masked(x):
    """Scores near -300, and none in the first 16 columns of row 0: a max of 0 from there leaves it without weight."""
    x = x - 300.0
    x[0, :16] = -math.inf
    return x


def far_from_zero(x):
    """A row near 60,000, one near -60,000, one that spans both."""
    x = x.clone()
    x[0] += 60000.0
    x[1] -= 60000.0
    x[2, ::2] -= 60000.0
    return x


def rising_by_any_gap(x):
    """Four rows whose later scores lie 12, 30, 60 and 95 above the first 16. exp(12) shows; exp(95) is no float32."""
    x = x.clone()
    x[:, 16:] += torch.tensor([[12.0], [30.0], [60.0], [95.0]])
    return x


def small_after_large():
    """16 scores of 0, then 20 blocks that weigh 0.06 each: a bfloat16 sum of 16 + 0.06 is 16."""
    return torch.tensor([[0.0] * 16 + [-5.6] * 320]).bfloat16()


def one_large_many_small():
    """[1, 501]: one score of 0 and 500 of -13, which weigh 1/900 of it together. Who leaves them out is seen."""
    return torch.tensor([[0.0] + [-13.0] * 500])


def strided(x):
    """Other strides: transposed storage; every second column of wider storage; the first row again and again."""
    return [x.t().contiguous().t(), x.repeat_interleave(2, dim=1)[:, ::2], x[:1].expand(x.shape)]


# softmax_stats


@pytest.mark.graded("softmax_stats", "value")
def test_two_blocks_of_the_page(drill):
    m, l = drill.softmax_stats(STORY, 2).agrees()
    assert m.item() == 3.0 and abs(l.item() - 1.553) < 1e-3


@pytest.mark.graded("softmax_stats", "value")
@pytest.mark.parametrize("dtype", DTYPES, ids=short)
def test_max_and_sum_over_blocks_of_16(drill, dtype):
    drill.softmax_stats(rows(drill.rng, N=40, dtype=dtype), 16).agrees()


@pytest.mark.graded("softmax_stats", "value")
@pytest.mark.parametrize("order", ["rising", "falling"])
def test_sorted_rows(drill, order):
    """The max moves in every block, or in none but the first."""
    drill.softmax_stats(rows(drill.rng).sort(descending=order == "falling").values, 16).agrees()


@pytest.mark.graded("softmax_stats", "value")
def test_every_score_negative(drill):
    drill.softmax_stats(-rows(drill.rng).abs() - 1.0, 16).agrees()


@pytest.mark.graded("softmax_stats", "value")
def test_block_makes_no_difference(drill):
    x = rows(drill.rng, M=1, N=20)
    first, *others = (drill.softmax_stats(x, block).agrees() for block in BLOCKS)
    for other in others:
        other.equals(first)


@pytest.mark.graded("softmax_stats", "value")
def test_a_shift_of_the_row_moves_m_and_leaves_l(drill):
    x = (rows(drill.rng) * 8).round() / 8
    m, l = drill.softmax_stats(x, 16)
    drill.softmax_stats(x + 8.0, 16).agrees().equals((m + 8.0, l))


@pytest.mark.graded("softmax_stats", "edge")
@pytest.mark.parametrize("N", [1, 15, 16, 17, 33])
def test_row_length_around_the_block(drill, N):
    drill.softmax_stats(rows(drill.rng, M=2, N=N), 16).agrees()


@pytest.mark.graded("softmax_stats", "edge")
def test_many_blocks_of_one_column(drill):
    """A block is a power of two, and 1 is one."""
    drill.softmax_stats(rows(drill.rng, M=1, N=70), 1).agrees()


@pytest.mark.graded("softmax_stats", "edge")
def test_default_block_on_a_short_and_on_a_long_row(drill):
    drill.softmax_stats(rows(drill.rng, N=5)).agrees()
    drill.softmax_stats(long_rows(drill.rng)).agrees()


@pytest.mark.graded("softmax_stats", "edge")
def test_masked_scores_anywhere(drill):
    for block in (16, 64):
        drill.softmax_stats(some_masked(rows(drill.rng)), block).agrees()
    drill.softmax_stats(low_after_masked(rows(drill.rng)), 16).agrees()


@pytest.mark.graded("softmax_stats", "edge")
@pytest.mark.parametrize("N", [40, 1])
def test_a_row_that_is_all_masked(drill, N):
    x = rows(drill.rng, N=N)
    x[1] = -math.inf
    m, l = drill.softmax_stats(x, 16).agrees()
    assert m[1] == -math.inf and l[1] == 0.0


@pytest.mark.graded("softmax_stats", "edge")
def test_scores_far_from_zero(drill):
    for block in (16, 64):
        drill.softmax_stats(far_from_zero(rows(drill.rng)), block).agrees()


@pytest.mark.graded("softmax_stats", "edge")
def test_later_blocks_far_above(drill):
    drill.softmax_stats(rising_by_any_gap(rows(drill.rng, M=4)), 16).agrees()


@pytest.mark.graded("softmax_stats", "edge")
def test_bfloat16_beyond_the_range_of_float16(drill):
    drill.softmax_stats((rows(drill.rng) * 2.0**17).bfloat16(), 16).agrees()


@pytest.mark.graded("softmax_stats", "edge")
def test_many_scores_of_little_weight(drill):
    drill.softmax_stats(one_large_many_small(), 64).agrees()


@pytest.mark.graded("softmax_stats", "edge")
@pytest.mark.parametrize("M, N", [(0, 5), (3, 0)])
def test_no_rows_and_no_columns(drill, M, N):
    drill.softmax_stats(rows(drill.rng, M, N), 4).agrees()


@pytest.mark.graded("softmax_stats", "edge")
@pytest.mark.parametrize("score", FAR, ids=power)
def test_equal_scores_of_any_size(drill, score):
    drill.softmax_stats(torch.full((2, 5), score), 2).agrees()


@pytest.mark.graded("softmax_stats", "edge")
def test_more_than_a_hundred_rows(drill):
    drill.softmax_stats(rows(drill.rng, M=130, N=2), 2).agrees()


@pytest.mark.graded("softmax_stats", "memory")
def test_rows_of_other_strides(drill):
    for x in strided(rows(drill.rng)):
        drill.softmax_stats(x, 16).agrees()


@pytest.mark.graded("softmax_stats", "memory")
@pytest.mark.parametrize("axis", [0, 1], ids=["rows", "columns"])
def test_offsets_need_64_bits(drill, axis):
    """The last row, or column, is more than 2^31 elements from the first."""
    drill.softmax_stats(far_apart(rows(drill.rng, M=3, N=3, dtype=torch.float16), axis=axis), 2).agrees()


@pytest.mark.graded("softmax_stats", "traffic")
def test_x_is_read_once(drill):
    drill.softmax_stats(rows(drill.rng, M=2, N=500, dtype=torch.float16), 64).agrees().moves_at_most()


@pytest.mark.graded("softmax_stats", "compile")
def test_softmax_stats_compiles_for_a_gpu(drill):
    drill.compiles()


# softmax


@pytest.mark.graded("softmax", "value")
@pytest.mark.parametrize("dtype", DTYPES, ids=short)
def test_softmax_over_blocks_of_16(drill, dtype):
    drill.softmax(rows(drill.rng, N=40, dtype=dtype), 16).agrees()


@pytest.mark.graded("softmax", "value")
@pytest.mark.parametrize("order", ["rising", "falling"])
def test_softmax_of_sorted_rows(drill, order):
    drill.softmax(rows(drill.rng).sort(descending=order == "falling").values, 16).agrees()


@pytest.mark.graded("softmax", "value")
def test_block_makes_no_difference_to_softmax(drill):
    x = rows(drill.rng, M=1, N=20)
    first, *others = (drill.softmax(x, block).agrees() for block in BLOCKS)
    for other in others:
        other.equals(first)


@pytest.mark.graded("softmax", "value")
def test_a_shift_of_the_row_leaves_softmax_alone(drill):
    x = (rows(drill.rng) * 8).round() / 8
    drill.softmax(x + 8.0, 16).agrees().equals(drill.softmax(x, 16))


@pytest.mark.graded("softmax", "value")
def test_half_sums_would_lose_small_terms(drill):
    drill.softmax(small_after_large(), 16).agrees()


@pytest.mark.graded("softmax", "edge")
@pytest.mark.parametrize("N", [1, 15, 16, 17])
def test_softmax_of_rows_around_the_block(drill, N):
    drill.softmax(rows(drill.rng, M=2, N=N), 16).agrees()


@pytest.mark.graded("softmax", "edge")
def test_softmax_in_many_blocks_of_one_column(drill):
    drill.softmax(rows(drill.rng, M=1, N=70), 1).agrees()


@pytest.mark.graded("softmax", "edge")
def test_default_block_for_softmax(drill):
    drill.softmax(rows(drill.rng, N=5)).agrees()
    drill.softmax(long_rows(drill.rng)).agrees()


@pytest.mark.graded("softmax", "edge")
def test_masked_scores_get_no_weight(drill):
    for block in (16, 64):
        drill.softmax(some_masked(rows(drill.rng)), block).agrees()


@pytest.mark.graded("softmax", "edge")
@pytest.mark.parametrize("N", [40, 1])
def test_a_row_that_is_all_masked_gives_zeros(drill, N):
    x = rows(drill.rng, N=N)
    x[1] = -math.inf
    (y,) = drill.softmax(x, 16).agrees()
    assert not y[1].any()


@pytest.mark.graded("softmax", "edge")
def test_softmax_of_scores_far_from_zero(drill):
    for block in (16, 64):
        drill.softmax(far_from_zero(rows(drill.rng)), block).agrees()


@pytest.mark.graded("softmax", "edge")
def test_every_score_far_below_zero(drill):
    for block in (16, 64):
        drill.softmax(low_after_masked(rows(drill.rng)), block).agrees()


@pytest.mark.graded("softmax", "edge")
def test_first_block_far_above_the_rest(drill):
    x = rows(drill.rng)
    x[:, :16] += 200.0
    drill.softmax(x, 16).agrees()


@pytest.mark.graded("softmax", "edge")
def test_later_blocks_far_above_the_first(drill):
    drill.softmax(rising_by_any_gap(rows(drill.rng, M=4)), 16).agrees()


@pytest.mark.graded("softmax", "edge")
def test_softmax_of_bfloat16_beyond_the_range_of_float16(drill):
    drill.softmax((rows(drill.rng) * 2.0**17).bfloat16(), 16).agrees()


@pytest.mark.graded("softmax", "edge")
def test_softmax_of_many_scores_of_little_weight(drill):
    drill.softmax(one_large_many_small(), 64).agrees()


@pytest.mark.graded("softmax", "edge")
@pytest.mark.parametrize("M, N", [(0, 5), (3, 0)])
def test_softmax_of_nothing(drill, M, N):
    drill.softmax(rows(drill.rng, M, N), 4).agrees()


@pytest.mark.graded("softmax", "edge")
@pytest.mark.parametrize("score", FAR, ids=power)
def test_softmax_of_equal_scores_of_any_size(drill, score):
    drill.softmax(torch.full((2, 5), score), 2).agrees()


@pytest.mark.graded("softmax", "edge")
def test_softmax_of_more_than_a_hundred_rows(drill):
    drill.softmax(rows(drill.rng, M=130, N=2), 2).agrees()


@pytest.mark.graded("softmax", "memory")
def test_softmax_of_rows_of_other_strides(drill):
    for x in strided(rows(drill.rng)):
        drill.softmax(x, 16).agrees()


@pytest.mark.graded("softmax", "memory")
@pytest.mark.parametrize("axis", [0, 1], ids=["rows", "columns"])
def test_offsets_of_softmax_need_64_bits(drill, axis):
    """The last row, or column, is more than 2^31 elements from the first."""
    drill.softmax(far_apart(rows(drill.rng, M=3, N=3, dtype=torch.float16), axis=axis), 2).agrees()


@pytest.mark.graded("softmax", "traffic")
def test_x_is_read_at_most_twice_and_y_written_once(drill):
    drill.softmax(rows(drill.rng, M=2, N=500, dtype=torch.float16), 64).agrees().moves_at_most()


@pytest.mark.graded("softmax", "compile")
def test_softmax_compiles_for_a_gpu(drill):
    drill.compiles()


# attend


@pytest.mark.graded("attend", "value")
def test_the_values_of_the_page(drill):
    (o,) = drill.attend(STORY, torch.tensor([[10.0], [20.0], [30.0], [40.0]]), 2).agrees()
    assert abs(o.item() - 26.21) < 0.01


@pytest.mark.graded("attend", "value")
@pytest.mark.parametrize("dtype", DTYPES, ids=short)
def test_attend_over_blocks_of_16(drill, dtype):
    drill.attend(*scores_and_values(drill.rng, D=80, dtype=dtype), 16).agrees()


@pytest.mark.graded("attend", "value")
@pytest.mark.parametrize("of_scores, of_v", [(torch.float32, torch.float16), (torch.float16, torch.float32)], ids=short)
def test_scores_of_another_dtype_than_the_values(drill, of_scores, of_v):
    scores, v = scores_and_values(drill.rng)
    drill.attend(scores.to(of_scores), v.to(of_v), 16).agrees()


@pytest.mark.graded("attend", "value")
@pytest.mark.parametrize("order", ["rising", "falling"])
def test_attend_with_sorted_scores(drill, order):
    scores, v = scores_and_values(drill.rng)
    drill.attend(scores.sort(descending=order == "falling").values, v, 16).agrees()


@pytest.mark.graded("attend", "value")
def test_block_makes_no_difference_to_attend(drill):
    scores, v = scores_and_values(drill.rng, M=1, N=20)
    first, *others = (drill.attend(scores, v, block).agrees() for block in BLOCKS)
    for other in others:
        other.equals(first)


@pytest.mark.graded("attend", "value")
def test_a_shift_of_the_scores_leaves_o_alone(drill):
    scores, v = scores_and_values(drill.rng)
    scores = (scores * 8).round() / 8
    drill.attend(scores - 16.0, v, 16).agrees().equals(drill.attend(scores, v, 16))


@pytest.mark.graded("attend", "value")
def test_half_sums_would_lose_small_values(drill):
    scores = small_after_large()
    v = torch.stack([torch.ones(336), scores[0] == 0], 1).bfloat16()  # the second column sees l, the first one o
    drill.attend(scores, v, 16).agrees()


@pytest.mark.graded("attend", "edge")
@pytest.mark.parametrize("N", [1, 15, 16, 17])
def test_attend_to_rows_around_the_block(drill, N):
    drill.attend(*scores_and_values(drill.rng, M=1, N=N), 16).agrees()


@pytest.mark.graded("attend", "edge")
def test_attend_in_many_blocks_of_one_score(drill):
    drill.attend(*scores_and_values(drill.rng, M=1, N=70, D=2), 1).agrees()


@pytest.mark.graded("attend", "edge")
def test_default_block_for_attend(drill):
    """1120 scores are a multiple of 32 that leaves a block of 64 half empty. Many are masked; the max is late."""
    scores, v = scores_and_values(drill.rng, M=1, N=1120, D=2)
    scores[0, -100], scores[0, :300] = 12.0, -math.inf
    drill.attend(scores, v.abs()).agrees()


@pytest.mark.graded("attend", "edge")
@pytest.mark.parametrize("D", [1, 96, 512])
def test_value_size_one_and_large(drill, D):
    """Values of one sign: in a single column, values that cancel leave nothing to measure an error against."""
    scores, v = scores_and_values(drill.rng, M=1, D=D)
    drill.attend(scores, v.abs(), 16).agrees()


@pytest.mark.graded("attend", "edge")
def test_masked_scores_anywhere_in_attend(drill):
    """Every third in all rows. What v holds there is finite and no more than that: a weight of 1e-30 would show."""
    scores, v = scores_and_values(drill.rng)
    v[::3] = 2.0**100
    drill.attend(some_masked(scores), v, 16).agrees()


@pytest.mark.graded("attend", "edge")
@pytest.mark.parametrize("N", [40, 1])
def test_a_row_of_scores_that_is_all_masked_gives_zeros(drill, N):
    scores, v = scores_and_values(drill.rng, N=N)
    scores[1] = -math.inf
    (o,) = drill.attend(scores, v, 16).agrees()
    assert not o[1].any()


@pytest.mark.graded("attend", "edge")
def test_attend_with_scores_far_from_zero(drill):
    """And with values in half precision: 60,001 is no half, and scores are not rounded to what v is."""
    scores, v = scores_and_values(drill.rng, M=3)
    for block in (16, 64):
        drill.attend(far_from_zero(scores), v, block).agrees()
    drill.attend(far_from_zero(scores), v.half(), 16).agrees()


@pytest.mark.graded("attend", "edge")
def test_attend_with_every_score_far_below_zero(drill):
    scores, v = scores_and_values(drill.rng)
    drill.attend(low_after_masked(scores), v, 16).agrees()


@pytest.mark.graded("attend", "edge")
def test_attend_with_the_first_block_far_above(drill):
    scores, v = scores_and_values(drill.rng)
    scores[:, :16] += 200.0
    drill.attend(scores, v, 16).agrees()


@pytest.mark.graded("attend", "edge")
def test_attend_with_later_blocks_far_above(drill):
    """Half precision has no room for exp(12) already."""
    scores, v = scores_and_values(drill.rng, M=4)
    for values in (v, v.half()):
        drill.attend(rising_by_any_gap(scores), values, 16).agrees()


@pytest.mark.graded("attend", "edge")
def test_attend_in_bfloat16_beyond_the_range_of_float16(drill):
    """The scores, then the values."""
    scores, v = scores_and_values(drill.rng, dtype=torch.bfloat16)
    drill.attend(scores * 2.0**17, v, 16).agrees()
    drill.attend(scores, v * 2.0**20, 16).agrees()


@pytest.mark.graded("attend", "edge")
def test_attend_to_many_scores_of_little_weight(drill):
    """250 of exp(-18.5), whose values are 64 times as large: 1/7000 of the result. Then 250 of exp(-13)."""
    scores, v = one_large_many_small(), 1.0 + torch.rand(501, 4, generator=drill.rng)
    scores[:, 1:251] = -18.5
    v[1:251] *= 64.0
    drill.attend(scores, v, 64).agrees()


@pytest.mark.graded("attend", "edge")
@pytest.mark.parametrize("M, N", [(0, 5), (3, 0)])
def test_attend_to_nothing(drill, M, N):
    drill.attend(*scores_and_values(drill.rng, M, N), 4).agrees()


@pytest.mark.graded("attend", "edge")
@pytest.mark.parametrize("score", FAR, ids=power)
def test_attend_with_equal_scores_of_any_size(drill, score):
    drill.attend(torch.full((2, 5), score), torch.rand(5, 2, generator=drill.rng) + 1.0, 2).agrees()


@pytest.mark.graded("attend", "edge")
def test_attend_with_more_than_a_hundred_rows(drill):
    drill.attend(*scores_and_values(drill.rng, M=130, N=2, D=2), 2).agrees()


@pytest.mark.graded("attend", "memory")
def test_scores_and_values_of_other_strides(drill):
    scores, v = scores_and_values(drill.rng)
    for x, u in zip(strided(scores), strided(v), strict=True):
        drill.attend(x, u, 16).agrees()


@pytest.mark.graded("attend", "memory")
@pytest.mark.parametrize("axes", [(0, None), (None, 0), (1, None)], ids=["scores", "v", "columns of the scores"])
def test_offsets_of_attend_need_64_bits(drill, axes):
    """Of the scores, or of v: the last one along this axis is more than 2^31 elements from the first."""
    case = zip(scores_and_values(drill.rng, M=3, N=3, D=3, dtype=torch.float16), axes, strict=True)
    drill.attend(*(x if axis is None else far_apart(x, axis=axis) for x, axis in case), 2).agrees()


@pytest.mark.graded("attend", "traffic")
def test_scores_are_read_once(drill):
    """One row, so that v is read once as well; D = 2, so that a second read of the scores shows.

    Values of one sign: those of two columns may cancel in both, and weights may be rounded to half.
    """
    scores, v = scores_and_values(drill.rng, M=1, N=500, D=2, dtype=torch.float16)
    drill.attend(scores, v.abs(), 64).agrees().moves_at_most()


@pytest.mark.graded("attend", "compile")
def test_attend_compiles_for_a_gpu(drill):
    drill.compiles()
