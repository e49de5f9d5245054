"""Graded tests of lesson 3: LSEs in two bases, their merge, the way to FlashInfer's convention, partial states."""

import math

import pytest
import torch

from drills.lessons.parts import random_qkv
from drills.lessons.strides import far_apart

DTYPES = [torch.float16, torch.bfloat16, torch.float32]
FAR = [-(2.0**127), -(2.0**20), 2.0**20, 2.0**127]
"""Far beyond any sentinel. Equal powers of two, so that no way to scale or shift them rounds."""
GAPS = torch.tensor([12.0, 30.0, 60.0, 95.0])
"""exp(12) shows where it is not scaled back; exp(95) is no float32."""
NOT_FINITE = torch.tensor([math.nan, math.inf]).repeat(8)
"""What an empty row of 16 columns may hold: 0 times either is NaN, and who looks for NaN alone misses inf."""
LOG2E = 1 / math.log(2)


def short(value):
    """A dtype's name for a test id; None: pytest's own."""
    return str(value).removeprefix("torch.") if isinstance(value, torch.dtype) else None


def power(value):
    """2.0**20 as a test id: "2^20"."""
    return f"{'-' if value < 0 else ''}2^{math.frexp(abs(value))[1] - 1}"


def rows(rng, M=3, N=40, dtype=torch.float32):
    """Ordinary scores [M, N]."""
    return (torch.randn(M, N, generator=rng) * 2).to(dtype)


def pair(rng, S=3, H=2, D=16, dtype=torch.float32):
    """o_a[S, H, D], lse_a[S, H], o_b, lse_b. Outputs in bfloat16 are of a size that no float16 on its way can hold."""
    o_a, o_b = (torch.randn(2, S, H, D, generator=rng) * (2.0**17 if dtype == torch.bfloat16 else 1.0)).to(dtype)
    lse_a, lse_b = torch.randn(2, S, H, generator=rng) * 3
    return o_a, lse_a, o_b, lse_b


def half_values_that_cancel():
    """Two halves [1, 1, 16] with 3/4 of one and 1/4 of the other about 0.17: 3/4 of the first is no half."""
    a = (1374 + 4 * torch.arange(16.0)) / 1024
    return a.half().reshape(1, 1, 16), (0.68 - 3 * a).half().reshape(1, 1, 16)


def states(rng, L, S=2, H=2, D=16, dtype=torch.float32):
    """q[S, H, D], k[L, H, D], v[L, H, D]."""
    return random_qkv(rng, L, H, D, dtype, leading=(S,))


def one_head(scores, values):
    """q[1, 1, 1], k[L, 1, 1], v[L, 1, 1] with exactly these scores and values at scale 1."""
    return torch.ones(1, 1, 1), torch.tensor(scores).reshape(-1, 1, 1), torch.tensor(values).reshape(-1, 1, 1)


def lse_and_lse2(level):
    """One test for both functions, graded for each."""
    names = ("lse", "lse2")
    return pytest.mark.parametrize(
        "name", [pytest.param(name, marks=pytest.mark.graded(name, level), id=name) for name in names]
    )


# lse and lse2


@lse_and_lse2("value")
def test_two_halves_of_the_page(drill, name):
    """A = [1, 2], B = [3, 0]: 2.313 and 3.049 natural, 3.337 and 4.398 in base 2."""
    (s,) = getattr(drill, name)(torch.tensor([[1.0, 2.0], [3.0, 0.0]])).agrees()
    expected = [2.3133, 3.0486] if name == "lse" else [3.3373, 4.3982]
    assert torch.allclose(s, torch.tensor(expected), atol=1e-3)


@lse_and_lse2("value")
@pytest.mark.parametrize("dtype", DTYPES, ids=short)
def test_rows_of_40_scores(drill, name, dtype):
    getattr(drill, name)(rows(drill.rng, dtype=dtype)).agrees()


@lse_and_lse2("value")
def test_a_shift_of_the_row_moves_the_lse_as_much(drill, name):
    x = (rows(drill.rng) * 8).round() / 8
    (s,) = getattr(drill, name)(x)
    getattr(drill, name)(x + 8.0).agrees().equals((s + 8.0 * (1.0 if name == "lse" else LOG2E),))


@lse_and_lse2("value")
def test_long_rows_in_any_order(drill, name):
    """The max moves with every block, or never."""
    x = rows(drill.rng, M=2, N=16 * 1024 + 64).sort().values
    x[1] = x[1].flip(0)
    getattr(drill, name)(x).agrees()


