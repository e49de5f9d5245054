"""Graded tests of lesson 5: attention to a shared prefix, to own pages, and the two merged."""

import math

import pytest
import torch

from drills.lessons.attend_draws import (
    draw_far_levels,
    draw_far_prefix,
    draw_far_sides,
    draw_levels_that_cancel,
    draw_sides_that_cancel,
    values_that_cancel,
)
from drills.lessons.paging import random_levels, random_pages
from drills.lessons.strides import far_apart

DTYPES = [torch.float16, torch.bfloat16, torch.float32]
FAR = [2.0**20, 2.0**127]
"""Far beyond any sentinel; with `both_signs`, as far below. Equal powers of two: no way to scale or shift them rounds.

The s of states that are merged does round, by a relative 2^-24: values of one sign do not cancel, so it stays small.
"""

SEVENTY = (1, 3, 0, 5, 2, *[0] * 57, 1, 0, 2, 0, 3, 0, 1, 5)
"""Keys of seventy requests. Most have none: the interpreter is sooner done with those."""


def short(value):
    """A dtype's name for a test id; None: pytest's own."""
    return str(value).removeprefix("torch.") if isinstance(value, torch.dtype) else None


def power(value):
    """2.0**20 as a test id: "2^20"."""
    return f"2^{math.frexp(value)[1] - 1}"


def both_signs(q):
    """Ones in q's shape; -1 for every second query head."""
    ones = torch.ones_like(q)
    ones[:, 1::2] = -1
    return ones


def wide(x):
    """The same indices, every second one of a tensor twice as long."""
    return x.repeat_interleave(2)[::2]


def every_second_column(x):
    """The same values, every second column of a tensor twice as wide."""
    return x.repeat_interleave(2, -1)[..., ::2]


def turned(x):
    """The same values, with the first two axes swapped in memory."""
    return x.transpose(0, 1).contiguous().transpose(0, 1)


def strided(q):
    """The same values: heads first in memory; every second column."""
    return turned(q), every_second_column(q)


def heads_first(kv_cache):
    """The same pages, every second column of a cache [pages, 2, Hkv, page_size, 2 * D]."""
    return every_second_column(kv_cache.transpose(2, 3)).transpose(2, 3)


def normal(rng, *shape, dtype=torch.float32):
    """Ordinary values of the given shape."""
    return torch.randn(*shape, generator=rng).to(dtype)


def shared_case(rng, B=3, Hq=2, Hkv=1, D=16, P=20, dtype=torch.float32):
    """q[B, Hq, D], k[P, Hkv, D], v[P, Hkv, D]."""
    return normal(rng, B, Hq, D, dtype=dtype), normal(rng, P, Hkv, D, dtype=dtype), normal(rng, P, Hkv, D, dtype=dtype)


def paged_case(rng, lengths=(5, 2), page_size=4, Hq=2, Hkv=1, D=16, dtype=torch.float32, **more):
    """q[B, Hq, D], kv_cache, indptr, indices, last_page_len; pages shuffled, something past each last page's length."""
    pages = random_pages(list(lengths), page_size, Hkv, D, dtype, rng, **({"beyond": 3.0} | more))
    return normal(rng, len(lengths), Hq, D, dtype=dtype), *pages


def cascade_case(rng, P=20, Hkv=1, D=16, dtype=torch.float32, **more):
    """q, k_shared, v_shared and the four tensors of a page table."""
    q, *pages = paged_case(rng, Hkv=Hkv, D=D, dtype=dtype, **more)
    return q, normal(rng, P, Hkv, D, dtype=dtype), normal(rng, P, Hkv, D, dtype=dtype), *pages


def level_case(rng, bounds, lengths, B=4, Hq=2, Hkv=1, D=16, page_size=4, dtype=torch.float32):
    """q, kv_cache and levels: level i has groups that end at bounds[i], with lengths[i] keys each."""
    return normal(rng, B, Hq, D, dtype=dtype), *random_levels(bounds, lengths, page_size, Hkv, D, dtype, rng)


def random_bounds(rng, B):
    """A grouping of B requests, empty groups and requests in no group included."""
    return torch.randint(0, B + 1, (4,), generator=rng).sort().values.tolist()


def little_weight(rng, B):
    """q[B, 2, 4], k[20, 1, 4], v alike, for scale 1: 10 keys of weight exp(-15.3) have values 64 times as large.

    They are 1/7000 of the result; 9 more have a weight of exp(-12).
    """
    q, k, v = torch.ones(B, 2, 4), torch.zeros(20, 1, 4), 1.0 + torch.rand(20, 1, 4, generator=rng)
    k[1:11, :, 0], k[11:, :, 0] = -15.3, -12.0
    v[1:11] *= 64.0
    return q, k, v


