"""Graded tests of lesson 4: two states, in place, many states, and runs of any length.

Shapes are small and awkward: S, N and H differ and D is no power of two, so that an address computed in the wrong
order, or a block that does not fit, shows. What is right comes from the float64 oracle in drills/lessons/oracle.py.
"""

import math

import pytest
import torch

from drills.lessons.strides import far_apart

DTYPES = [torch.float32, torch.float16, torch.bfloat16]
HALVES = DTYPES[1:]
EMPTY = -math.inf
FAR = [-(2.0**127), -(2.0**20), 2.0**20, 2.0**127]
"""Far beyond any sentinel. Equal powers of two, so that no way to scale or shift them rounds."""


def short(value):
    """A dtype's name for a test id; None: pytest's own."""
    return str(value).removeprefix("torch.") if isinstance(value, torch.dtype) else None


def power(value):
    """2.0**20 as a test id: "2^20"."""
    return f"{'-' if value < 0 else ''}2^{math.frexp(abs(value))[1] - 1}"


def states(rng, *shape, dtype=torch.float32):
    """v of this shape, D last, and its s: about 8, give or take 2, so that every state counts.

    v in bfloat16 is 2^17 times as large, and no float16 on its way can hold it.
    """
    v = torch.randn(shape, generator=rng) + 2 * torch.randn((*shape[:-1], 1), generator=rng)
    v *= 2.0**17 if dtype == torch.bfloat16 else 1.0
    return v.to(dtype), 8 + 2 * torch.randn(shape[:-1], generator=rng)


def two_states(rng, S, H, D, dtype=torch.float32):
    """v_a, s_a, v_b, s_b of the same shape."""
    return *states(rng, S, H, D, dtype=dtype), *states(rng, S, H, D, dtype=dtype)


def runs(rng, indptr, H, D, dtype=torch.float32, index=torch.int32, more=0):
    """v[M, H, D], s[M, H] and indptr, with `more` rows after the last run."""
    return *states(rng, indptr[-1] + more, H, D, dtype=dtype), torch.tensor(indptr, dtype=index)


def values_that_lose(dtype):
    """Seven columns. Summed in half precision with equal weights, one of them is rounded down in every step.

    Column j is 1 + 2^-(j + 2) less one unit in the last place: which column loses depends on how many states a step
    adds up first.
    """
    return 1 + 2.0 ** -torch.arange(2.0, 9.0).to(dtype) - torch.finfo(dtype).eps


def half_values_that_cancel():
    """Two halves [1, 1, 16] with 3/4 of one and 1/4 of the other about 0.17: 3/4 of the first is no half."""
    a = (1374 + 4 * torch.arange(16.0)) / 1024
    return a.half().reshape(1, 1, 16), (0.68 - 3 * a).half().reshape(1, 1, 16)


def many_halves_that_cancel(rng, pairs):
    """v[2 * pairs, 1, 4] and s alike: states of about 1.5, as many of about -1.5, and 0.03 is left of them.

    Merged apart, the two halves lie 61.5 steps of float16 apart: rounded to it, they are half a step wrong or more.
    """
    steps = torch.randint(1024, 2048, (pairs, 1, 4), generator=rng)
    others = 61 + torch.arange(pairs)[:, None, None] % 2 - steps
    return (torch.cat([steps, others]) / 1024).half(), torch.zeros(2 * pairs, 1)


def many_of_little_weight(rng):
    """v[81, 2, 12] and s alike: one state of s = 0, 40 of -24.5 whose v are 64 times as large, and 40 of -17."""
    v = 1.0 + torch.rand(81, 2, 12, generator=rng)
    v[1:41] *= 64.0
    return v, torch.tensor([0.0] + [-24.5] * 40 + [-17.0] * 40)[:, None].repeat(1, 2)


def rising_by_any_gap(rng):
    """v[160, 4, 64] and s alike: in four heads the last 16 lie 17, 43, 87 and 140 above. 2^140 is no float32."""
    v, s = states(rng, 160, 4, 64)
    s[144:] += torch.tensor([17.0, 43.0, 87.0, 140.0])
    return v.abs(), s


def empty_out(v, s, *where, payload=0.0):
    """Makes the states at these places empty; their v holds `payload`."""
    for place in where:
        s[place], v[place] = EMPTY, payload


