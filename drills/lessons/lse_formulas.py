"""What l3's misconceptions about LSEs and their merge yield, in float64 tensors.

A formula takes the arguments of its exercise. None stands for a result that the misconception says nothing about.
Never used by graded code.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from drills.lessons import oracle
from drills.lessons.oracle import LOG2_E, finite_shift, largest, softmax_stats

LN_2 = math.log(2)
Rule = Callable[[Tensor, Tensor], tuple]


def log_of(l: Tensor, log=torch.log) -> Tensor:
    """The logarithm of l, 0 where l is 0."""
    return log(torch.where(l == 0, 1.0, l))


# lse and lse2: x[M, N] → [M].


def times(factor: float) -> Callable[..., tuple]:
    """The natural LSE times a factor."""
    return lambda x: (oracle.lse(x) * factor,)


def without_m(log=torch.log) -> Callable[..., tuple]:
    return lambda x: (log(softmax_stats(x)[1]),)


def m_plus_l(factor: float = 1.0) -> Callable[..., tuple]:
    def formula(x):
        m, l = softmax_stats(x)
        return (m * factor + l,)

    return formula


def mixed(m_factor: float, log=torch.log) -> Callable[..., tuple]:
    """m in one base, the logarithm of l in another."""

    def formula(x):
        m, l = softmax_stats(x)
        return (m * m_factor + log_of(l, log),)

    return formula


def unshifted(log=torch.log) -> Callable[..., tuple]:
    """The logarithm of a float32 sum of exp(x): inf for large scores, -inf for small ones."""
    return lambda x: (log(torch.exp(x.float()).sum(-1)).double(),)


def with_epsilon(log=torch.log, epsilon: float = 1e-12, guarded: bool = False) -> Callable[..., tuple]:
    """0 + log(0 + epsilon) for a row with no score; guarded: that gives -inf, and the others have their epsilon."""

    def formula(x):
        m, l = softmax_stats(x)
        factor = LOG2_E if log is torch.log2 else 1.0
        return ((m if guarded else finite_shift(m)) * factor + log(l + epsilon),)

    return formula


def epsilons(log=torch.log) -> tuple:
    """The same with other numbers, down from one that shows in an ordinary row."""
    shown = tuple(with_epsilon(log, 10.0**-n, guarded) for n in (2, 3, 4) for guarded in (False, True))
    return shown + tuple(with_epsilon(log, 10.0**-n) for n in (5, 6, 7, 8, 9, 10, 15, 20, 30))


def empty_rows_nan(factor: float = 1.0) -> Callable[..., tuple]:
    """(-inf) - (-inf) in rows with no score."""

    def formula(x):
        right = oracle.lse(x)
        return (torch.where(right == -math.inf, math.nan, right * factor),)

    return formula


def empty_rows_zero(factor: float = 1.0) -> Callable[..., tuple]:
    """0 for a row with no score."""

    def formula(x):
        right = oracle.lse(x)
        return (torch.where(right == -math.inf, 0.0, right * factor),)

    return formula


def ln_2_upside_down(x):
    """m + log2(l) / ln 2."""
    m, l = softmax_stats(x)
    return (m + log_of(l, torch.log2) * LOG2_E,)


def exp_of_base_2(log=torch.log2) -> Callable[..., tuple]:
    """exp of scores that carry log2(e); their max is in base 2."""

    def formula(x):
        m, l = softmax_stats(x.double() * LOG2_E)
        return (m + log_of(l, log),)

    return formula


def unscaled_exp2(x):
    """exp2 and log2 of the natural scores."""
    return (oracle.lse(x.double() / LOG2_E) * LOG2_E,)


# merge_natural: rules for states along axis 0, v[2, S, H, D], s[2, S, H] natural → (v, s).


def on_states(rule: Rule) -> Callable[..., tuple]:
    """merge_natural by `rule`."""

    def formula(o_a, lse_a, o_b, lse_b):
        return rule(torch.stack([o_a, o_b]).double(), torch.stack([lse_a, lse_b]).double())

    return formula


def right(v: Tensor, s: Tensor) -> tuple[Tensor, Tensor]:
    return oracle.merge(v, s, exp=torch.exp, log=torch.log)


def as_base_2(v, s):
    return oracle.merge(v, s)


def exp2_weights(v, s):
    return oracle.merge(v, s)[0], right(v, s)[1]


def exp2_weights_throughout(v, s):
    """In the sum under the logarithm as well."""
    return oracle.merge(v, s, log=torch.log)


def log2_of_the_sum(v, s):
    return right(v, s)[0], oracle.merge(v, s, exp=torch.exp)[1]


def lse_in_base_2(v, s):
    merged_v, merged_s = right(v, s)
    return merged_v, merged_s * LOG2_E


def averaged(v, s):
    return v.mean(0), None


def swapped(v, s):
    return right(v.flip(0), s)[0], right(v, s)[1]


def lse_is_max(v, s):
    return right(v, s)[0], largest(s, 0)


def lse_is_sum(v, s):
    return right(v, s)[0], s.sum(0)


def not_divided(v, s):
    w = torch.exp(s - finite_shift(largest(s, 0)))
    return (w[..., None] * torch.where(w[..., None] > 0, v, 0.0)).sum(0), right(v, s)[1]


def unshifted_merge(v, s):
    """exp(lse) in float32, no max taken off."""
    w = torch.exp(s.float()).double()
    total = w.sum(0)
    return (w[..., None] * v).sum(0) / total[..., None], torch.log(total.float()).double()


def unshifted_merge_guarded(v, s):
    """The same, and a sum of 0 is not divided by."""
    gone = (torch.exp(s.float()).sum(0) == 0)[..., None]
    out, lse = unshifted_merge(v, s)
    return torch.where(gone, 0.0, out), lse


def all_empty(s: Tensor) -> Tensor:
    return largest(s, 0) == -math.inf


def two_empty_nan(v, s):
    """(-inf) - (-inf): in the output and in the LSE."""
    return torch.where(all_empty(s)[..., None], math.nan, right(v, s)[0]), two_empty_nan_in_lse(v, s)[1]


def zero_by_zero(v, s):
    return torch.where(all_empty(s)[..., None], math.nan, right(v, s)[0]), right(v, s)[1]


def two_empty_nan_in_lse(v, s):
    merged_v, merged_s = right(v, s)
    return merged_v, torch.where(all_empty(s), math.nan, merged_s)


def empty_payload(v, s):
    """0 * NaN is NaN."""
    w = torch.exp(s - finite_shift(largest(s, 0)))
    total = w.sum(0)
    return (w[..., None] * v).sum(0) / torch.where(total == 0, 1.0, total)[..., None], right(v, s)[1]


def nan_filtered(v, s):
    """A NaN is replaced by 0 whatever its side weighs; 0 * inf is still NaN."""
    return empty_payload(torch.where(v.isnan(), 0.0, v), s)


def heads_first(v, s):
    """The LSEs [S, H] addressed as [H, S], the result's too."""
    states, positions, heads = s.shape
    return right(v, s.reshape(states, heads, positions).transpose(1, 2))[0], None