def rising(rng, D=80):
    """q[10, 2, D], k[140, 1, D], v alike, float16, for scale 1: row r of q scores 0.1 * 1.2^r more with every key.

    So the max rises by any gap from one block to the next, whatever its size, and in the end by more than 2^128.
    """
    q, k, v = torch.zeros(10, 2, D), torch.zeros(140, 1, D), 1.0 + torch.rand(140, 1, D, generator=rng)
    q[..., 0], k[:, 0, 0] = 0.1 * 1.2 ** torch.arange(20.0).view(10, 2), torch.arange(140.0)
    return q.half(), k.half(), v.half()


def many_that_cancel(rng):
    """q[1, 1, 16], k[1040, 1, 16], v alike, float16: equal keys, and the second half of the values cancels the first.

    The mean of a part that lies in the first half lies between two halves; that of all is 1/100 to 1/30.
    """
    first, second = values_that_cancel(rng).split(2)
    v = torch.cat([first.repeat(260, 1), second.repeat(260, 1)])[:, None]
    return torch.zeros(1, 1, 16).half(), torch.zeros_like(v), v


def as_pages(k, v, page_size):
    """k, v[n, Hkv, D] as kv_cache and the pages' numbers, last pages first."""
    pages = torch.stack([x.unflatten(0, (-1, page_size)).flip(0) for x in (k, v)], 1)
    return pages, torch.arange(len(pages), dtype=torch.int32).flip(0)


def with_a_last_page_first(kv_cache, indptr, indices, last):
    """The same, with request 0's last page moved to the front of the cache."""
    page, order = int(indices[int(indptr[1]) - 1]), torch.arange(len(kv_cache))
    order[0], order[page] = page, 0
    return kv_cache[order], indptr, order[indices.long()].to(indices), last


def as_table(indices, page_size, *ends):
    """indptr, indices and last_page_len of runs that end at these entries, their last pages full."""
    indptr = torch.tensor([0, *ends], dtype=torch.int32)
    return indptr, indices, torch.full((len(ends),), page_size, dtype=torch.int32)


def as_levels(indices, page_size, *ends, requests=1):
    """One level a run of pages, each for the first requests."""
    indptr, _, last = as_table(indices, page_size, *ends)
    group = torch.tensor([0, requests], dtype=torch.int32)
    return [(group, indptr[i : i + 2], indices, last[i : i + 1]) for i in range(len(ends))]


def beyond_float16(q, *keys):
    """In bfloat16: keys and values times 2^20, which float16 has no room for, and q over 2^20."""
    return (q * 2.0**-20).bfloat16(), *((x * 2.0**20).bfloat16() for x in keys)


def keeps_float32(v, dtype):
    """Fails if v is what its own rounding to half precision leaves."""
    rounded = dtype != torch.float32 and torch.equal(v, v.to(dtype).float())
    assert not rounded, f"v was rounded to {short(dtype)} before it was stored: partial results keep float32"


def values_that_lose(keys):
    """v[keys, 1, 7] float16. Summed in half precision with equal weights, some column is rounded down in every step."""
    column = 1 + 2.0 ** -torch.arange(2.0, 9.0).half() - torch.finfo(torch.float16).eps
    return column.expand(keys, 1, 7).contiguous()


# attend_shared


@pytest.mark.graded("attend_shared", "value")
@pytest.mark.parametrize("dtype", DTYPES, ids=short)
def test_every_request_attends_to_the_one_prefix(drill, dtype):
    v, _ = drill.attend_shared(*shared_case(drill.rng, D=80, P=70, dtype=dtype)).agrees()
    keeps_float32(v, dtype)


@pytest.mark.graded("attend_shared", "value")
@pytest.mark.parametrize("group, kv_heads", [(1, 3), (7, 2)])
def test_query_heads_share_kv_head_h_over_g(drill, group, kv_heads):
    drill.attend_shared(*shared_case(drill.rng, B=2, Hq=group * kv_heads, Hkv=kv_heads)).agrees()


@pytest.mark.graded("attend_shared", "value")
@pytest.mark.parametrize("scale", [0.7, -0.7, 0.0])
def test_a_scale_given_replaces_the_default(drill, scale):
    drill.attend_shared(*shared_case(drill.rng), scale).agrees()


@pytest.mark.graded("attend_shared", "value")
def test_a_long_prefix_stays_exact(drill):
    q, k, _ = shared_case(drill.rng, B=1, D=7, P=1000, dtype=torch.float16)
    drill.attend_shared(torch.zeros_like(q), k, values_that_lose(1000)).agrees()


