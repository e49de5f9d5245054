"""Graded tests of lesson 2: attention over parts of the keys, and the parts merged two at a time and all at once."""

import math

import pytest
import torch

from drills.lessons.oracle import merge_mlo
from drills.lessons.parts import partial, random_qkv
from drills.lessons.strides import far_apart
from drills.lessons.triple_draws import as_pair, make_empty, parts_of

DTYPES = [torch.float16, torch.bfloat16, torch.float32]
FAR = [-(2.0**127), -(2.0**20), 2.0**20, 2.0**127]
"""Far beyond any sentinel. Equal powers of two, so that no way to scale or shift them rounds."""
GAPS = torch.tensor([12.0, 30.0, 60.0, 95.0])
"""exp(12) shows where it is not scaled back; exp(95) is no float32."""
NOT_FINITE = torch.tensor([math.nan, math.inf]).repeat(8)
"""What an empty part of 16 columns may hold: 0 times either is NaN, and who looks for NaN alone misses inf."""
COUNTEREXAMPLE = torch.tensor([0.0, 0.0, 10.0]), torch.tensor([0.0, 0.0, 9.0])
STORY = torch.tensor([1.0, 2.0, 3.0, 0.0]), torch.tensor([10.0, 20.0, 30.0, 40.0])


def short(value):
    """A dtype's name for a test id; None: pytest's own."""
    return str(value).removeprefix("torch.") if isinstance(value, torch.dtype) else None


def power(value):
    """2.0**20 as a test id: "2^20"."""
    return f"{'-' if value < 0 else ''}2^{math.frexp(abs(value))[1] - 1}"


def one_head(scores, values):
    """q[1, 1], k[L, 1, 1], v[L, 1, 1] with exactly these scores and values at scale 1."""
    return torch.ones(1, 1), scores.reshape(-1, 1, 1), values.reshape(-1, 1, 1)


def parts_by_hand(scores, values, sizes):
    """m[N, 1], l[N, 1], o[N, 1, 1] of consecutive parts of these sizes, from the oracle."""
    ends = torch.tensor(sizes).cumsum(0).tolist()
    spans = [slice(end - size, end) for size, end in zip(sizes, ends, strict=True)]
    return [t.float() for t in partial(scores[None], values.reshape(-1, 1, 1), spans)]


def half_outputs_that_cancel():
    """m[4, 1], l[4, 1], o[4, 1, 16]: 3/8, 3/8, 1/8 and 1/8 of these halves are about 0.02, and no sum of two is a half.

    Merged two by two, or weighted, in half precision they are off by 1e-4 and more.
    """
    a = (1374 + 4 * torch.arange(16.0)) / 1024
    o = torch.stack([a, a + 1 / 1024, 0.08 - 3 * a, 0.08 - 3 * a]).half()[:, None]
    return torch.zeros(4, 1), torch.tensor([[1.5], [1.5], [0.5], [0.5]]), o


def wide(x):
    """The same values, every third of a vector three times as long."""
    return x.repeat_interleave(3)[::3]


def neutral(parts):
    """An empty part of the same shape, whose payload is NaN and inf."""
    return make_empty(parts, torch.ones_like(parts[0], dtype=torch.bool), NOT_FINITE)


def from_parts(m, l, o, n):
    """Part n as (m[H], l[H], o[H, D])."""
    return m[n], l[n], o[n]


# partial_attention


@pytest.mark.graded("partial_attention", "value")
def test_two_halves_of_the_page(drill):
    m, l, o = drill.partial_attention(*one_head(*STORY), 2, 1.0).agrees()
    assert m.flatten().tolist() == [2.0, 3.0]
    assert torch.allclose(l.flatten(), torch.tensor([1.3679, 1.0498]), atol=1e-3)
    assert torch.allclose(o.flatten(), torch.tensor([17.311, 30.474]), atol=1e-2)