@lse_and_lse2("edge")
@pytest.mark.parametrize("N", [1, 16, 33])
def test_short_rows(drill, name, N):
    getattr(drill, name)(rows(drill.rng, N=N)).agrees()


@lse_and_lse2("edge")
@pytest.mark.parametrize("N", [8, 32, 64, 96])
def test_rows_cut_out_of_longer_ones(drill, name, N):
    """What follows a row in memory is not its own, whatever N is a multiple of."""
    getattr(drill, name)(rows(drill.rng, N=200)[:, :N]).agrees()


@lse_and_lse2("edge")
@pytest.mark.parametrize("score", FAR, ids=power)
def test_equal_scores_of_any_size(drill, name, score):
    getattr(drill, name)(torch.full((2, 5), score)).agrees()


@lse_and_lse2("edge")
def test_more_than_a_hundred_rows(drill, name):
    getattr(drill, name)(rows(drill.rng, M=133, N=2)).agrees()


@lse_and_lse2("edge")
def test_masked_scores_and_a_row_with_no_score(drill, name):
    x = rows(drill.rng)
    x[:, :20] = -math.inf
    x[1] = -math.inf
    (s,) = getattr(drill, name)(x).agrees()
    assert s[1] == -math.inf


@lse_and_lse2("edge")
def test_a_long_row_that_begins_with_masked_scores(drill, name):
    """The others are far below 0: a max of 0 from the masked ones leaves them without weight."""
    x = rows(drill.rng, M=2, N=5000)
    x[0, :4990] = -math.inf
    x[0, 4990:] -= 300.0
    getattr(drill, name)(x).agrees()


@lse_and_lse2("edge")
def test_later_scores_far_above(drill, name):
    """Four rows: the last 500 scores are 12, 30, 60 and 95 larger."""
    x = rows(drill.rng, M=4, N=5000)
    x[:, 4500:] += GAPS[:, None]
    getattr(drill, name)(x).agrees()


@lse_and_lse2("edge")
def test_many_scores_of_little_weight(drill, name):
    """One score of 0 and 5,000 of -13, which weigh 1/90 of it together."""
    getattr(drill, name)(torch.tensor([[0.0] + [-13.0] * 5000])).agrees()


@lse_and_lse2("edge")
@pytest.mark.parametrize("shift", [60000.0, 200.0, -300.0, -60000.0])
def test_scores_far_from_zero(drill, name, shift):
    """Of two rows one is near `shift`, one near minus that: a max that they share leaves one of them without weight."""
    getattr(drill, name)(rows(drill.rng, M=2) + shift * torch.tensor([[1.0], [-1.0]])).agrees()


@lse_and_lse2("edge")
@pytest.mark.parametrize("M, N", [(0, 5), (3, 0)])
def test_no_rows_and_no_columns(drill, name, M, N):
    """In half precision: what is filled in is float32 all the same."""
    getattr(drill, name)(rows(drill.rng, M, N, dtype=torch.float16)).agrees()


@lse_and_lse2("memory")
def test_rows_of_other_strides(drill, name):
    x = rows(drill.rng)
    for y in (x.t().contiguous().t(), x.repeat_interleave(2, dim=1)[:, ::2], x[:1].expand(3, -1)):
        getattr(drill, name)(y).agrees()


@lse_and_lse2("memory")
@pytest.mark.parametrize("axis", [0, 1], ids=["rows", "columns"])
def test_offsets_need_64_bits(drill, name, axis):
    """The last row, or column, is more than 2^31 elements from the first."""
    getattr(drill, name)(far_apart(rows(drill.rng, M=3, N=3, dtype=torch.float16), axis=axis)).agrees()


@lse_and_lse2("traffic")
def test_x_is_read_at_most_twice(drill, name):
    getattr(drill, name)(rows(drill.rng, M=2, N=500, dtype=torch.float16)).agrees().moves_at_most()


@lse_and_lse2("compile")
def test_the_kernel_compiles_for_a_gpu(drill, name):
    drill.compiles()


# merge_natural