@pytest.mark.graded("attend_shared", "edge")
@pytest.mark.parametrize("keys, D", [(1, 16), (16, 192), (64, 16), (1030, 16)])
def test_prefix_of_any_length(drill, keys, D):
    drill.attend_shared(*shared_case(drill.rng, B=1, P=keys, D=D)).agrees()


@pytest.mark.graded("attend_shared", "edge")
def test_a_head_of_320_columns(drill):
    """In half precision: a block of float32 may not fit in shared memory."""
    drill.attend_shared(*shared_case(drill.rng, D=192)).agrees()


@pytest.mark.graded("attend_shared", "edge")
def test_keys_of_little_weight_count(drill):
    drill.attend_shared(*little_weight(drill.rng, B=2), 1.0).agrees()


@pytest.mark.graded("attend_shared", "edge")
def test_parts_of_the_prefix_that_nearly_cancel(drill):
    """A kernel that cuts the prefix into parts keeps their states in float32 until they are merged."""
    drill.attend_shared(*many_that_cancel(drill.rng)).agrees()


@pytest.mark.graded("attend_shared", "edge")
def test_bfloat16_beyond_the_range_of_float16(drill):
    drill.attend_shared(*beyond_float16(*shared_case(drill.rng, D=80, P=70))).agrees()


@pytest.mark.graded("attend_shared", "edge")
def test_no_prefix_is_an_empty_state(drill):
    """In half precision: the state is float32 all the same."""
    q, k, v = shared_case(drill.rng, P=0, dtype=torch.float16)
    answer = drill.attend_shared(q, k, v).agrees()
    answer.is_exactly(v=torch.zeros(q.shape), s=torch.full(q.shape[:2], -math.inf))


@pytest.mark.graded("attend_shared", "edge")
def test_no_request_gives_no_rows(drill):
    drill.attend_shared(*shared_case(drill.rng, B=0, dtype=torch.float16)).agrees()


@pytest.mark.graded("attend_shared", "edge")
def test_a_head_of_one_column(drill):
    """Values of one sign: in a single column, values that cancel leave nothing to measure an error against."""
    q, k, v = shared_case(drill.rng, B=2, D=1)
    drill.attend_shared(q, k, v.abs()).agrees()


@pytest.mark.graded("attend_shared", "edge")
def test_scores_far_from_zero(drill):
    """About 170000 for one query head, -170000 for the other."""
    drill.attend_shared(*draw_far_prefix(drill.rng)).agrees()


@pytest.mark.graded("attend_shared", "edge")
def test_scores_that_rise_along_the_prefix(drill):
    drill.attend_shared(*rising(drill.rng), 1.0).agrees()


@pytest.mark.graded("attend_shared", "edge")
@pytest.mark.parametrize("score", FAR, ids=power)
def test_equal_scores_of_any_size(drill, score):
    q, k, v = shared_case(drill.rng, B=2, D=1, P=5)
    drill.attend_shared(both_signs(q), torch.full_like(k, score), v.abs(), 1.0).agrees()


@pytest.mark.graded("attend_shared", "edge")
@pytest.mark.parametrize("B, heads, kv_heads", [(100, 3, 1), (1, 33, 33)])
def test_a_hundred_requests_or_dozens_of_heads(drill, B, heads, kv_heads):
    drill.attend_shared(*shared_case(drill.rng, B=B, Hq=heads, Hkv=kv_heads, D=2, P=5)).agrees()


@pytest.mark.graded("attend_shared", "memory")
def test_inputs_of_other_strides(drill):
    q, k, v = shared_case(drill.rng, Hq=4, Hkv=2)
    k = every_second_column(k.transpose(0, 1)).transpose(0, 1)
    for x in strided(q):
        drill.attend_shared(x, k, every_second_column(v)).agrees()


@pytest.mark.graded("attend_shared", "memory")
@pytest.mark.parametrize(
    "axes", [(0, None, None), (None, 0, None), (None, None, 0), (1, 1, 1)], ids=["q", "k", "v", "heads"]
)
def test_offsets_of_keys_need_64_bits(drill, axes):
    """Of q, k and v: the last one along this axis begins more than 2^31 elements after the first."""
    case = zip(shared_case(drill.rng, P=3, Hq=3, Hkv=3, dtype=torch.float16), axes, strict=True)
    drill.attend_shared(*(x if axis is None else far_apart(x, axis=axis) for x, axis in case)).agrees()


@pytest.mark.graded("attend_shared", "traffic")
@pytest.mark.parametrize("group, kv_heads", [(4, 1), (1, 2)])
def test_sixteen_requests_read_the_prefix_once(drill, group, kv_heads):
    case = shared_case(drill.rng, B=16, Hq=group * kv_heads, Hkv=kv_heads, D=64, P=192, dtype=torch.float16)
    drill.attend_shared(*case).moves_at_most()