@pytest.mark.graded("partial_attention", "value")
@pytest.mark.parametrize("dtype", DTYPES, ids=short)
def test_three_parts_of_40_keys(drill, dtype):
    _, _, o = drill.partial_attention(*random_qkv(drill.rng, 40, H=2, D=80, dtype=dtype), 3).agrees()
    rounded = dtype != torch.float32 and torch.equal(o, o.to(dtype).float())
    assert not rounded, f"o was rounded to {short(dtype)} before it was stored: partial results keep float32"


@pytest.mark.graded("partial_attention", "value")
@pytest.mark.parametrize("scale", [0.7, 0.0, -0.7])
def test_a_scale_given_replaces_the_default(drill, scale):
    drill.partial_attention(*random_qkv(drill.rng, 13, H=2), 2, scale).agrees()


@pytest.mark.graded("partial_attention", "value")
@pytest.mark.parametrize("num_splits", [2, 5])
def test_any_number_of_splits_merges_to_the_whole(drill, num_splits):
    q, k, v = random_qkv(drill.rng, 17, H=2)
    parts = drill.partial_attention(q, k, v, num_splits).agrees()
    drill.partial_attention(q, k, v, 1).agrees().equals(tuple(t[None] for t in merge_mlo(*parts)))


@pytest.mark.graded("partial_attention", "value")
def test_more_score_for_every_key_leaves_o_alone(drill):
    q, k, v = random_qkv(drill.rng, 13, H=2)
    q[:, 0] = 8.0
    o = drill.partial_attention(q, k, v, 3, 1.0).agrees()[2]
    k_shifted = k.clone()
    k_shifted[..., 0] += 1.0
    shifted = drill.partial_attention(q, k_shifted, v, 3, 1.0).agrees()
    shifted.equals((shifted[0], shifted[1], o))


@pytest.mark.graded("partial_attention", "edge")
@pytest.mark.parametrize("L, num_splits", [(1, 1), (15, 4), (16, 4), (17, 4), (65, 1), (129, 2)])
def test_parts_of_unequal_length(drill, L, num_splits):
    drill.partial_attention(*random_qkv(drill.rng, L, H=2), num_splits).agrees()


@pytest.mark.graded("partial_attention", "edge")
@pytest.mark.parametrize("L, num_splits", [(5, 8), (4, 3), (0, 2)])
def test_parts_past_the_end_are_empty(drill, L, num_splits):
    """With no key at all in half precision: what is filled in has the right dtype too."""
    dtype = torch.float32 if L else torch.float16
    m, l, o = drill.partial_attention(*random_qkv(drill.rng, L, H=2, dtype=dtype), num_splits).agrees()
    assert m[-1].tolist() == [-math.inf] * 2 and not l[-1].any() and not o[-1].any()


@pytest.mark.graded("partial_attention", "edge")
@pytest.mark.parametrize("D", [1, 96, 512])
def test_head_size_one_and_large(drill, D):
    """Values of one sign: in a single column, values that cancel leave nothing to measure an error against."""
    q, k, v = random_qkv(drill.rng, 9, H=2, D=D)
    drill.partial_attention(q, k, v.abs(), 2).agrees()


@pytest.mark.graded("partial_attention", "edge")
@pytest.mark.parametrize("shift", [-60000.0, 60000.0])
def test_scores_far_from_zero(drill, shift):
    scores = shift + torch.tensor([0.0, 2.0, 1.0, 5.0, 3.0])
    drill.partial_attention(*one_head(scores, torch.arange(5.0)), 2, 1.0).agrees()


@pytest.mark.graded("partial_attention", "edge")
@pytest.mark.parametrize("score", FAR, ids=power)
def test_equal_scores_of_any_size(drill, score):
    drill.partial_attention(*one_head(torch.full((5,), score), torch.arange(5.0)), 2, 1.0).agrees()


@pytest.mark.graded("partial_attention", "edge")
def test_later_keys_far_above(drill):
    """Four heads of 160 keys: the last 32 score 12, 30, 60 and 95 more."""
    _, k, v = random_qkv(drill.rng, 160, H=4, D=1)
    k[128:] += GAPS[:, None]
    drill.partial_attention(torch.ones(4, 1), k, v.abs() + 0.5, 1, 1.0).agrees()  # with one column sums may cancel