@pytest.mark.graded("merge_natural", "value")
def test_the_halves_of_the_page_give_its_lse(drill):
    o_a, o_b = torch.tensor([[[17.3106]]]), torch.tensor([[[30.4743]]])
    o, lse = drill.merge_natural(o_a, torch.tensor([[2.3133]]), o_b, torch.tensor([[3.0486]])).agrees()
    assert abs(o.item() - 26.21) < 0.01 and abs(lse.item() - 3.440) < 1e-3


@pytest.mark.graded("merge_natural", "value")
@pytest.mark.parametrize("dtype", DTYPES, ids=short)
def test_two_outputs_merge_as_one(drill, dtype):
    drill.merge_natural(*pair(drill.rng, D=80, dtype=dtype)).agrees()


@pytest.mark.graded("merge_natural", "value")
def test_order_of_the_two_makes_no_difference(drill):
    o_a, lse_a, o_b, lse_b = pair(drill.rng)
    drill.merge_natural(o_a, lse_a, o_b, lse_b).agrees().equals(drill.merge_natural(o_b, lse_b, o_a, lse_a))


@pytest.mark.graded("merge_natural", "value")
def test_any_tree_of_merges_gives_one_answer(drill):
    """Five outputs, two chosen at random and merged until one is left; against one after the other."""
    given = [pair(drill.rng)[:2] for _ in range(5)]
    in_turn = given[0]
    for other in given[1:]:
        in_turn = drill.merge_natural(*in_turn, *other)
    while len(given) > 1:
        a, b = (given.pop(int(torch.randint(len(given), (), generator=drill.rng))) for _ in range(2))
        given.append(drill.merge_natural(*a, *b).agrees())
    given[0].equals(in_turn)


@pytest.mark.graded("merge_natural", "value")
def test_both_lses_shifted_move_only_the_lse(drill):
    o_a, lse_a, o_b, lse_b = pair(drill.rng)
    lse_a, lse_b = lse_a.round(), lse_b.round()
    o, lse = drill.merge_natural(o_a, lse_a, o_b, lse_b)
    drill.merge_natural(o_a, lse_a + 16.0, o_b, lse_b + 16.0).agrees().equals((o, lse + 16.0))


@pytest.mark.graded("merge_natural", "edge")
@pytest.mark.parametrize("side", ["left", "right"])
def test_an_empty_side_changes_nothing(drill, side):
    o, lse, *_ = pair(drill.rng)
    empty = NOT_FINITE.expand(o.shape), torch.full_like(lse, -math.inf)
    given = (*empty, o, lse) if side == "left" else (o, lse, *empty)
    drill.merge_natural(*given).agrees().equals((o, lse))


@pytest.mark.graded("merge_natural", "edge")
@pytest.mark.parametrize("payload", [torch.zeros(16), NOT_FINITE], ids=["o = 0", "o = nan"])
def test_two_empty_rows_stay_empty(drill, payload):
    """One of six rows; its neighbors are ordinary."""
    o_a, lse_a, o_b, lse_b = pair(drill.rng)
    for o, lse in ((o_a, lse_a), (o_b, lse_b)):
        o[1, 0], lse[1, 0] = payload, -math.inf
    o, lse = drill.merge_natural(o_a, lse_a, o_b, lse_b).agrees()
    assert lse[1, 0] == -math.inf and not o[1, 0].any()


@pytest.mark.graded("merge_natural", "edge")
@pytest.mark.parametrize("shift", [-60000.0, -300.0, 200.0, 60000.0])
def test_lses_far_from_zero(drill, shift):
    o_a, lse_a, o_b, lse_b = pair(drill.rng)
    drill.merge_natural(o_a, lse_a + shift, o_b, lse_b + shift).agrees()


@pytest.mark.graded("merge_natural", "edge")
def test_lses_far_from_each_other(drill):
    o_a, lse_a, o_b, lse_b = pair(drill.rng)
    lse_a[0] += 120.0
    lse_b[1] += 50000.0
    drill.merge_natural(o_a, lse_a, o_b, lse_b).agrees()


@pytest.mark.graded("merge_natural", "edge")
@pytest.mark.parametrize("gap", [-10.5, 10.5])
def test_an_output_of_little_weight_counts(drill, gap):
    """It weighs 2.8e-5 of the other: three times the tolerance of the LSE. In the last position 8e-7, and is large."""
    o_a, lse_a, o_b, _ = pair(drill.rng)
    (o_a if gap > 0 else o_b)[2] *= 64.0
    drill.merge_natural(o_a, lse_a, o_b, lse_a + gap * torch.tensor([[1.0], [1.0], [4 / 3]])).agrees()