@pytest.mark.graded("attend_shared", "compile")
def test_attend_shared_compiles(drill):
    drill.compiles()


# attend_paged


@pytest.mark.graded("attend_paged", "value")
@pytest.mark.parametrize("dtype", DTYPES, ids=short)
def test_each_request_attends_to_its_own_shuffled_pages(drill, dtype):
    v, _ = drill.attend_paged(*paged_case(drill.rng, D=80, lengths=(5, 70), dtype=dtype)).agrees()
    keeps_float32(v, dtype)


@pytest.mark.graded("attend_paged", "value")
@pytest.mark.parametrize("group, kv_heads", [(1, 3), (7, 2)])
def test_query_heads_find_their_kv_head_in_the_pages(drill, group, kv_heads):
    drill.attend_paged(*paged_case(drill.rng, (6,), Hq=group * kv_heads, Hkv=kv_heads)).agrees()


@pytest.mark.graded("attend_paged", "value")
@pytest.mark.parametrize("page_size, lengths", [(1, (130,)), (3, (38,)), (260, (610, 5))])
def test_pages_of_any_size(drill, page_size, lengths):
    """610 keys may be cut into parts; of 5 keys the later parts then have none."""
    drill.attend_paged(*paged_case(drill.rng, lengths, page_size)).agrees()


@pytest.mark.graded("attend_paged", "value")
def test_a_scale_given_for_pages_replaces_the_default(drill):
    drill.attend_paged(*paged_case(drill.rng), -0.7).agrees()


@pytest.mark.graded("attend_paged", "value")
def test_a_long_run_of_pages_stays_exact(drill):
    q, kv_cache, *table = paged_case(drill.rng, (1000,), 16, D=7, dtype=torch.float16)
    kv_cache[:, 1] = values_that_lose(1)
    drill.attend_paged(torch.zeros_like(q), kv_cache, *table).agrees()


@pytest.mark.graded("attend_paged", "edge")
def test_last_pages_of_every_length(drill):
    """NaN past them, also in page 0, where a table's entry that is masked would lead."""
    q, *pages = paged_case(drill.rng, (5, 6, 7, 8), beyond=math.nan)
    drill.attend_paged(q, *with_a_last_page_first(*pages)).agrees()


@pytest.mark.graded("attend_paged", "edge")
def test_keys_of_little_weight_count_in_pages(drill):
    """In one page of 20 slots."""
    q, k, v = little_weight(drill.rng, B=1)
    table = (torch.tensor(x, dtype=torch.int32) for x in ([0, 1], [0], [20]))
    drill.attend_paged(q, torch.stack([k, v])[None], *table, 1.0).agrees()


@pytest.mark.graded("attend_paged", "edge")
def test_scores_that_rise_from_page_to_page(drill):
    q, k, v = rising(drill.rng)
    kv_cache, indices = as_pages(k, v, 7)
    drill.attend_paged(q, kv_cache, *as_table(indices.repeat(10), 7, *range(20, 201, 20)), 1.0).agrees()


@pytest.mark.graded("attend_paged", "edge")
def test_pages_that_nearly_cancel(drill):
    """A kernel that cuts a request's keys into parts keeps their states in float32 until they are merged."""
    q, k, v = many_that_cancel(drill.rng)
    kv_cache, indices = as_pages(k, v, 16)
    drill.attend_paged(q, kv_cache, *as_table(indices, 16, 65)).agrees()


@pytest.mark.graded("attend_paged", "edge")
def test_pages_of_bfloat16_beyond_the_range_of_float16(drill):
    q, kv_cache, *table = paged_case(drill.rng, D=80, lengths=(5, 70))
    drill.attend_paged(*beyond_float16(q, kv_cache), *table).agrees()


@pytest.mark.graded("attend_paged", "edge")
def test_requests_without_pages_are_empty_states(drill):
    """Its neighbor has 320 columns: more than a tile of 256."""
    q, *pages = paged_case(drill.rng, (0, 9), D=192)
    v, s = drill.attend_paged(q, *pages).agrees()
    assert (v[0] == 0).all() and (s[0] == -math.inf).all()


@pytest.mark.graded("attend_paged", "edge")
def test_a_table_that_starts_late_and_stops_short(drill):
    drill.attend_paged(*paged_case(drill.rng, before=3, index=torch.int64)).agrees()