@pytest.mark.graded("partial_attention", "edge")
def test_many_keys_of_little_weight(drill):
    """400 of weight exp(-19), whose values are 64 times as large: 1/7000 of the result. Then 700 of exp(-13)."""
    scores = torch.tensor([0.0] + [-19.0] * 400 + [-13.0] * 700)
    values = 1.0 + torch.rand(1101, generator=drill.rng)
    values[1:401] *= 64.0
    drill.partial_attention(*one_head(scores, values), 1, 1.0).agrees()


@pytest.mark.graded("partial_attention", "edge")
def test_more_than_a_hundred_heads(drill):
    drill.partial_attention(*random_qkv(drill.rng, 3, H=133, D=2), 1).agrees()


@pytest.mark.graded("partial_attention", "memory")
def test_queries_keys_and_values_of_other_strides(drill):
    """First q's own, then those of k and v, which differ."""
    q, k, v = random_qkv(drill.rng, 11, H=2)
    drill.partial_attention(q.t().contiguous().t(), k, v, 3).agrees()
    k, v = k.permute(2, 1, 0).contiguous().permute(2, 1, 0), v.repeat_interleave(2, dim=2)[..., ::2]
    drill.partial_attention(q, k, v, 3).agrees()


@pytest.mark.graded("partial_attention", "memory")
@pytest.mark.parametrize("axes", [(None, 0, None), (None, None, 0), (0, 1, 1)], ids=["k", "v", "heads"])
def test_offsets_need_64_bits(drill, axes):
    """Of q, k and v: the last key, or the last head, begins more than 2^31 elements after the first."""
    case = zip(random_qkv(drill.rng, 3, H=3, dtype=torch.float16), axes, strict=True)
    drill.partial_attention(*(x if axis is None else far_apart(x, axis=axis) for x, axis in case), 2).agrees()


@pytest.mark.graded("partial_attention", "traffic")
def test_a_part_reads_its_own_keys_only(drill):
    drill.partial_attention(*random_qkv(drill.rng, 128, H=1, D=64, dtype=torch.float16), 4).agrees().moves_at_most()


@pytest.mark.graded("partial_attention", "traffic")
def test_every_part_of_every_head_has_a_program(drill):
    """This is what the keys are split for."""
    drill.partial_attention(*random_qkv(drill.rng, 13, H=3), 4).agrees().runs_at_least(12)


@pytest.mark.graded("partial_attention", "compile")
def test_partial_attention_compiles_for_a_gpu(drill):
    drill.compiles()


# merge_pair


@pytest.mark.graded("merge_pair", "value")
def test_the_two_halves_of_the_page_merge(drill):
    m, l, o = drill.merge_pair(*as_pair(*parts_by_hand(*STORY, [2, 2]))).agrees()
    assert m.item() == 3.0 and abs(l.item() - 1.553) < 1e-3 and abs(o.item() - 26.21) < 0.01


@pytest.mark.graded("merge_pair", "value")
@pytest.mark.parametrize("dtype", DTYPES, ids=short)
def test_two_parts_merge_as_one(drill, dtype):
    drill.merge_pair(*as_pair(*parts_of(drill.rng, 2, H=5, D=80, dtype=dtype))).agrees()


@pytest.mark.graded("merge_pair", "value")
def test_order_of_the_two_makes_no_difference(drill):
    a, b = (from_parts(*parts_of(drill.rng, 1), 0) for _ in range(2))
    drill.merge_pair(*a, *b).agrees().equals(drill.merge_pair(*b, *a))


@pytest.mark.graded("merge_pair", "value")
def test_sequential_streamed_and_tree_order_agree(drill):
    """Four parts: one after the other; in two streams that meet at the end; two by two."""
    m, l, o = parts_of(drill.rng, 4)
    parts = [from_parts(m, l, o, n) for n in range(4)]

    def in_turn(states):
        first, *others = states
        for other in others:
            first = drill.merge_pair(*first, *other)
        return first

    sequential = in_turn(parts)
    in_turn([in_turn(parts[0::2]), in_turn(parts[1::2])]).equals(sequential)
    in_turn([in_turn(parts[n : n + 2]) for n in (0, 2)]).equals(sequential)
    sequential.equals(merge_mlo(m, l, o))


