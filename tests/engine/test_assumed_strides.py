"""Whose strides an access outside its tensor took: told where the addresses leave one answer, and else not."""

import ast
import itertools
import random

import numpy as np
import pytest

from drills.instruments.assumed import contiguous, strides_taken
from drills.instruments.ledger import Region
from drills.instruments.views import View

BASE, ITEM = 4096, 4


def region(shape, strides, name="x"):
    return Region(f"{name}_ptr", name, View(BASE, ITEM, shape, strides), 0)


def told(own, offsets, mask=None, others=()):
    """What is said of an access with these element offsets."""
    addresses = (BASE + ITEM * np.asarray(offsets)).astype(np.uint64)
    live = np.ones(addresses.shape, bool) if mask is None else np.broadcast_to(mask, addresses.shape)
    outside = live & ~own.view.covers(addresses, ITEM)
    assert outside.any(), "the access has to leave the tensor"
    return strides_taken(own, addresses, mask, int(addresses[outside][0]), others)


def block(shape, strides, index, lanes):
    """Offsets and mask of a block of a tensor: index of its first lane and lanes, by axis."""
    at, mask = np.zeros((1,) * len(lanes), np.int64), np.ones((1,) * len(lanes), bool)
    for number, (axis, count) in enumerate(lanes.items()):
        along = np.arange(count).reshape([-1 if one == number else 1 for one in range(len(lanes))])
        at, mask = at + along * strides[axis], mask & (index[axis] + along < shape[axis])
    return at + sum(i * step for i, step in zip(index, strides, strict=True)), mask


def test_the_row_length_in_place_of_the_row_stride_is_told():
    offsets, mask = block((3, 40), (40, 3), (1, 16), {1: 16})
    assert told(region((3, 40), (1, 3)), offsets, mask) == (
        "x.stride(0) is 1, but here 40 is taken for it, as if x were contiguous: multiply by its strides, or call "
        ".contiguous() in the wrapper."
    )


def test_columns_that_are_taken_to_lie_side_by_side_are_told():
    offsets, mask = block((20, 2, 16), (64, 32, 1), (16, 1, 0), {0: 16, 2: 16})
    assert told(region((20, 2, 16), (64, 32, 2)), offsets, mask).startswith("x.stride(2) is 2, but here 1 is taken")


def test_all_strides_of_a_contiguous_tensor_are_told_together():
    offsets, mask = block((4, 6), (6, 1), (3, 0), {1: 8})
    assert told(region((4, 6), (24, 2)), offsets, mask).startswith("x.stride() is (24, 2), but here (6, 1) is taken")


def test_the_strides_of_another_tensor_are_told():
    own, other = region((8, 6), (6, 1), "v"), region((8, 6), (12, 2), "k")
    offsets, mask = block((8, 6), (12, 2), (4, 0), {0: 4, 1: 8})
    assert told(own, offsets, mask, [other]) == (
        "v.stride() is (6, 1), but here (12, 2) is taken for it, which is k's: pass each tensor its own strides."
    )
    assert told(own, offsets, mask) == ""


def test_a_row_that_is_read_in_two_axes_is_one_row():
    lane = np.arange(2)[:, None] * 8 + np.arange(8)[None, :]
    assert told(region((3, 40), (1, 3)), 40 + 3 * (16 + lane)).startswith("x.stride(0) is 1, but here 40 is taken")


def test_rows_at_uneven_places_leave_the_columns():
    rows = np.array([5, 0, 2, 7])[:, None]
    offsets = rows * 160 + np.arange(8)[None, :]
    assert told(region((8, 2, 5), (160, 80, 2)), offsets, np.arange(8)[None, :] < 5).startswith("x.stride(2) is 2,")


def test_one_lane_tells_of_a_vector_only():
    assert told(region((4,), (3,)), 1).startswith("x.stride(0) is 3, but here 1 is taken for it")
    assert told(region((4, 2), (6, 3)), 1) == ""


@pytest.mark.parametrize("strides", [(48, 1), (80, 2), (1, 3)])
def test_a_missing_mask_is_no_wrong_stride(strides):
    for row in range(3):
        offsets, _ = block((3, 40), strides, (row, 32), {1: 16})
        if not region((3, 40), strides).view.covers((BASE + ITEM * offsets).astype(np.uint64), ITEM).all():
            assert told(region((3, 40), strides), offsets) == ""


def test_of_a_tensor_with_too_many_places_nothing_is_said():
    offsets, mask = block((4096, 64, 4), (256, 4, 1), (4095, 63, 0), {2: 4})
    assert told(region((4096, 64, 4), (512, 8, 2)), offsets + 1, mask) == ""


def some_tensor(rng):
    """A shape, strides with gaps and axes in any order, and the contiguous ones."""
    shape = tuple(rng.choice((1, 2, 3, 5, 8, 12)) for _ in range(rng.choice((1, 2, 3))))
    step, strides = rng.choice((1, 1, 2)), [0] * len(shape)
    for axis in rng.sample(range(len(shape)), len(shape)):
        strides[axis], step = step, step * shape[axis] + rng.choice((0, 0, 3))
    return shape, tuple(strides), contiguous(shape)


def some_block(rng, shape, strides, masked):
    """A block of the tensor as these strides find it; without the mask, also one that runs past the end."""
    axes = sorted(rng.sample(range(len(shape)), rng.choice((1, min(2, len(shape))))))
    lanes = {axis: rng.choice((2, 4, 8)) for axis in axes}
    index = [rng.randrange(n) // lanes.get(axis, 1) * lanes.get(axis, 1) for axis, n in enumerate(shape)]
    offsets, mask = block(shape, strides, index, lanes)
    return offsets, mask if masked else None


def test_right_strides_are_never_called_wrong():
    rng, seen = random.Random(1), 0
    for _ in range(4000):
        shape, own, _ = some_tensor(rng)
        offsets, _ = some_block(rng, shape, own, masked=False)
        one = region(shape, own)
        if not one.view.covers((BASE + ITEM * offsets).astype(np.uint64), ITEM).all():
            seen += 1
            assert told(one, offsets) == "", (shape, own, offsets)
    assert seen > 500


def test_what_is_told_of_wrong_strides_is_what_was_taken():
    rng, seen, silent = random.Random(2), 0, 0
    for _ in range(4000):
        shape, own, packed = some_tensor(rng)
        odd = [axis for axis, n in enumerate(shape) if n > 1 and own[axis] != packed[axis]]
        choices = [axes for count in (1, 2, 3) for axes in itertools.combinations(odd, count)]
        if not choices:
            continue
        wrong = rng.choice(choices)
        taken = tuple(packed[axis] if axis in wrong else step for axis, step in enumerate(own))
        offsets, mask = some_block(rng, shape, taken, masked=True)
        one = region(shape, own)
        if not (mask & ~one.view.covers((BASE + ITEM * offsets).astype(np.uint64), ITEM)).any():
            continue
        seen += 1
        says = told(one, offsets, mask)
        silent += not says
        if ".stride(" in says and ".stride()" not in says:
            axis = int(says.partition("(")[2].partition(")")[0])
            assert axis in wrong, (shape, own, taken, offsets, says)
        elif says:
            named = ast.literal_eval(says.partition("here ")[2].partition(" is")[0])
            assert all(a == b or axis in wrong for axis, (a, b) in enumerate(zip(own, named, strict=True))), says
    assert seen > 300 and silent < seen / 2