@pytest.mark.graded("attend_paged", "edge")
def test_two_requests_may_own_the_same_pages(drill):
    q, kv_cache, indptr, indices, last = paged_case(drill.rng, (9, 9))
    indices[indptr[1] : indptr[2]] = indices[indptr[0] : indptr[1]]
    drill.attend_paged(q, kv_cache, indptr, indices, last).agrees()


@pytest.mark.graded("attend_paged", "edge")
def test_no_request_and_no_page(drill):
    drill.attend_paged(*paged_case(drill.rng, (), dtype=torch.float16)).agrees()


@pytest.mark.graded("attend_paged", "edge")
@pytest.mark.parametrize("score", FAR, ids=power)
def test_equal_scores_of_any_size_in_pages(drill, score):
    q, kv_cache, *table = paged_case(drill.rng, D=1)
    kv_cache[:, 0], kv_cache[:, 1] = score, kv_cache[:, 1].abs()
    drill.attend_paged(both_signs(q), kv_cache, *table, 1.0).agrees()


@pytest.mark.graded("attend_paged", "edge")
def test_seventy_requests_with_own_pages(drill):
    drill.attend_paged(*paged_case(drill.rng, SEVENTY, Hq=3, D=2)).agrees()


@pytest.mark.graded("attend_paged", "edge")
@pytest.mark.parametrize("heads, kv_heads", [(70, 1), (33, 33)])
def test_dozens_of_heads(drill, heads, kv_heads):
    """70 query heads share one KV head, or 33 have one each."""
    drill.attend_paged(*paged_case(drill.rng, (5,), Hq=heads, Hkv=kv_heads, D=2)).agrees()


@pytest.mark.graded("attend_paged", "edge")
def test_pages_with_a_scale_of_zero_and_a_table_of_other_strides(drill):
    q, kv_cache, *table = paged_case(drill.rng, (5, 9, 2))
    drill.attend_paged(q, kv_cache, *map(wide, table), 0.0).agrees()


@pytest.mark.graded("attend_paged", "memory")
def test_a_cache_laid_out_heads_first(drill):
    """With every second column of it, and of q, or q heads first too."""
    q, kv_cache, *table = paged_case(drill.rng, Hq=4, Hkv=2, D=5)
    for x in strided(q):
        drill.attend_paged(x, heads_first(kv_cache), *table).agrees()


@pytest.mark.graded("attend_paged", "memory")
@pytest.mark.parametrize("of_q, of_cache", [(0, 0), (1, 3), (0, 2)], ids=["pages", "heads", "slots"])
def test_offsets_of_pages_need_64_bits(drill, of_q, of_cache):
    """Pages, KV heads or slots, each more than 2^30 elements after the one before; so are q's requests, or heads."""
    q, kv_cache, *table = paged_case(drill.rng, (9, 0, 3), Hq=3, Hkv=3, spare=0, dtype=torch.float16)
    drill.attend_paged(far_apart(q, axis=of_q), far_apart(kv_cache, axis=of_cache), *table).agrees()


@pytest.mark.graded("attend_paged", "compile")
def test_attend_paged_compiles(drill):
    drill.compiles()


# cascade


@pytest.mark.graded("cascade", "value")
@pytest.mark.parametrize("dtype", DTYPES, ids=short)
def test_prefix_and_own_pages_are_one_softmax(drill, dtype):
    drill.cascade(*cascade_case(drill.rng, D=80, P=37, dtype=dtype)).agrees()


@pytest.mark.graded("cascade", "value")
def test_a_long_prefix_outweighs_a_short_suffix(drill):
    drill.cascade(*cascade_case(drill.rng, P=1030, lengths=(1,)), -0.3).agrees()


@pytest.mark.graded("cascade", "value")
def test_both_sides_send_a_query_head_to_one_kv_head(drill):
    """34 query heads of two KV heads: more than a block of 16 rows each."""
    drill.cascade(*cascade_case(drill.rng, lengths=(5, 2), Hq=34, Hkv=2)).agrees()


@pytest.mark.graded("cascade", "edge")
def test_requests_with_no_suffix_keep_the_prefix(drill):
    drill.cascade(*cascade_case(drill.rng, lengths=(0, 6))).agrees()


@pytest.mark.graded("cascade", "edge")
def test_nan_in_slots_that_hold_no_key(drill):
    """And 192 columns: more than a tile of 128."""
    case = cascade_case(drill.rng, lengths=(5, 2), D=192, beyond=math.nan)
    drill.cascade(*case[:3], *with_a_last_page_first(*case[3:])).agrees()