@pytest.mark.graded("merge_pair", "value")
@pytest.mark.parametrize("turn", range(2))
def test_any_tree_of_merges_gives_one_answer(drill, turn):
    """Five parts, two chosen at random and merged until one is left."""
    m, l, o = parts_of(drill.rng, 5)
    states = [from_parts(m, l, o, n) for n in range(5)]
    while len(states) > 1:
        a, b = (states.pop(int(torch.randint(len(states), (), generator=drill.rng))) for _ in range(2))
        states.append(drill.merge_pair(*a, *b).agrees())
    states[0].equals(merge_mlo(m, l, o))


@pytest.mark.graded("merge_pair", "edge")
@pytest.mark.parametrize("side", ["left", "right"])
def test_an_empty_part_changes_nothing(drill, side):
    part = from_parts(*parts_of(drill.rng, 1), 0)
    pair = (*neutral(part), *part) if side == "left" else (*part, *neutral(part))
    drill.merge_pair(*pair).agrees().equals(part)


@pytest.mark.graded("merge_pair", "edge")
@pytest.mark.parametrize("payload", [0.0, NOT_FINITE], ids=["o = 0", "o = nan"])
def test_two_empty_parts_stay_empty(drill, payload):
    """In two of four heads; the others are ordinary."""
    where = torch.tensor([False, True, False, True]).expand(2, 4)
    m, l, o = drill.merge_pair(*as_pair(*make_empty(parts_of(drill.rng, 2, H=4), where, payload))).agrees()
    assert m[1] == -math.inf and l[1] == 0.0 and not o[1].any()


@pytest.mark.graded("merge_pair", "edge")
@pytest.mark.parametrize("gap", [60000.0, 90.0, 0.0])
def test_maxima_far_from_zero_and_from_each_other(drill, gap):
    """Part a is far below in two heads, far above in one."""
    m, l, o = parts_of(drill.rng, 2)
    m = m.round() - 55000.0
    m[1] = m[0] + gap * torch.tensor([1.0, -1.0, 1.0])
    drill.merge_pair(*as_pair(m, l, o)).agrees()


@pytest.mark.graded("merge_pair", "edge")
@pytest.mark.parametrize("gap", [-12.0, 12.0])
def test_a_part_of_little_weight_counts(drill, gap):
    """It weighs 1e-4 of the other: ten times the tolerance of l. In the last head 8e-7, but its o is large."""
    _, l, o = parts_of(drill.rng, 2)
    m = torch.stack([torch.zeros(3), gap * torch.tensor([1.0, 1.0, 1.4])])
    o[int(gap < 0), 2] *= 64.0
    drill.merge_pair(*as_pair(m, torch.where(m == m.max(), 1.0, 16.0), o)).agrees()


@pytest.mark.graded("merge_pair", "edge")
@pytest.mark.parametrize("H, D", [(1, 1), (3, 512), (40, 33), (300, 2)])
def test_any_number_of_heads_and_any_head_size(drill, H, D):
    m, l, o = parts_of(drill.rng, 2, H=H, D=D)
    drill.merge_pair(*as_pair(m, l, o.abs())).agrees()


@pytest.mark.graded("merge_pair", "edge")
@pytest.mark.parametrize("top", FAR, ids=power)
def test_equal_maxima_of_any_size(drill, top):
    _, l, o = parts_of(drill.rng, 2, H=2, D=2)
    drill.merge_pair(*as_pair(torch.full_like(l, top), l, o)).agrees()


@pytest.mark.graded("merge_pair", "edge")
def test_half_outputs_that_nearly_cancel(drill):
    m, l, o = half_outputs_that_cancel()
    drill.merge_pair(*as_pair(m[1:3], 2.0 * l[1:3], o[1:3])).agrees()


