"""Guard zones: inputs keep their strides in larger buffers, and what is written around or into them is told."""

import itertools

import numpy
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from drills.instruments import place
from drills.instruments.marks import Marks, distinct
from drills.instruments.views import View, overlap


def beyond(tensor, offset):
    """The element `offset` elements from the first of `tensor`, wherever that is."""
    return torch.as_strided(tensor, (1,), (1,), tensor.storage_offset() + offset)


@pytest.fixture
def placed():
    v = torch.arange(32, dtype=torch.float16).view(4, 8)[:, :5]
    s = torch.randn(3, 4).t()
    mask = torch.tensor(True).expand(4)
    levels = [(torch.tensor([0, 2, 4]), torch.tensor([1, 0]))]
    return place((v, s, mask, 0.5, levels, None), "cpu", ["v", "s", "mask", "scale", "levels", "out"])


def test_values_and_strides_are_kept(placed):
    v, s, mask, scale, levels, out = placed.args
    assert v.tolist() == [[8.0 * i + j for j in range(5)] for i in range(4)] and v.stride() == (8, 1)
    assert s.stride() == (1, 4) and mask.stride() == (0,) and mask.tolist() == [True] * 4
    assert (scale, out) == (0.5, None) and levels[0][1].tolist() == [1, 0]
    assert v.data_ptr() % 256 == 0 and placed.findings() == []


def test_views_of_one_storage_share_it_again():
    cache = torch.randn(3, 2, 4)
    args = place((cache[:, 0], cache[:, 1])).args
    assert args[1].data_ptr() - args[0].data_ptr() == 16 and args[0].stride() == (8, 1)


def test_a_misaligned_view_stays_misaligned():
    (x,) = place((torch.zeros(8)[1:],)).args
    assert x.data_ptr() % 16 == 4


@pytest.mark.parametrize(("offset", "where"), [(-1, "before the start"), (29, "past the end"), (6, "between the rows")])
def test_a_touched_guard_is_told(placed, offset, where):
    beyond(placed.args[0], offset).fill_(1)
    (finding,) = placed.findings([0])
    assert finding.kind == "guard_touched" and where in finding.got and "v[4, 5]" in finding.got


def test_a_changed_input_is_told_unless_it_may_change(placed):
    placed.args[0][2, 3] = -1
    placed.args[4][0][0][1] = 9
    changed, nested = placed.findings()
    assert changed.got == "v was changed in 1 of 20 elements, the first at [2, 3]"
    assert nested.got == "levels[0][0] was changed in 1 of 3 elements, the first at [1]"
    assert placed.findings([0, 4]) == []


def test_nan_in_an_input_is_no_change():
    assert place((torch.full((3,), float("nan")),)).findings() == []


@pytest.mark.parametrize("change", [list.clear, list.reverse, lambda items: items.append(items[0])])
def test_a_list_that_was_changed(change):
    placed = place(([(torch.zeros(1),), (torch.ones(1),)],), names=["levels"])
    assert placed.findings() == []
    change(placed.args[0])
    assert [finding.kind for finding in placed.findings()] == ["input_changed"]
    assert placed.findings([0]) == []


def test_huge_strides_over_untouched_memory_cost_nothing():
    x = torch.empty_strided((2, 3), (2**31, 1), dtype=torch.float16)
    x.fill_(1)
    placed = place((x,))
    assert placed.args[0].stride() == (2**31, 1) and placed.findings() == []
    placed.args[0][1, 2] = 5
    assert [finding.kind for finding in placed.findings()] == ["input_changed"]


def test_windows_that_overlap_are_kept():
    x = torch.arange(6.0).as_strided((3, 3), (1, 1))
    placed = place((x,))
    assert torch.equal(placed.args[0], x) and placed.findings() == []


def test_the_same_tensor_twice_is_one_tensor():
    x = torch.zeros(3)
    first, second = place((x, x)).args
    assert first is second


def test_a_view_knows_its_elements():
    view = View(1000, 2, (4, 5), (8, 1))
    assert not view.dense and view.covers(_at(view, range(-1, 31)), 2).tolist() == [
        0 <= i < 29 and i % 8 < 5 for i in range(-1, 31)
    ]
    assert View(0, 4, (3, 4), (1, 3)).dense and not View(0, 4, (3, 4), (1, 3)).contiguous
    assert View(0, 4, (3, 0), (0, 1)).high == 0
    window = View(0, 4, (2, 3), (4, 2))
    assert window.covers(_at(window, range(9)), 4).tolist() == [i in (0, 2, 4, 6, 8) for i in range(9)]


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(st.integers(1, 4), st.integers(0, 9)), min_size=1, max_size=3))
def test_a_view_covers_exactly_its_own_elements(dims):
    sizes, strides = zip(*dims, strict=True)
    own = {sum(i * s for i, s in zip(index, strides, strict=True)) for index in itertools.product(*map(range, sizes))}
    view = View(4096, 2, sizes, strides)
    offsets = range(-3, max(own) + 4)
    assert view.covers(_at(view, offsets), 2).tolist() == [offset in own for offset in offsets]
    assert view.high == 4096 + 2 * (max(own) + 1)
    assert not view.dense or own == set(range(len(own)))
    assert not view.contiguous or sorted(own) == list(range(view.numel))


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(0, 40), min_size=1, max_size=30), st.integers(1, 255))
def test_marks_are_a_map_of_any_size(numbers, value):
    index = numpy.array(numbers, dtype=numpy.int64)
    for size, shift in ((64, 0), (1 << 40, (1 << 40) - 64)):
        marks = Marks(size)
        marks.put(index + shift, value)
        assert marks.count() == len(set(numbers)) == distinct(index)
        seen = marks.get((shift, shift + 41)).tolist()
        assert seen == [value if number in numbers else 0 for number in range(41)]


def test_overlap_is_exact_for_interleaved_views():
    left, right = View(0, 4, (3, 2), (4, 1)), View(8, 4, (3, 2), (4, 1))
    assert not overlap(left, right)
    assert overlap(left, View(4, 4, (3, 2), (4, 1)))


def _at(view, offsets):
    return numpy.array([view.base + view.itemsize * i for i in offsets], dtype=numpy.uint64)
