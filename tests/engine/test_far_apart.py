"""Tensors whose elements lie gigabytes apart, and how many of them a GPU is given at once."""

import torch

from drills.fixture import ON_A_GPU
from drills.lessons.strides import at_most, far_apart


def values(dtype, *shape):
    return torch.arange(torch.Size(shape).numel()).reshape(shape).to(dtype)


def test_on_a_gpu_the_smallest_stay_far_apart_and_the_others_are_without_gaps():
    v_a, v_b = (far_apart(values(torch.float16, 3, 2), axis=axis) for axis in (0, 0))
    s_a, s_b = far_apart(values(torch.float32, 3)), values(torch.float32, 3)
    less = at_most((v_a, s_a, v_b, s_b, None), ON_A_GPU)
    assert less[0] is v_a and less[2] is v_b and less[3] is s_b and less[4] is None
    assert less[1].untyped_storage().nbytes() == 12 and torch.equal(less[1], s_a)
    assert sum(one.untyped_storage().nbytes() for one in less[:4]) <= ON_A_GPU


def test_one_storage_of_two_tensors_counts_once():
    both = far_apart(values(torch.float16, 3, 2))
    assert at_most((both[:, :1], both[:, 1:], far_apart(values(torch.float16, 3))), ON_A_GPU)[2].stride(0) > 2**29
