"""What is right, in float64 and plain torch: the maths that the lessons share, for a learner to read.

Every function takes tensors of any dtype and answers in float64. "Empty" is -inf throughout: a score of -inf is
masked, a state with s = -inf holds nothing, and its payload is never used. Never used by graded code.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

LOG2_E = 1 / math.log(2)
"""A natural log times this is a base-2 log."""


def largest(x: Tensor, dim: int = -1) -> Tensor:
    """The maximum along `dim`; -inf where there is nothing to look at."""
    if x.shape[dim] == 0:
        return x.sum(dim).double() - math.inf
    return x.double().amax(dim)


def finite_shift(m: Tensor) -> Tensor:
    """What to subtract before an exponential: m, or 0 where m is -inf, because (-inf) - (-inf) is NaN."""
    return torch.where(m == -math.inf, 0.0, m)


def softmax_stats(x: Tensor) -> tuple[Tensor, Tensor]:
    """x[..., N] → m[...] = max x and l[...] = sum of exp(x - m). A row with no score: m = -inf, l = 0."""
    m = largest(x)
    return m, torch.exp(x.double() - finite_shift(m)[..., None]).sum(-1)


def softmax(x: Tensor) -> Tensor:
    """x[..., N] → weights of the same shape, sum 1. A row with no score gives zeros."""
    m, l = softmax_stats(x)
    return torch.exp(x.double() - finite_shift(m)[..., None]) / torch.where(l == 0, 1.0, l)[..., None]


def attend(scores: Tensor, v: Tensor) -> Tensor:
    """scores[..., N], v[N, D] → softmax(scores) @ v [..., D]."""
    return softmax(scores) @ v.double()


def lse(x: Tensor) -> Tensor:
    """x[..., N] → the natural log of the sum of exp(x) [...]; -inf for a row with no score."""
    m, l = softmax_stats(x)
    return m + torch.log(torch.where(l == 0, 1.0, l))


def lse2(x: Tensor) -> Tensor:
    """x[..., N] → log2 of the sum of exp(x) [...]: what FlashInfer calls s."""
    return lse(x) * LOG2_E


def merge(v: Tensor, s: Tensor, dim: int = 0, exp=torch.exp2, log=torch.log2) -> tuple[Tensor, Tensor]:
    """States along `dim` as one: v[..., N, ..., D], s[..., N, ...] → v[..., D], s[...].

    State n weighs 2^s_n. exp, log: of the base of s; torch.exp and torch.log for a natural LSE.
    No state at all, or only empty ones: (0, -inf).
    """
    s = s.double()
    m = largest(s, dim)
    weight = exp(s - finite_shift(m).unsqueeze(dim))
    total = weight.sum(dim)
    total = torch.where(total == 0, 1.0, total)
    used = torch.where(weight[..., None] > 0, v.double(), 0.0)  # 0 * NaN is NaN: an empty state's v is dropped first
    return (weight[..., None] * used).sum(dim) / total[..., None], m + log(total)


def merge_mlo(m: Tensor, l: Tensor, o: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Parts along axis 0 as one: m[N, ...], l[N, ...], o[N, ..., D] → m, l, o without that axis.

    Part n weighs l_n * exp(m_n - max m). No part, or only empty ones: (-inf, 0, 0).
    """
    top = largest(m, 0)
    weight = torch.where(l == 0, 0.0, l.double() * torch.exp(m.double() - finite_shift(top)))
    total = weight.sum(0)
    used = torch.where(weight[..., None] > 0, o.double(), 0.0)
    return top, total, (weight[..., None] * used).sum(0) / torch.where(total == 0, 1.0, total)[..., None]


def largest_finite(*scores: Tensor) -> float:
    """The largest finite |score| of a case, 0.0 where there is none: for the tolerances."""
    sizes = [x[x.isfinite()].abs().amax().item() for x in scores if bool(x.isfinite().any())]
    return max(sizes, default=0.0)