@pytest.mark.graded("merge_natural", "edge")
@pytest.mark.parametrize("S, H, D", [(0, 2, 8), (1, 1, 1), (2, 1, 512), (7, 5, 33), (70, 1, 2), (1, 133, 2)])
def test_any_shape(drill, S, H, D):
    """Values of one sign: in a single column, values that cancel leave nothing to measure an error against.

    None in half precision: what is returned without a launch has the right dtype too.
    """
    o_a, lse_a, o_b, lse_b = pair(drill.rng, S, H, D, dtype=torch.float32 if S else torch.float16)
    drill.merge_natural(o_a.abs(), lse_a, o_b.abs(), lse_b).agrees()


@pytest.mark.graded("merge_natural", "edge")
@pytest.mark.parametrize("size", FAR, ids=power)
def test_equal_lses_of_any_size(drill, size):
    o_a, lse, o_b, _ = pair(drill.rng, D=2)
    lse = torch.full_like(lse, size)
    drill.merge_natural(o_a, lse, o_b, lse.clone()).agrees()


@pytest.mark.graded("merge_natural", "edge")
def test_half_outputs_that_nearly_cancel(drill):
    """Weights of 3/4 and 1/4: their products are sums of more bits than a half has, and must not lose them."""
    o_a, o_b = half_values_that_cancel()
    drill.merge_natural(o_a, torch.full((1, 1), math.log(3)), o_b, torch.zeros(1, 1)).agrees()


@pytest.mark.graded("merge_natural", "memory")
def test_lses_heads_first_and_sliced_outputs(drill):
    o_a, lse_a, o_b, lse_b = pair(drill.rng)
    drill.merge_natural(o_a, lse_a.t().contiguous().t(), o_b.repeat_interleave(2, dim=2)[..., ::2], lse_b).agrees()
    drill.merge_natural(o_a.repeat_interleave(2, dim=2)[..., ::2], lse_a, o_b, lse_b.t().contiguous().t()).agrees()


@pytest.mark.graded("merge_natural", "memory")
@pytest.mark.parametrize("side", "ab")
def test_offsets_of_outputs_need_64_bits(drill, side):
    """The last position on one side, and the last head on the other, begins more than 2^31 elements after the first."""
    case = pair(drill.rng, H=3, dtype=torch.float16)
    axes = (0, 0, 1, 1) if side == "a" else (1, 1, 0, 0)
    drill.merge_natural(*(far_apart(x, axis=axis) for x, axis in zip(case, axes, strict=True))).agrees()


@pytest.mark.graded("merge_natural", "traffic")
def test_each_output_is_read_once(drill):
    drill.merge_natural(*pair(drill.rng, D=64, dtype=torch.float16)).agrees().moves_at_most()


@pytest.mark.graded("merge_natural", "compile")
def test_merge_natural_compiles_for_a_gpu(drill):
    drill.compiles()


# to_flashinfer


@pytest.mark.graded("to_flashinfer", "value")
def test_the_lses_of_the_page(drill):
    (s,) = drill.to_flashinfer(torch.tensor([[2.3133, 3.0486, 3.4402]])).agrees()
    assert torch.allclose(s.flatten(), torch.tensor([3.337, 4.398, 4.963]), atol=1e-3)


@pytest.mark.graded("to_flashinfer", "value")
@pytest.mark.parametrize("H, T", [(3, 5), (5, 3), (4, 4)])
def test_heads_first_becomes_positions_first(drill, H, T):
    drill.to_flashinfer(rows(drill.rng, H, T)).agrees()


@pytest.mark.graded("to_flashinfer", "value")
def test_s_is_contiguous(drill):
    """A transposed view holds the right numbers, but a kernel that reads s positions first would not find them."""
    (s,) = drill.to_flashinfer(rows(drill.rng, 3, 5)).agrees()
    assert s.is_contiguous(), f"s[5, 3] has strides {s.stride()}, contiguous memory has (3, 1)"


@pytest.mark.graded("to_flashinfer", "edge")
def test_both_infinities_are_empty_rows(drill):
    lse = rows(drill.rng, 3, 5)
    lse[0, 1], lse[2, 3] = math.inf, -math.inf
    lse[1, 2] = 0.0  # an LSE like any other
    (s,) = drill.to_flashinfer(lse).agrees()
    assert s[1, 0] == s[3, 2] == -math.inf