def not_finite(D):
    """What an empty state may hold: 0 times NaN and 0 times inf are NaN, and who looks for NaN alone misses inf."""
    return torch.tensor([math.nan, math.inf]).repeat(D // 2)


def as_it_is(x):
    """The tensor itself, contiguous."""
    return x


def wide(x):
    """The same values as every second column of a tensor twice as wide."""
    return torch.stack([x, x], -1).flatten(-2)[..., ::2]


def turned(x):
    """The same values, with the first two axes swapped in memory: x.transpose(0, 1) is contiguous.

    Where an axis has one index only, x is contiguous too, whatever the stride of that axis.
    """
    return x.transpose(0, 1).clone(memory_format=torch.contiguous_format).transpose(0, 1)


def cut(x):
    """The same values, cut out of rows that are twice as long: columns are adjacent, and rows are not."""
    return torch.cat([x, x], -1)[..., : x.shape[-1]]


def repeated(x):
    """The first position again and again, without a copy: stride 0."""
    return x[:1].expand(x.shape)


# merge_state


@pytest.mark.graded("merge_state", "value")
@pytest.mark.parametrize("dtype", DTYPES, ids=short)
def test_two_states_merge_as_one(drill, dtype):
    drill.merge_state(*two_states(drill.rng, S=5, H=3, D=80, dtype=dtype)).agrees()


@pytest.mark.graded("merge_state", "value")
@pytest.mark.parametrize("D", [1, 7, 96, 128, 512])
def test_any_head_size(drill, D):
    """Values of one sign: in a single column, values that cancel leave nothing to measure an error against."""
    v_a, s_a, v_b, s_b = two_states(drill.rng, S=2, H=3, D=D)
    drill.merge_state(v_a.abs(), s_a, v_b.abs(), s_b).agrees()


@pytest.mark.graded("merge_state", "value")
def test_any_order_and_grouping_gives_one_answer(drill):
    a, b, c = (states(drill.rng, 2, 1, 12) for _ in range(3))
    left = drill.merge_state(*drill.merge_state(*a, *b), *c)
    left.equals(drill.merge_state(*a, *drill.merge_state(*b, *c)))
    left.equals(drill.merge_state(*drill.merge_state(*c, *a), *b))


@pytest.mark.graded("merge_state", "edge")
def test_two_empty_states_stay_empty(drill):
    """Beside rows where only one is empty, or none: the rows of a tile need not be alike."""
    v_a, s_a, v_b, s_b = two_states(drill.rng, S=4, H=2, D=12)
    empty_out(v_a, s_a, (0, 1), (1, 0), (2, 1), payload=5.0)
    empty_out(v_b, s_b, (0, 1), (3, 0), (2, 1), payload=-3.0)
    drill.merge_state(v_a, s_a, v_b, s_b).agrees()


@pytest.mark.graded("merge_state", "edge")
@pytest.mark.parametrize("payload", [math.nan, math.inf])
def test_what_an_empty_state_holds_is_not_used(drill, payload):
    v_a, s_a, v_b, s_b = two_states(drill.rng, S=3, H=2, D=24, dtype=torch.float16)
    empty_out(v_a, s_a, (0, 1), (1, 0), payload=payload)
    empty_out(v_b, s_b, (0, 1), (2, 0), payload=payload)
    drill.merge_state(v_a, s_a, v_b, s_b).agrees()


@pytest.mark.graded("merge_state", "edge")
def test_scores_far_from_zero_are_legal(drill):
    """Both low, both high, b far above, a far above, both below what 2^s holds, one empty."""
    v_a, s_a, v_b, s_b = two_states(drill.rng, S=6, H=1, D=12)
    s_a += torch.tensor([[-70000.0], [70000.0], [-70000.0], [200.0], [-200.0], [-70000.0]])
    s_b += torch.tensor([[-70000.0], [70000.0], [70000.0], [-200.0], [-200.0], [EMPTY]])
    drill.merge_state(v_a, s_a, v_b, s_b).agrees()


@pytest.mark.graded("merge_state", "edge")
@pytest.mark.parametrize("size", FAR, ids=power)
def test_equal_s_of_any_size(drill, size):
    v_a, s, v_b, _ = two_states(drill.rng, S=2, H=1, D=2)
    s = torch.full_like(s, size)
    drill.merge_state(v_a, s, v_b, s.clone()).agrees()


@pytest.mark.graded("merge_state", "edge")
def test_half_values_that_nearly_cancel(drill):
    """Weights of 3/4 and 1/4: their products are sums of more bits than a half has, and must not lose them."""
    v_a, v_b = half_values_that_cancel()
    drill.merge_state(v_a, torch.full((1, 1), math.log2(3)), v_b, torch.zeros(1, 1)).agrees()


@pytest.mark.graded("merge_state", "edge")
def test_a_state_of_little_weight_counts(drill):
    """2^-13 of the other, a or b: twelve times the tolerance. Or 2^-20.5, with a v that is 64 times as large."""
    v_a, s_a, v_b, _ = two_states(drill.rng, S=4, H=1, D=12)
    v_b[2] *= 64.0
    v_a[3] *= 64.0
    drill.merge_state(v_a, s_a, v_b, s_a + torch.tensor([[-13.0], [13.0], [-20.5], [20.5]])).agrees()


@pytest.mark.graded("merge_state", "edge")
def test_results_outlive_the_next_call(drill):
    """Another merge of the same shapes leaves the first one's results alone."""
    for _ in range(2):
        drill.merge_state(*two_states(drill.rng, S=2, H=1, D=2)).agrees()


@pytest.mark.graded("merge_state", "edge")
@pytest.mark.parametrize("S, H", [(1, 1), (0, 3), (70, 1), (1, 133)])
def test_one_row_and_none_and_hundreds(drill, S, H):
    """None in half precision: what is returned without a launch has the right dtype too."""
    dtype = torch.float32 if S else torch.float16
    drill.merge_state(*two_states(drill.rng, S=S, H=H, D=7, dtype=dtype)).agrees()


@pytest.mark.graded("merge_state", "edge")
@pytest.mark.parametrize(
    "one, other",
    [(turned, as_it_is), (turned, wide), (wide, turned), (as_it_is, repeated)],
    ids=["one's axes swapped", "axes swapped", "two columns", "stride 0"],
)
def test_inputs_need_not_be_contiguous(drill, one, other):
    """None is laid out as the one that it merges with."""
    v_a, s_a, v_b, s_b = two_states(drill.rng, S=4, H=3, D=12)
    drill.merge_state(one(v_a), other(s_a), other(v_b), one(s_b)).agrees()


@pytest.mark.graded("merge_state", "memory")
@pytest.mark.parametrize("D", [33, 320])
def test_rows_that_fill_no_tile(drill, D):
    """13 rows of 33 columns, or of 320: the last row and the last column end in the middle of any block.

    With one head, its stride says nothing of where the next row is.
    """
    drill.merge_state(*map(turned, two_states(drill.rng, S=13, H=1, D=D))).agrees()


@pytest.mark.graded("merge_state", "memory")
@pytest.mark.parametrize("side", "ab")
def test_offsets_need_64_bits(drill, side):
    """The last position of one state, and the last head of the other, is more than 2^31 elements from the first."""
    case = two_states(drill.rng, S=3, H=3, D=16, dtype=torch.float16)
    axes = (0, 0, 1, 1) if side == "a" else (1, 1, 0, 0)
    drill.merge_state(*(far_apart(x, axis=axis) for x, axis in zip(case, axes, strict=True))).agrees()


@pytest.mark.graded("merge_state", "traffic")
@pytest.mark.parametrize("D", [64, 128])
def test_every_byte_moves_once(drill, D):
    args = two_states(drill.rng, S=3, H=4, D=D, dtype=torch.float16)
    drill.merge_state(*args).agrees().moves_at_most()


@pytest.mark.graded("merge_state", "compile")
def test_merge_state_compiles_for_gpus(drill):
    drill.compiles()


# merge_state_in_place


@pytest.mark.graded("merge_state_in_place", "value")
@pytest.mark.parametrize("dtype", DTYPES, ids=short)
def test_a_state_is_merged_into_another(drill, dtype):
    drill.merge_state_in_place(*two_states(drill.rng, S=5, H=3, D=80, dtype=dtype)).agrees()


@pytest.mark.graded("merge_state_in_place", "value")
def test_only_positions_whose_mask_is_true_change(drill):
    args = two_states(drill.rng, S=5, H=3, D=40)
    drill.merge_state_in_place(*args, torch.tensor([True, False, False, True, False])).agrees()


@pytest.mark.graded("merge_state_in_place", "value")
@pytest.mark.parametrize("D", [1, 7, 512])
def test_in_place_for_any_head_size(drill, D):
    v, s, v_other, s_other = two_states(drill.rng, S=2, H=3, D=D, dtype=torch.float16)
    drill.merge_state_in_place(v.abs(), s, v_other.abs(), s_other).agrees()


@pytest.mark.graded("merge_state_in_place", "edge")
def test_two_empty_states_make_v_zero_in_place(drill):
    """And where the mask is False, an empty state's NaN is left as it is."""
    v, s, v_other, s_other = two_states(drill.rng, S=5, H=2, D=12)
    empty_out(v, s, (0, 1), (1, 0), (4, 1), payload=not_finite(12))
    empty_out(v_other, s_other, (0, 1), (2, 0), (4, 1), payload=not_finite(12))
    drill.merge_state_in_place(v, s, v_other, s_other, torch.tensor([True, True, True, True, False])).agrees()


@pytest.mark.graded("merge_state_in_place", "edge")
def test_an_empty_state_changes_nothing_in_place(drill):
    v, s, v_other, s_other = two_states(drill.rng, S=3, H=2, D=12)
    s_other.fill_(EMPTY)
    drill.merge_state_in_place(v, s, v_other, s_other).agrees()


@pytest.mark.graded("merge_state_in_place", "edge")
@pytest.mark.parametrize("kind", ["every second element", "one True for all", "one False for all"])
def test_the_mask_may_have_any_stride(drill, kind):
    mask = {
        "every second element": torch.tensor([1, 0, 0, 1, 0, 1, 1, 0], dtype=torch.bool)[::2],
        "one True for all": torch.tensor([True]).expand(4),
        "one False for all": torch.tensor([False]).expand(4),
    }[kind]
    v, s, v_other, s_other = map(turned, two_states(drill.rng, S=4, H=2, D=12))
    drill.merge_state_in_place(wide(v) if kind.startswith("every") else v, s, v_other, s_other, mask).agrees()


@pytest.mark.graded("merge_state_in_place", "edge")
@pytest.mark.parametrize(
    "one, other",
    [(turned, wide), (wide, turned), (as_it_is, turned), (turned, as_it_is)],
    ids=["axes swapped", "every second column", "other's axes swapped", "one's axes swapped"],
)
def test_all_tensors_may_have_any_stride_in_place(drill, one, other):
    """And none has those of the one that it merges with."""
    v, s, v_other, s_other = two_states(drill.rng, S=4, H=3, D=12)
    drill.merge_state_in_place(one(v), other(s), other(v_other), one(s_other)).agrees()


@pytest.mark.graded("merge_state_in_place", "edge")
def test_scores_far_from_zero_are_legal_in_place(drill):
    """And with a mask that is True."""
    v, s, v_other, s_other = two_states(drill.rng, S=5, H=1, D=12)
    s += torch.tensor([[-70000.0], [70000.0], [-70000.0], [200.0], [-70000.0]])
    s_other += torch.tensor([[-70000.0], [70000.0], [70000.0], [-200.0], [EMPTY]])
    drill.merge_state_in_place(v, s, v_other, s_other, torch.ones(5, dtype=torch.bool)).agrees()


@pytest.mark.graded("merge_state_in_place", "edge")
def test_a_state_of_little_weight_counts_in_place(drill):
    """2^-13 of the other, own or not: twelve times the tolerance. Or 2^-20.5, with a v that is 64 times as large."""
    v, s, v_other, _ = two_states(drill.rng, S=4, H=1, D=12)
    v_other[2] *= 64.0
    v[3] *= 64.0
    drill.merge_state_in_place(v, s, v_other, s + torch.tensor([[-13.0], [13.0], [-20.5], [20.5]])).agrees()


@pytest.mark.graded("merge_state_in_place", "edge")
@pytest.mark.parametrize("size", FAR, ids=power)
def test_equal_s_of_any_size_in_place(drill, size):
    v, s, v_other, _ = two_states(drill.rng, S=2, H=1, D=2)
    s = torch.full_like(s, size)
    drill.merge_state_in_place(v, s, v_other, s.clone()).agrees()


@pytest.mark.graded("merge_state_in_place", "edge")
def test_half_values_that_nearly_cancel_in_place(drill):
    v, v_other = half_values_that_cancel()
    drill.merge_state_in_place(v, torch.full((1, 1), math.log2(3)), v_other, torch.zeros(1, 1)).agrees()


@pytest.mark.graded("merge_state_in_place", "edge")
@pytest.mark.parametrize("S, H", [(1, 1), (0, 3), (70, 1), (1, 133)])
def test_one_row_and_none_and_hundreds_in_place(drill, S, H):
    """The mask is True at every third position, the first one included."""
    drill.merge_state_in_place(*two_states(drill.rng, S=S, H=H, D=7), torch.arange(S) % 3 == 0).agrees()


@pytest.mark.graded("merge_state_in_place", "memory")
@pytest.mark.parametrize("D", [33, 320])
def test_rows_that_fill_no_tile_in_place(drill, D):
    """If several programs share a row, all must have read its s before one overwrites it.

    With one head, its stride says nothing of where the next row is.
    """
    drill.merge_state_in_place(*map(turned, two_states(drill.rng, S=13, H=1, D=D))).agrees()


@pytest.mark.graded("merge_state_in_place", "memory")
@pytest.mark.parametrize("axes", [(0, 0, 1, 1), (1, 1, 0, 0)], ids=["own positions", "own heads"])
def test_offsets_need_64_bits_in_place(drill, axes):
    """Of v, s, v_other and s_other: the last one along this axis begins more than 2^31 elements after the first.

    The mask's last position does so too.
    """
    case = two_states(drill.rng, S=3, H=3, D=16, dtype=torch.float16)
    mask = far_apart(torch.tensor([True, False, True]))
    drill.merge_state_in_place(*(far_apart(x, axis=axis) for x, axis in zip(case, axes, strict=True)), mask).agrees()


@pytest.mark.graded("merge_state_in_place", "traffic")
@pytest.mark.parametrize("D", [64, 128])
def test_every_byte_moves_once_in_place(drill, D):
    args = two_states(drill.rng, S=3, H=4, D=D, dtype=torch.float16)
    drill.merge_state_in_place(*args).agrees().moves_at_most()


@pytest.mark.graded("merge_state_in_place", "compile")
def test_merge_state_in_place_compiles_for_gpus(drill):
    drill.compiles()


# merge_states


@pytest.mark.graded("merge_states", "value")
@pytest.mark.parametrize("dtype", DTYPES, ids=short)
def test_three_states_merge_as_one(drill, dtype):
    drill.merge_states(*states(drill.rng, 2, 3, 5, 80, dtype=dtype)).agrees()


@pytest.mark.graded("merge_states", "value")
@pytest.mark.parametrize("N", [1, 2, 5, 64, 129])
def test_any_number_of_states(drill, N):
    """s ends near 0, where float32 is fine: merged one after another, s may be rounded after each.

    Values of one sign here and in what follows: each of many merges adds an error, and what cancels leaves no room.
    """
    v, s = states(drill.rng, 1, N, 2, 12)
    drill.merge_states(v.abs(), s - 12).agrees()


@pytest.mark.graded("merge_states", "value")
@pytest.mark.parametrize("D", [1, 7, 128, 512])
def test_many_states_of_any_head_size(drill, D):
    v, s = states(drill.rng, 1, 6, 2, D)
    drill.merge_states(v.abs(), s).agrees()


@pytest.mark.graded("merge_states", "value")
@pytest.mark.parametrize("order", ["rising", "falling"])
def test_the_largest_s_may_come_last_or_first(drill, order):
    """With s rising, every state brings a new maximum. s ends near 0: rounded after each of 300 merges, it is right."""
    v, s = states(drill.rng, 1, 300, 1, 2)
    s[:] = torch.linspace(-24, -4, 300)[None, :, None]
    drill.merge_states(v.abs(), s if order == "rising" else s.flip(1)).agrees()


@pytest.mark.graded("merge_states", "value")
@pytest.mark.parametrize("dtype, N", [(torch.float16, 1100), (torch.bfloat16, 300)], ids=["float16", "bfloat16"])
def test_a_long_sum_stays_exact(drill, dtype, N):
    drill.merge_states(values_that_lose(dtype).expand(1, N, 1, 7).contiguous(), torch.zeros(1, N, 1)).agrees()


@pytest.mark.graded("merge_states", "value")
def test_many_half_values_that_nearly_cancel(drill):
    v, s = many_halves_that_cancel(drill.rng, 150)
    drill.merge_states(v[None], s[None]).agrees()


@pytest.mark.graded("merge_states", "edge")
def test_any_of_the_states_may_be_empty(drill):
    v, s = states(drill.rng, 2, 5, 3, 12)
    empty_out(v, s, (0, slice(None), 1), (1, slice(0, 4), 0), (1, slice(1, 5), 1), (0, 2, 0), payload=4.0)
    drill.merge_states(v, s).agrees()


@pytest.mark.graded("merge_states", "edge")
@pytest.mark.parametrize("N", [4, 1])
def test_what_empty_states_hold_is_not_used(drill, N):
    v, s = states(drill.rng, 2, N, 3, 20, dtype=torch.float16)
    empty_out(v, s, (0, slice(None), 1), (1, N - 1, 0), (1, 0, 1), (0, N // 2, 0), payload=not_finite(20).half())
    drill.merge_states(v, s).agrees()


@pytest.mark.graded("merge_states", "edge")
def test_hundreds_of_empty_states_may_come_first(drill):
    """Whole blocks of them, and the one that counts is far below 0: a max of 0 from them leaves it without weight."""
    v, s = states(drill.rng, 1, 300, 1, 64)
    empty_out(v, s, (0, slice(0, 299)), payload=math.nan)
    drill.merge_states(v, s - 300.0).agrees()


@pytest.mark.graded("merge_states", "edge")
@pytest.mark.parametrize("S, N, H", [(2, 0, 3), (0, 4, 3), (1, 1, 1), (70, 2, 1), (1, 2, 133)])
def test_no_states_no_positions_one_of_each_and_hundreds(drill, S, N, H):
    """With N = 0 every state is empty: v = 0 and s = -inf. None are merged in half precision."""
    dtype = torch.float32 if S * N else torch.float16
    drill.merge_states(*states(drill.rng, S, N, H, 7, dtype=dtype)).agrees()


@pytest.mark.graded("merge_states", "edge")
def test_many_scores_far_from_zero_are_legal(drill):
    """Those of the second head lie on the other side of 0: a max that heads share leaves one of them without weight."""
    v, s = states(drill.rng, 4, 5, 2, 12)
    shift = torch.tensor([-70000.0, 70000.0, -300.0, -70000.0])[:, None].repeat(1, 5)
    shift[3, 2:] = 70000.0
    drill.merge_states(v, s + torch.stack([shift, -shift], -1)).agrees()


@pytest.mark.graded("merge_states", "edge")
def test_later_states_far_above(drill):
    drill.merge_states(*(x[None] for x in rising_by_any_gap(drill.rng))).agrees()


@pytest.mark.graded("merge_states", "edge")
def test_many_states_of_little_weight_count(drill):
    """40 of weight 2^-24.5, whose v are 64 times as large: 1/10000 of the result. Then 40 of 2^-17."""
    drill.merge_states(*(x[None] for x in many_of_little_weight(drill.rng))).agrees()


@pytest.mark.graded("merge_states", "edge")
@pytest.mark.parametrize("size", FAR, ids=power)
def test_many_equal_s_of_any_size(drill, size):
    v, s = states(drill.rng, 3, 2, 1, 2)
    drill.merge_states(v, torch.full_like(s, size)).agrees()


@pytest.mark.graded("merge_states", "edge")
@pytest.mark.parametrize(
    "of_v, of_s",
    [(wide, as_it_is), (as_it_is, turned), (turned, wide), (cut, cut)],
    ids=["v alone", "s alone", "both", "cut out"],
)
def test_many_states_need_not_be_contiguous(drill, of_v, of_s):
    v, s = states(drill.rng, 2, 5, 3, 12)
    drill.merge_states(of_v(v), of_s(s)).agrees()


@pytest.mark.graded("merge_states", "memory")
@pytest.mark.parametrize("N, D", [(7, 33), (3, 320)])
def test_states_and_columns_that_fill_no_block(drill, N, D):
    drill.merge_states(*states(drill.rng, 1, N, 5, D)).agrees()


@pytest.mark.graded("merge_states", "memory")
@pytest.mark.parametrize("axis", [0, 1], ids=["positions", "states"])
def test_offsets_of_states_need_64_bits(drill, axis):
    """The last position, or the last state, begins more than 2^31 elements after the first."""
    v, s = states(drill.rng, 3, 3, 2, 16, dtype=torch.float16)
    drill.merge_states(far_apart(v, axis=axis), far_apart(s, axis=axis)).agrees()


@pytest.mark.graded("merge_states", "traffic")
@pytest.mark.parametrize("N, D", [(2, 64), (9, 128), (40, 64)])
def test_every_value_of_the_states_moves_once(drill, N, D):
    drill.merge_states(*states(drill.rng, 2, N, 2, D, dtype=torch.float16)).agrees().moves_at_most()


@pytest.mark.graded("merge_states", "compile")
def test_merge_states_compiles_for_gpus(drill):
    drill.compiles()


# variable_length_merge_states


@pytest.mark.graded("variable_length_merge_states", "value")
@pytest.mark.parametrize("dtype", DTYPES, ids=short)
def test_each_position_merges_its_own_run(drill, dtype):
    drill.variable_length_merge_states(*runs(drill.rng, [0, 3, 4, 9], H=2, D=80, dtype=dtype, more=1)).agrees()


@pytest.mark.graded("variable_length_merge_states", "value")
@pytest.mark.parametrize("D", [1, 7, 512])
def test_runs_of_any_head_size(drill, D):
    v, s, indptr = runs(drill.rng, [0, 2, 7], H=3, D=D)
    drill.variable_length_merge_states(v.abs(), s, indptr).agrees()


@pytest.mark.graded("variable_length_merge_states", "value")
def test_a_long_run_between_short_ones(drill):
    """s ends near 0, where float32 is fine: merged one after another, s may be rounded after each."""
    v, s, indptr = runs(drill.rng, [0, 1, 301, 303], H=1, D=2)
    drill.variable_length_merge_states(v.abs(), s - 12, indptr).agrees()


@pytest.mark.graded("variable_length_merge_states", "value")
def test_a_long_run_stays_exact(drill):
    """In bfloat16, where a sum of weights that is kept in the values' type ends at 256 as well."""
    v, s, indptr = values_that_lose(torch.bfloat16), torch.zeros(1100, 1), torch.tensor([0, 1100], dtype=torch.int32)
    drill.variable_length_merge_states(v.expand(1100, 1, 7).contiguous(), s, indptr).agrees()


@pytest.mark.graded("variable_length_merge_states", "value")
def test_half_values_of_a_run_that_nearly_cancel(drill):
    indptr = torch.tensor([0, 192], dtype=torch.int32)
    drill.variable_length_merge_states(*many_halves_that_cancel(drill.rng, 96), indptr).agrees()


@pytest.mark.graded("variable_length_merge_states", "edge")
def test_an_empty_run_is_an_empty_state(drill):
    """At the start, in the middle, twice in a row, and at the end."""
    indptr = [0, 0, 2, 2, 2, 5, 6, 6]
    drill.variable_length_merge_states(*runs(drill.rng, indptr, H=1, D=12)).agrees()


@pytest.mark.graded("variable_length_merge_states", "edge")
@pytest.mark.parametrize("index", [torch.int32, torch.int64], ids=short)
def test_rows_outside_all_runs_belong_to_nobody(drill, index):
    """indptr starts at 2 and stops 3 rows short. The rows outside hold NaN, and an s larger than any other."""
    v, s, indptr = runs(drill.rng, [2, 4, 4, 9], H=2, D=12, index=index, more=3)
    v[:2], v[9:], s[:2], s[9:] = math.nan, math.nan, 50.0, 50.0
    drill.variable_length_merge_states(v, s, indptr).agrees()


@pytest.mark.graded("variable_length_merge_states", "edge")
@pytest.mark.parametrize("indptr", [[0], [0, 0, 0]], ids=["no positions", "no rows"])
def test_no_positions_and_no_rows(drill, indptr):
    drill.variable_length_merge_states(*runs(drill.rng, indptr, H=2, D=7, dtype=torch.float16)).agrees()


@pytest.mark.graded("variable_length_merge_states", "edge")
def test_a_run_may_hold_empty_states(drill):
    """One of 140 of which the last alone counts, far below 0; and a single one."""
    v, s, indptr = runs(drill.rng, [0, 2, 5, 145, 146], H=1, D=12)
    empty_out(v, s, slice(0, 2), slice(3, 4), slice(5, 144), slice(145, 146), payload=not_finite(12))
    s[144] -= 300.0
    drill.variable_length_merge_states(v, s, indptr).agrees()


@pytest.mark.graded("variable_length_merge_states", "edge")
def test_scores_far_from_zero_are_legal_in_runs(drill):
    v, s, indptr = runs(drill.rng, [0, 3, 6, 9], H=2, D=12)
    shift = torch.tensor([-70000.0, 70000.0, -300.0]).repeat_interleave(3)
    s += torch.stack([shift, -shift], -1)
    drill.variable_length_merge_states(v, s, indptr).agrees()


@pytest.mark.graded("variable_length_merge_states", "edge")
@pytest.mark.parametrize("size", FAR, ids=power)
def test_equal_s_of_any_size_in_runs(drill, size):
    v, s, indptr = runs(drill.rng, [0, 3, 4], H=1, D=2)
    drill.variable_length_merge_states(v, torch.full_like(s, size), indptr).agrees()


@pytest.mark.graded("variable_length_merge_states", "edge")
def test_later_rows_far_above(drill):
    indptr = torch.tensor([0, 160], dtype=torch.int32)
    drill.variable_length_merge_states(*rising_by_any_gap(drill.rng), indptr).agrees()


@pytest.mark.graded("variable_length_merge_states", "edge")
def test_rows_of_little_weight_count(drill):
    """40 of weight 2^-24.5, whose v are 64 times as large: 1/10000 of the result. Then 40 of 2^-17."""
    indptr = torch.tensor([0, 81], dtype=torch.int32)
    drill.variable_length_merge_states(*many_of_little_weight(drill.rng), indptr).agrees()


@pytest.mark.graded("variable_length_merge_states", "edge")
def test_seventy_runs(drill):
    """Of no rows, of one, and of two, in turn."""
    lengths = torch.arange(70) % 3
    indptr = [0, *lengths.cumsum(0).tolist()]
    drill.variable_length_merge_states(*runs(drill.rng, indptr, H=1, D=2)).agrees()


@pytest.mark.graded("variable_length_merge_states", "edge")
def test_runs_of_a_hundred_heads(drill):
    """One run, that starts late and stops short."""
    drill.variable_length_merge_states(*runs(drill.rng, [1, 3], H=133, D=2, more=1)).agrees()


@pytest.mark.graded("variable_length_merge_states", "edge")
@pytest.mark.parametrize(
    "of_v, of_s, of_indptr",
    [(turned, wide, wide), (as_it_is, turned, wide), (wide, as_it_is, as_it_is)],
    ids=["all", "s and indptr", "v alone"],
)
def test_runs_need_not_be_contiguous(drill, of_v, of_s, of_indptr):
    """indptr is int64 once: made another dtype it becomes contiguous, left as it is it does not."""
    index = torch.int64 if of_v is as_it_is else torch.int32
    v, s, indptr = runs(drill.rng, [0, 3, 8], H=3, D=12, index=index)
    drill.variable_length_merge_states(of_v(v), of_s(s), of_indptr(indptr)).agrees()


@pytest.mark.graded("variable_length_merge_states", "memory")
@pytest.mark.parametrize("D", [33, 320])
def test_runs_and_columns_that_fill_no_block(drill, D):
    """The last run ends with the last row of v: one row further there is nothing."""
    drill.variable_length_merge_states(*runs(drill.rng, [0, 5, 6], H=3, D=D)).agrees()


@pytest.mark.graded("variable_length_merge_states", "memory")
@pytest.mark.parametrize("axis", [0, 1], ids=["rows", "heads"])
def test_offsets_of_rows_need_64_bits(drill, axis):
    """The last row, or the last head, begins more than 2^31 elements after the first."""
    v, s, indptr = runs(drill.rng, [0, 1, 3], H=3, D=16, dtype=torch.float16)
    drill.variable_length_merge_states(far_apart(v, axis=axis), far_apart(s, axis=axis), indptr).agrees()


@pytest.mark.graded("variable_length_merge_states", "traffic")
def test_every_row_of_a_run_moves_once(drill):
    args = runs(drill.rng, [1, 9, 14], H=2, D=128, dtype=torch.float16, more=1)
    drill.variable_length_merge_states(*args).agrees().moves_at_most()


@pytest.mark.graded("variable_length_merge_states", "compile")
def test_variable_length_merge_states_compiles_for_gpus(drill):
    drill.compiles()
