"""Attention over parts of the keys, in float64: what the oracles, mistakes and draws of l2 and l3 are written with.

Plain torch that a learner can read: all scores first, then one part at a time. Never used by graded code.
"""

from __future__ import annotations

import torch
from torch import Tensor

from drills.lessons.oracle import softmax, softmax_stats

FELT = -13.9
"""A part with a weight below exp of this, 2^-20, does not show in the result: its values need not be read."""


def default_scale(q: Tensor, scale: float | None) -> float:
    """1/√D unless given."""
    return q.shape[-1] ** -0.5 if scale is None else scale


def scores(q: Tensor, k: Tensor, scale: float | None = None) -> Tensor:
    """q[..., H, D], k[L, H, D] → q · k * scale [..., H, L]."""
    return torch.einsum("...hd,lhd->...hl", q.double(), k.double()) * default_scale(q, scale)


def spans(keys: int, num_splits: int) -> list[slice]:
    """Part n covers keys [n * T, min((n + 1) * T, keys)), T = ceil(keys / num_splits). Parts past the end are empty."""
    step = -(-keys // num_splits)
    return [slice(min(n * step, keys), min((n + 1) * step, keys)) for n in range(num_splits)]


def triple(x: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """x[..., H, L], v[L, H, D] → m[..., H], l[..., H] and the normalized o[..., H, D] of these keys."""
    m, l = softmax_stats(x)
    return m, l, torch.einsum("...hl,lhd->...hd", softmax(x), v.double())


def partial(x: Tensor, v: Tensor, parts: list[slice]) -> tuple[Tensor, Tensor, Tensor]:
    """x[..., H, L], v[L, H, D] → m[N, ..., H], l[N, ..., H], o[N, ..., H, D], one entry a part."""
    triples = [triple(x[..., part], v[part]) for part in parts]
    return tuple(torch.stack(items) for items in zip(*triples, strict=True))


def random_qkv(
    rng: torch.Generator, L: int, H: int = 3, D: int = 16, dtype: torch.dtype = torch.float32, leading: tuple = ()
) -> tuple[Tensor, Tensor, Tensor]:
    """q[*leading, H, D], k[L, H, D], v[L, H, D], ordinary values."""
    q = torch.randn(*leading, H, D, generator=rng).to(dtype)
    return q, torch.randn(L, H, D, generator=rng).to(dtype), torch.randn(L, H, D, generator=rng).to(dtype)


def nbytes(*tensors: Tensor) -> int:
    """Bytes of all elements together."""
    return sum(t.numel() * t.element_size() for t in tensors)


def used_bytes(weight_exponents: Tensor, v: Tensor) -> int:
    """Bytes of the rows v[..., D] whose weight exp(exponent[...]) is felt."""
    return int((weight_exponents > FELT).sum()) * v.shape[-1] * v.element_size()