@pytest.mark.graded("merge_pair", "memory")
def test_parts_of_other_strides(drill):
    m_a, l_a, o_a, m_b, l_b, o_b = as_pair(*parts_of(drill.rng, 2, H=4))
    drill.merge_pair(wide(m_a), l_a, o_a.t().contiguous().t(), m_b, wide(l_b), o_b).agrees()
    drill.merge_pair(m_a, wide(l_a), o_a, wide(m_b), l_b, o_b.t().contiguous().t()).agrees()


@pytest.mark.graded("merge_pair", "memory")
@pytest.mark.parametrize("side", "ab")
def test_offsets_of_heads_need_64_bits(drill, side):
    """The last head of o_a and of its m, or of o_b and of the other l, is more than 2^31 elements from the first."""
    m_a, l_a, o_a, m_b, l_b, o_b = as_pair(*parts_of(drill.rng, 2, dtype=torch.float16))
    if side == "a":
        drill.merge_pair(far_apart(m_a), l_a, far_apart(o_a), m_b, far_apart(l_b), o_b).agrees()
    else:
        drill.merge_pair(m_a, far_apart(l_a), o_a, far_apart(m_b), l_b, far_apart(o_b)).agrees()


@pytest.mark.graded("merge_pair", "compile")
def test_merge_pair_compiles_for_a_gpu(drill):
    drill.compiles()


# merge_mlo


@pytest.mark.graded("merge_mlo", "value")
def test_the_counterexample_to_averaging(drill):
    """Scores [0, 0, 10], values [0, 0, 9], split 2 + 1: the average of the parts is 4.5."""
    (o,) = drill.merge_mlo(*parts_by_hand(*COUNTEREXAMPLE, [2, 1])).agrees()
    assert abs(o.item() - 8.9992) < 1e-4


@pytest.mark.graded("merge_mlo", "value")
@pytest.mark.parametrize("dtype", DTYPES, ids=short)
def test_seven_parts_merge_as_one(drill, dtype):
    drill.merge_mlo(*parts_of(drill.rng, 7, H=2, D=80, dtype=dtype)).agrees()


@pytest.mark.graded("merge_mlo", "value")
def test_order_of_the_parts_makes_no_difference(drill):
    m, l, o = parts_of(drill.rng, 6)
    mixed = torch.randperm(6, generator=drill.rng)
    drill.merge_mlo(m[mixed], l[mixed], o[mixed]).agrees().equals(drill.merge_mlo(m, l, o))


@pytest.mark.graded("merge_mlo", "edge")
@pytest.mark.parametrize("N, H", [(1, 3), (2, 3), (65, 3), (1030, 1)])
def test_any_number_of_parts(drill, N, H):
    """Parts of equal scores, so that every one of them counts."""
    o = torch.randn(N, H, 16, generator=drill.rng)
    drill.merge_mlo(torch.zeros(N, H), torch.ones(N, H), o).agrees()


@pytest.mark.graded("merge_mlo", "edge")
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32], ids=short)
def test_no_parts_give_zeros(drill, dtype):
    drill.merge_mlo(*parts_of(drill.rng, 0, dtype=dtype)).agrees()


@pytest.mark.graded("merge_mlo", "edge")
@pytest.mark.parametrize("payload", [0.0, NOT_FINITE], ids=["o = 0", "o = nan"])
def test_empty_parts_and_a_head_of_empty_parts(drill, payload):
    where = torch.tensor([[True, True, False], [True, False, False], [True, True, False], [True, False, True]])
    (o,) = drill.merge_mlo(*make_empty(parts_of(drill.rng, 4), where, payload)).agrees()
    assert not o[0].any()


@pytest.mark.graded("merge_mlo", "edge")
def test_hundreds_of_empty_parts_may_come_first(drill):
    """And the one that counts is far below 0: a max of 0 from the empty ones leaves it without weight."""
    m, o = torch.full((300, 1), -300.0), torch.randn(300, 1, 64, generator=drill.rng)
    where = torch.arange(300)[:, None] < 299
    drill.merge_mlo(*make_empty((m, torch.ones(300, 1), o), where, math.nan)).agrees()


