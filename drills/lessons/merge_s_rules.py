"""Wrong ways to make the merged s, beside a v that is right: rules as in merge_rules.py. Never used by graded code."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from drills.lessons.merge_rules import Rule, natural, weights
from drills.lessons.oracle import finite_shift, largest, merge


def s_is_max(v: Tensor, s: Tensor):
    return merge(v, s)[0], largest(s, 0)


def s_is_sum(v: Tensor, s: Tensor):
    return merge(v, s)[0], s.double().sum(0)


def s_is_mean(v: Tensor, s: Tensor):
    return merge(v, s)[0], s.double().mean(0)


def log_of_the_mean(v: Tensor, s: Tensor):
    """log2 of the mean of the 2^s, not of their sum."""
    merged, s_merged = merge(v, s)
    return merged, s_merged - math.log2(max(1, len(s)))


def log_forgotten(v: Tensor, s: Tensor):
    return merge(v, s)[0], largest(s, 0) + weights(s).sum(0)


def max_not_added(v: Tensor, s: Tensor):
    return merge(v, s)[0], torch.log2(weights(s).sum(0))


def s_by_exp(v: Tensor, s: Tensor):
    """log2 of the sum of e^(s - m); the weights of v are right."""
    m = largest(s, 0)
    return merge(v, s)[0], m + torch.log2(torch.exp(s.double() - finite_shift(m)).sum(0))


def s_natural(v: Tensor, s: Tensor):
    """ln of the sum of e^s; the weights of v are right."""
    return merge(v, s)[0], natural(v, s)[1]


def epsilon_in_log(epsilon: float) -> Rule:
    """log2(sum + epsilon): a bias, and a finite s where there is nothing."""

    def formula(v: Tensor, s: Tensor):
        total = weights(s).sum(0)
        return None, finite_shift(largest(s, 0)) + torch.log2(total + epsilon)

    return formula