def payload_of(side: int) -> Rule:
    """That of one side only."""

    def rule(v, s):
        w = torch.exp(s - finite_shift(largest(s, 0)))
        clean = torch.where(w[..., None] > 0, v, 0.0)
        clean[side] = v[side]
        return empty_payload(clean, s)[0], right(v, s)[1]

    return rule


def empty_wins(*sides: int) -> Rule:
    """Where one of these sides is empty, the result is."""

    def rule(v, s):
        gone = (s[list(sides)] == -math.inf).any(0)
        merged_v, merged_s = right(v, s)
        return torch.where(gone[..., None], 0.0, merged_v), torch.where(gone, -math.inf, merged_s)

    return rule


def unguarded(v, s):
    """No care for -inf at all."""
    return torch.where(all_empty(s)[..., None], math.nan, empty_payload(v, s)[0]), two_empty_nan_in_lse(v, s)[1]


def unguarded_in_v(v, s):
    """The same in v; the LSE is right."""
    return unguarded(v, s)[0], right(v, s)[1]


# to_flashinfer: lse[H, T] → s[T, H].


def converted(lse: Tensor, factor: float = LOG2_E) -> Tensor:
    return torch.where(lse == math.inf, -math.inf, lse.double() * factor).t()


def inf_kept(lse):
    return (lse.double().t() * LOG2_E,)


def empty_as(value: float) -> Callable[..., tuple]:
    def formula(lse):
        return (torch.where(lse.isinf(), value, lse.double() * LOG2_E).t(),)

    return formula


def not_transposed(lse):
    """The memory of [H, T], read as [T, H]."""
    h, t = lse.shape
    return (converted(lse).t().reshape(t, h),)