@pytest.mark.graded("merge_mlo", "edge")
def test_a_single_part_may_be_empty(drill):
    """In the second of two heads."""
    where = torch.tensor([[False, True]])
    drill.merge_mlo(*make_empty(parts_of(drill.rng, 1, H=2), where, NOT_FINITE)).agrees()


@pytest.mark.graded("merge_mlo", "edge")
@pytest.mark.parametrize("shift", [-60000.0, 60000.0])
def test_maxima_far_from_zero(drill, shift):
    """The last head's on the other side of it: whoever subtracts one max from all heads finds a head without weight."""
    m, l, o = parts_of(drill.rng, 5)
    drill.merge_mlo(m.round() + shift * torch.tensor([1.0, 1.0, -1.0]), l, o).agrees()


@pytest.mark.graded("merge_mlo", "edge")
def test_later_parts_far_above(drill):
    """Four heads of 80 parts: the last 8 have maxima 12, 30, 60 and 95 larger."""
    m, l = torch.randn(80, 4, generator=drill.rng), 1.0 + torch.rand(80, 4, generator=drill.rng)
    m[72:] += GAPS
    drill.merge_mlo(m, l, torch.randn(80, 4, 2, generator=drill.rng)).agrees()


@pytest.mark.graded("merge_mlo", "edge")
def test_many_parts_of_little_weight(drill):
    """40 of weight exp(-17), whose o are 64 times as large: 1/10000 of the result. Then 39 of exp(-13)."""
    m = torch.tensor([0.0] + [-17.0] * 40 + [-13.0] * 39)[:, None]
    o = 1.0 + torch.rand(80, 1, 1, generator=drill.rng)
    o[1:41] *= 64.0
    drill.merge_mlo(m, torch.ones(80, 1), o).agrees()


@pytest.mark.graded("merge_mlo", "edge")
@pytest.mark.parametrize("D", [1, 96, 512])
def test_merge_of_head_size_one_and_large(drill, D):
    m, l, o = parts_of(drill.rng, 9, D=D)
    drill.merge_mlo(m, l, o.abs()).agrees()


@pytest.mark.graded("merge_mlo", "edge")
@pytest.mark.parametrize("top", FAR, ids=power)
def test_all_maxima_equal_and_of_any_size(drill, top):
    _, l, o = parts_of(drill.rng, 3, H=2, D=2)
    (o,) = drill.merge_mlo(torch.full_like(l, top), l, o.abs() + 1.0).agrees()
    assert (o > 0).all(), "parts whose maximum is the largest got no weight"


@pytest.mark.graded("merge_mlo", "edge")
def test_parts_of_more_than_a_hundred_heads(drill):
    drill.merge_mlo(*parts_of(drill.rng, 2, H=133, D=2)).agrees()


@pytest.mark.graded("merge_mlo", "edge")
def test_half_parts_that_nearly_cancel(drill):
    """32 times each, one after the other: a sum that is kept in half precision is far from 0 before it cancels."""
    drill.merge_mlo(*(x.repeat_interleave(32, 0) for x in half_outputs_that_cancel())).agrees()


@pytest.mark.graded("merge_mlo", "memory")
def test_all_parts_of_other_strides(drill):
    """First m's own, then l's, then o's."""
    m, l, o = parts_of(drill.rng, 4)
    drill.merge_mlo(m.t().contiguous().t(), l, o).agrees()
    drill.merge_mlo(m, l.repeat_interleave(2, dim=1)[:, ::2], o).agrees()
    drill.merge_mlo(m, l, o.transpose(0, 1).repeat_interleave(2, -1)[..., ::2].transpose(0, 1)).agrees()


@pytest.mark.graded("merge_mlo", "memory")
@pytest.mark.parametrize("axis", [0, 1], ids=["parts", "heads"])
def test_offsets_of_parts_need_64_bits(drill, axis):
    """The last part, or the last head, begins more than 2^31 elements after the first."""
    drill.merge_mlo(*(far_apart(x, axis=axis) for x in parts_of(drill.rng, 3, dtype=torch.float16))).agrees()


@pytest.mark.graded("merge_mlo", "compile")
def test_merge_mlo_compiles_for_a_gpu(drill):
    drill.compiles()