@pytest.mark.graded("to_flashinfer", "edge")
@pytest.mark.parametrize("H, T", [(1, 1), (40, 70), (2, 300), (300, 2), (3, 0)])
def test_any_number_of_heads_and_positions(drill, H, T):
    drill.to_flashinfer(rows(drill.rng, H, T) * 100.0).agrees()


@pytest.mark.graded("to_flashinfer", "edge")
@pytest.mark.parametrize("size", FAR, ids=power)
def test_only_infinity_is_empty(drill, size):
    drill.to_flashinfer(torch.full((2, 3), size)).agrees()


@pytest.mark.graded("to_flashinfer", "memory")
def test_an_lse_of_other_strides(drill):
    lse = rows(drill.rng, 3, 5)
    for x in (lse.t().contiguous().t(), lse.repeat_interleave(2, dim=1)[:, ::2]):
        drill.to_flashinfer(x).agrees()


@pytest.mark.graded("to_flashinfer", "memory")
@pytest.mark.parametrize("axis", [0, 1], ids=["heads", "positions"])
def test_offsets_of_heads_need_64_bits(drill, axis):
    """The last head, or position, begins more than 2^31 elements after the first."""
    drill.to_flashinfer(far_apart(rows(drill.rng, 3, 3), axis=axis)).agrees()


@pytest.mark.graded("to_flashinfer", "traffic")
def test_one_read_and_one_write(drill):
    drill.to_flashinfer(rows(drill.rng, 8, 40)).agrees().moves_at_most()


@pytest.mark.graded("to_flashinfer", "compile")
def test_to_flashinfer_compiles_for_a_gpu(drill):
    drill.compiles()


# partial_states


@pytest.mark.graded("partial_states", "value")
def test_two_halves_of_the_page_as_states(drill):
    v, s = drill.partial_states(*one_head([1.0, 2.0, 3.0, 0.0], [10.0, 20.0, 30.0, 40.0]), 2, 1.0).agrees()
    assert torch.allclose(v.flatten(), torch.tensor([17.311, 30.474]), atol=1e-2)
    assert torch.allclose(s.flatten(), torch.tensor([3.337, 4.398]), atol=1e-3)


@pytest.mark.graded("partial_states", "value")
@pytest.mark.parametrize("dtype", DTYPES, ids=short)
def test_three_parts_of_40_keys(drill, dtype):
    v, _ = drill.partial_states(*states(drill.rng, 40, S=1, D=80, dtype=dtype), 3).agrees()
    rounded = dtype != torch.float32 and torch.equal(v, v.to(dtype).float())
    assert not rounded, f"v was rounded to {short(dtype)} before it was stored: partial results keep float32"


@pytest.mark.graded("partial_states", "value")
@pytest.mark.parametrize("scale", [0.7, 0.0])
def test_several_queries_and_a_scale(drill, scale):
    drill.partial_states(*states(drill.rng, 13, S=3), 2, scale).agrees()


@pytest.mark.graded("partial_states", "value")
@pytest.mark.parametrize("num_splits", [2, 5])
def test_any_number_of_splits_merges_to_the_whole(drill, num_splits):
    q, k, v = states(drill.rng, 17)
    v_n, s_n = drill.partial_states(q, k, v, num_splits).agrees()
    weight = torch.softmax(s_n.double() * math.log(2), 1)
    merged = (weight[..., None] * v_n).sum(1, keepdim=True), torch.logsumexp(s_n.double() * math.log(2), 1) * LOG2E
    drill.partial_states(q, k, v, 1).agrees().equals((merged[0], merged[1][:, None]))


@pytest.mark.graded("partial_states", "edge")
@pytest.mark.parametrize("L, num_splits", [(1, 1), (15, 4), (17, 4), (129, 2)])
def test_parts_of_unequal_length(drill, L, num_splits):
    drill.partial_states(*states(drill.rng, L, S=1), num_splits).agrees()


@pytest.mark.graded("partial_states", "edge")
@pytest.mark.parametrize("L, num_splits", [(5, 8), (0, 3)])
def test_parts_past_the_end_are_empty_states(drill, L, num_splits):
    """With no key at all in half precision: what is filled in is float32 all the same."""
    dtype = torch.float32 if L else torch.float16
    v, s = drill.partial_states(*states(drill.rng, L, S=1, dtype=dtype), num_splits).agrees()
    assert s[0, -1].tolist() == [-math.inf] * 2 and not v[0, -1].any()