@pytest.mark.graded("cascade", "edge")
def test_own_keys_of_little_weight_count(drill):
    """The whole own side weighs exp(-13)."""
    q, k, v = little_weight(drill.rng, B=1)
    kv_cache, indices = as_pages(k[1:11], v[1:11], 5)
    k, v = (torch.cat([x[:1], x[11:]]) for x in (k, v))
    drill.cascade(q, k, v, kv_cache, *as_table(indices, 5, 2), 1.0).agrees()


@pytest.mark.graded("cascade", "edge")
def test_scores_that_rise_along_both_sides(drill):
    q, k, v = rising(drill.rng)
    kv_cache, indices = as_pages(k[70:], v[70:], 7)
    drill.cascade(q, k[:70], v[:70], kv_cache, *as_table(indices.repeat(10), 7, *range(10, 101, 10)), 1.0).agrees()


@pytest.mark.graded("cascade", "edge")
def test_a_cascade_in_bfloat16_beyond_the_range_of_float16(drill):
    q, k, v, kv_cache, *table = cascade_case(drill.rng, D=80, P=37)
    drill.cascade(*beyond_float16(q, k, v, kv_cache), *table).agrees()


@pytest.mark.graded("cascade", "edge")
@pytest.mark.parametrize(
    "P, lengths",
    [(0, (5, 0)), (0, (0, 0)), (6, (0, 0)), (6, ())],
    ids=["own pages only", "nothing at all", "prefix only", "no request"],
)
def test_one_side_alone_or_none(drill, P, lengths):
    """In half precision: what one side alone yields is not yet in q's dtype."""
    drill.cascade(*cascade_case(drill.rng, P=P, lengths=lengths, dtype=torch.float16)).agrees()


@pytest.mark.graded("cascade", "edge")
def test_one_side_far_above_the_other(drill):
    """The own side for one query head, the shared one for the other."""
    drill.cascade(*draw_far_sides(drill.rng)).agrees()


@pytest.mark.graded("cascade", "edge")
@pytest.mark.parametrize("score", FAR, ids=power)
def test_equal_scores_of_any_size_on_both_sides(drill, score):
    q, k, v, kv_cache, *table = cascade_case(drill.rng, P=5, D=1)
    kv_cache[:, 0], kv_cache[:, 1] = score, kv_cache[:, 1].abs()
    drill.cascade(both_signs(q), torch.full_like(k, score), v.abs(), kv_cache, *table, 1.0).agrees()


@pytest.mark.graded("cascade", "edge")
def test_two_sides_in_half_precision_that_nearly_cancel(drill):
    """What is left is 1/100 to 1/30: half a step of the halves around a side's v is 1/2000."""
    drill.cascade(*draw_sides_that_cancel(drill.rng)).agrees()


@pytest.mark.graded("cascade", "edge")
def test_seventy_requests_of_a_cascade(drill):
    drill.cascade(*cascade_case(drill.rng, P=3, D=2, lengths=SEVENTY)).agrees()


@pytest.mark.graded("cascade", "edge")
def test_a_scale_of_zero_and_a_table_of_other_strides(drill):
    """One request's last page is full."""
    q, k, v, kv_cache, *table = cascade_case(drill.rng, lengths=(5, 8, 2))
    drill.cascade(q, k, v, kv_cache, *map(wide, table), 0.0).agrees()


@pytest.mark.graded("cascade", "memory")
def test_prefix_and_pages_taken_from_one_cache(drill):
    """The cache is laid out heads first, and the prefix is a view of a page."""
    q, _, _, kv_cache, indptr, *more = cascade_case(drill.rng, lengths=(150, 5), index=torch.int64, before=1, Hkv=2)
    kv_cache = heads_first(kv_cache)
    for x in strided(q):
        drill.cascade(x, *kv_cache[int(more[0][indptr[0]])], kv_cache, indptr, *more).agrees()


@pytest.mark.graded("cascade", "memory")
@pytest.mark.parametrize("axes", [(0, 0, None, 0), (1, 1, 1, 3)], ids=["keys", "heads"])
def test_offsets_of_both_sides_need_64_bits(drill, axes):
    """Of q, the prefix and the cache: the last one along this axis begins more than 2^31 elements after the first."""
    *case, indptr, indices, last = cascade_case(
        drill.rng, P=3, lengths=(3, 0, 6), Hq=3, Hkv=3, spare=0, dtype=torch.float16
    )
    far = (x if axis is None else far_apart(x, axis=axis) for x, axis in zip(case, axes, strict=True))
    drill.cascade(*far, indptr, indices, last).agrees()


@pytest.mark.graded("cascade", "traffic")
def test_sixteen_requests_share_one_read_of_the_prefix(drill):
    case = cascade_case(drill.rng, P=192, lengths=(3, 2, *[0] * 14), Hq=4, D=64, dtype=torch.float16)
    drill.cascade(*case).moves_at_most()


