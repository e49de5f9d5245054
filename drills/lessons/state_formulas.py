"""What l3's misconceptions about partial_states yield, in float64 tensors: v[S, N, H, D] and s[S, N, H].

A formula takes the arguments of the exercise: q[S, H, D], k[L, H, D], v[L, H, D], num_splits, scale.
Never used by graded code.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

from drills.lessons.lse_formulas import log_of
from drills.lessons.oracle import LOG2_E, softmax, softmax_stats
from drills.lessons.parts import scores, spans


def states(
    score_factor: float = 1.0, s_factor: float = LOG2_E, log: Callable | None = None, given: float | None = None
) -> Callable[..., tuple]:
    """Scores times `score_factor`, s = LSE times `s_factor`; with `log`: (m, l) → s. given: a scale that wins."""

    def formula(q, k, v, num_splits, scale=None, parts=None):
        x = scores(q, k, given or scale) * score_factor  # [S, H, L]
        found = []
        for part in parts or spans(len(k), num_splits):
            m, l = softmax_stats(x[..., part])
            s = m * s_factor + log_of(l) * s_factor if log is None else log(m, l)
            found.append((torch.einsum("shl,lhd->shd", softmax(x[..., part]), v[part].double()), s))
        return tuple(torch.stack(items, 1) for items in zip(*found, strict=True))

    return formula


def rounded_down(q, k, v, num_splits, scale=None):
    """T = L // N: the last L % N keys belong to no part."""
    step = len(k) // num_splits
    parts = [slice(n * step, (n + 1) * step) for n in range(num_splits)]
    return states()(q, k, v, num_splits, scale, parts)


def empty_part_nan(q, k, v, num_splits, scale=None):
    """0 / 0 in v; s is right."""
    out_v, out_s = states()(q, k, v, num_splits, scale)
    return torch.where((out_s == -math.inf)[..., None], math.nan, out_v), out_s


def empty_state_nan(q, k, v, num_splits, scale=None):
    """NaN in s as well."""
    out_v, out_s = empty_part_nan(q, k, v, num_splits, scale)
    return out_v, torch.where(out_s == -math.inf, math.nan, out_s)


def nan_at_scale_zero(q, k, v, num_splits, scale=None):
    """(-inf) * 0 is NaN: in a part whose last block is not full, scores masked before they are scaled."""
    out_v, out_s = states()(q, k, v, num_splits, scale)
    return torch.where(((out_s > -math.inf) & (scale == 0))[..., None], math.nan, out_v), None


def log2e_in_the_default_only(q, k, v, num_splits, scale=None):
    """exp2 of natural scores where a scale is given."""
    return states(score_factor=1.0 if scale is None else math.log(2))(q, k, v, num_splits, scale)


def v_not_divided(q, k, v, num_splits, scale=None):
    out_v, out_s = states()(q, k, v, num_splits, scale)
    l = states(log=lambda m, l: l)(q, k, v, num_splits, scale)[1]
    return out_v * l[..., None], out_s


def v_divided_again(by: Callable):
    """v over l once more, or over s in place of l: by(l, s)."""

    def formula(q, k, v, num_splits, scale=None):
        out_v, out_s = states()(q, k, v, num_splits, scale)
        l = states(log=lambda m, l: l)(q, k, v, num_splits, scale)[1]
        return out_v * by(torch.where(l == 0, 1.0, l), torch.where(l == 0, 0.0, out_s))[..., None], out_s

    return formula


def padding_scores_zero(block: int) -> Callable[..., tuple]:
    """Keys that fill a part's last block of `block` have score 0 and value 0, and count."""

    def formula(q, k, v, num_splits, scale=None):
        found = []
        for part in spans(len(k), num_splits):
            more = -(part.stop - part.start) % block
            filler = k.new_zeros(more, *k.shape[1:])
            padded = torch.cat([k[part], filler]), torch.cat([v[part], filler])
            found.append(states()(q, *padded, 1, scale))
        return tuple(torch.cat(items, 1) for items in zip(*found, strict=True))

    return formula