@pytest.mark.graded("partial_states", "edge")
@pytest.mark.parametrize("D", [1, 96, 512])
def test_head_size_one_and_large(drill, D):
    q, k, v = states(drill.rng, 9, S=1, D=D)
    drill.partial_states(q, k, v.abs(), 2).agrees()


@pytest.mark.graded("partial_states", "edge")
@pytest.mark.parametrize("shift", [-60000.0, 60000.0])
def test_states_of_scores_far_from_zero(drill, shift):
    """Of two positions and two heads, so that a max that they share leaves some without weight."""
    _, k, v = one_head([shift + x for x in (0.0, 2.0, 1.0, 5.0, 3.0)], [0.0, 1.0, 2.0, 3.0, 4.0])
    q = torch.tensor([[[1.0], [-1.0]], [[-1.0], [1.0]]])
    drill.partial_states(q, k.repeat(1, 2, 1), v.repeat(1, 2, 1), 2, 1.0).agrees()


@pytest.mark.graded("partial_states", "edge")
def test_later_keys_far_above(drill):
    """Four heads of 160 keys: the last 32 score 12, 30, 60 and 95 more."""
    _, k, v = states(drill.rng, 160, S=1, H=4, D=1)
    k[128:] += GAPS[:, None]
    drill.partial_states(torch.ones(1, 4, 1), k, v.abs() + 0.5, 1, 1.0).agrees()  # with one column sums may cancel


@pytest.mark.graded("partial_states", "edge")
def test_many_keys_of_little_weight(drill):
    """400 of weight exp(-19), whose values are 64 times as large: 1/7000 of the result. Then 700 of exp(-13)."""
    values = 1.0 + torch.rand(1101, generator=drill.rng)
    values[1:401] *= 64.0
    drill.partial_states(*one_head([0.0] + [-19.0] * 400 + [-13.0] * 700, values.tolist()), 1, 1.0).agrees()


@pytest.mark.graded("partial_states", "edge")
def test_no_query(drill):
    drill.partial_states(*states(drill.rng, 5, S=0, dtype=torch.float16), 2).agrees()


@pytest.mark.graded("partial_states", "edge")
@pytest.mark.parametrize("score", FAR, ids=power)
def test_states_of_equal_scores_of_any_size(drill, score):
    drill.partial_states(*one_head([score] * 5, [0.0, 1.0, 2.0, 3.0, 4.0]), 2, 1.0).agrees()


@pytest.mark.graded("partial_states", "edge")
@pytest.mark.parametrize("S, H", [(133, 1), (1, 70)])
def test_more_queries_or_heads_than_a_tile_holds(drill, S, H):
    q, k, v = states(drill.rng, 3, S=S, H=H, D=2)
    drill.partial_states(q, k, v.abs(), 1).agrees()


@pytest.mark.graded("partial_states", "memory")
def test_queries_keys_and_values_of_other_strides(drill):
    """First q's own, in all axes, then those of k and v, which differ."""
    q, k, v = states(drill.rng, 11)
    drill.partial_states(q.permute(2, 1, 0).contiguous().permute(2, 1, 0), k, v, 3).agrees()
    k, v = k.permute(2, 1, 0).contiguous().permute(2, 1, 0), v.repeat_interleave(2, dim=2)[..., ::2]
    drill.partial_states(q, k, v, 3).agrees()


@pytest.mark.graded("partial_states", "memory")
@pytest.mark.parametrize("axes", [(0, 0, None), (None, None, 0), (1, 1, 1)], ids=["q and k", "v", "heads"])
def test_offsets_of_keys_need_64_bits(drill, axes):
    """Of q, k and v: the last one along this axis begins more than 2^31 elements after the first."""
    case = zip(states(drill.rng, 3, S=3, H=3, dtype=torch.float16), axes, strict=True)
    drill.partial_states(*(x if axis is None else far_apart(x, axis=axis) for x, axis in case), 2).agrees()


@pytest.mark.graded("partial_states", "traffic")
def test_a_part_reads_its_own_keys_only(drill):
    drill.partial_states(*states(drill.rng, 128, S=1, H=1, D=64, dtype=torch.float16), 4).agrees().moves_at_most()


@pytest.mark.graded("partial_states", "compile")
def test_partial_states_compiles_for_a_gpu(drill):
    drill.compiles()