@pytest.mark.graded("cascade", "compile")
def test_cascade_compiles(drill):
    drill.compiles()


# multi_level_cascade


@pytest.mark.graded("multi_level_cascade", "value")
@pytest.mark.parametrize("dtype", DTYPES, ids=short)
def test_three_levels_are_one_softmax(drill, dtype):
    case = level_case(drill.rng, [[0, 3], [0, 1, 3], [0, 1, 2, 3]], [[21], [6, 9], [1, 5, 0]], B=3, dtype=dtype)
    drill.multi_level_cascade(*case).agrees()


@pytest.mark.graded("multi_level_cascade", "value")
@pytest.mark.parametrize("round", range(2))
def test_any_grouping_equals_flat_attention(drill, round):
    """One level in half precision, which nothing is merged with; then two."""
    B = 3 + round
    bounds = [random_bounds(drill.rng, B) for _ in range(1 + round)]
    lengths = [torch.randint(0, 12, (3,), generator=drill.rng).tolist() for _ in bounds]
    dtype = (torch.float16, torch.float32)[round]
    drill.multi_level_cascade(*level_case(drill.rng, bounds, lengths, B=B, dtype=dtype)).agrees()


@pytest.mark.graded("multi_level_cascade", "value")
def test_every_level_sends_a_query_head_to_one_kv_head(drill):
    """With 192 columns: more than a tile of 128."""
    case = level_case(drill.rng, [[0, 2], [0, 1, 2]], [[5], [3, 2]], B=2, Hq=6, Hkv=2, D=192)
    drill.multi_level_cascade(*case).agrees()


@pytest.mark.graded("multi_level_cascade", "value")
def test_five_levels(drill):
    """1030 keys of the first may be cut into parts; the others have fewer than any part."""
    bounds = [[0, 2], [0, 1, 2], [0, 2], [1, 2], [0, 1]]
    case = level_case(drill.rng, bounds, [[1030], [3, 2], [1], [2], [4]], B=2, page_size=16)
    drill.multi_level_cascade(*case).agrees()


@pytest.mark.graded("multi_level_cascade", "value")
def test_nine_levels(drill):
    case = level_case(drill.rng, [[0, 1]] * 9, [[1 + i % 3] for i in range(9)], B=1, D=2)
    drill.multi_level_cascade(*case).agrees()


@pytest.mark.graded("multi_level_cascade", "value")
def test_a_scale_given_reaches_every_level(drill):
    drill.multi_level_cascade(*level_case(drill.rng, [[0, 4], [0, 1, 4]], [[7], [3, 9]]), -0.7).agrees()


@pytest.mark.graded("multi_level_cascade", "value")
def test_the_order_of_levels_does_not_matter(drill):
    """The widest level, first elsewhere, comes last."""
    drill.multi_level_cascade(*level_case(drill.rng, [[0, 2, 4], [0, 4]], [[3, 9], [7]])).agrees()


@pytest.mark.graded("multi_level_cascade", "edge")
def test_requests_in_no_group_are_empty_there(drill):
    drill.multi_level_cascade(*level_case(drill.rng, [[1, 3], [0, 2, 2]], [[6], [5, 4]])).agrees()


@pytest.mark.graded("multi_level_cascade", "edge")
def test_no_level_is_an_empty_state(drill):
    q, kv_cache, _ = level_case(drill.rng, [[0, 4]], [[6]], dtype=torch.float16)
    answer = drill.multi_level_cascade(q, kv_cache, [])
    answer.is_exactly(v=torch.zeros(q.shape), s=torch.full(q.shape[:2], -math.inf))


@pytest.mark.graded("multi_level_cascade", "edge")
def test_levels_of_no_request(drill):
    drill.multi_level_cascade(*level_case(drill.rng, [[0, 0], [0]], [[5], []], B=0, dtype=torch.float16)).agrees()


@pytest.mark.graded("multi_level_cascade", "edge")
def test_a_level_with_no_group(drill):
    drill.multi_level_cascade(*level_case(drill.rng, [[0], [0, 4]], [[], [6]], dtype=torch.float16)).agrees()


@pytest.mark.graded("multi_level_cascade", "edge")
@pytest.mark.parametrize("score", FAR, ids=power)
def test_equal_scores_of_any_size_at_every_level(drill, score):
    q, kv_cache, levels = level_case(drill.rng, [[0, 4], [0, 2, 4]], [[5], [3, 2]], D=1)
    kv_cache[:, 0], kv_cache[:, 1] = score, kv_cache[:, 1].abs()
    drill.multi_level_cascade(both_signs(q), kv_cache, levels, 1.0).agrees()


@pytest.mark.graded("multi_level_cascade", "edge")
def test_one_level_far_above_the_other(drill):
    """The second one for one query head, the first for the other."""
    drill.multi_level_cascade(*draw_far_levels(drill.rng)).agrees()


@pytest.mark.graded("multi_level_cascade", "edge")
def test_a_level_of_little_weight_counts(drill):
    """All of the second level weighs exp(-13)."""
    q, k, v = little_weight(drill.rng, B=1)
    order = [0, *range(11, 20), *range(1, 11)]
    kv_cache, indices = as_pages(k[order], v[order], 5)
    drill.multi_level_cascade(q, kv_cache, as_levels(indices, 5, 2, 4), 1.0).agrees()


@pytest.mark.graded("multi_level_cascade", "edge")
def test_scores_that_rise_from_level_to_level(drill):
    q, k, v = rising(drill.rng, D=16)
    kv_cache, indices = as_pages(k, v, 7)
    drill.multi_level_cascade(q, kv_cache, as_levels(indices, 7, 10, 20, requests=10), 1.0).agrees()


@pytest.mark.graded("multi_level_cascade", "edge")
def test_levels_in_bfloat16_beyond_the_range_of_float16(drill):
    bounds, lengths = [[0, 3], [0, 1, 3], [0, 1, 2, 3]], [[21], [6, 9], [1, 5, 0]]
    q, kv_cache, levels = level_case(drill.rng, bounds, lengths, B=3)
    drill.multi_level_cascade(*beyond_float16(q, kv_cache), levels).agrees()


@pytest.mark.graded("multi_level_cascade", "edge")
def test_two_levels_in_half_precision_that_nearly_cancel(drill):
    drill.multi_level_cascade(*draw_levels_that_cancel(drill.rng)).agrees()


@pytest.mark.graded("multi_level_cascade", "edge")
def test_seventy_requests_in_two_groups_and_in_many(drill):
    """The second group's rows are more than any block's, and begin amid one. Of the many, every second is empty."""
    pairs = [i // 2 * 2 for i in range(1, 72)]
    bounds, lengths = [[0, 3, 70], pairs], [[5, 18], [n for n in (1, 0, 0, 5, 0, 2, 0) * 5 for n in (n, 0)]]
    case = level_case(drill.rng, bounds, lengths, B=70, D=2)
    drill.multi_level_cascade(*case).agrees()


@pytest.mark.graded("multi_level_cascade", "edge")
def test_three_hundred_groups_of_two_requests(drill):
    """All but two are empty: the first hundreds, and those between the two."""
    bounds, lengths = [0] * 140 + [1] * 140 + [2] * 21, [0] * 300
    lengths[139], lengths[279] = 5, 3
    drill.multi_level_cascade(*level_case(drill.rng, [bounds], [lengths], B=2, D=2)).agrees()


@pytest.mark.graded("multi_level_cascade", "edge")
def test_levels_with_a_scale_of_zero_and_tables_of_other_strides(drill):
    """And of 64-bit indices."""
    q, kv_cache, levels = level_case(drill.rng, [[0, 4], [0, 1, 4]], [[7], [3, 9]])
    levels = [tuple(wide(table.long()) for table in level) for level in levels]
    drill.multi_level_cascade(q, kv_cache, levels, 0.0).agrees()


@pytest.mark.graded("multi_level_cascade", "memory")
def test_group_of_seven_query_heads_and_head_size_five(drill):
    """In a cache laid out heads first, as q is, with two KV heads; then with every second column of q."""
    bounds, lengths = [[0, 1, 3], [1, 2, 3]], [[9, 4], [3, 3]]
    q, kv_cache, levels = level_case(drill.rng, bounds, lengths, B=3, Hq=14, Hkv=2, D=5, page_size=3)
    for x in strided(q):
        drill.multi_level_cascade(x, heads_first(kv_cache), levels).agrees()


@pytest.mark.graded("multi_level_cascade", "memory")
@pytest.mark.parametrize("of_q, of_cache", [(1, 0), (0, 3), (0, 2)], ids=["pages", "heads", "slots"])
def test_offsets_of_pages_need_64_bits_at_every_level(drill, of_q, of_cache):
    case = level_case(drill.rng, [[0, 3], [0, 1, 3]], [[9], [3, 2]], B=3, Hq=3, Hkv=3, dtype=torch.float16)
    q, kv_cache, levels = case
    drill.multi_level_cascade(far_apart(q, axis=of_q), far_apart(kv_cache, axis=of_cache), levels).agrees()


@pytest.mark.graded("multi_level_cascade", "compile")
def test_multi_level_cascade_compiles(drill):
    drill.compiles()
