"""Small cases of l3: rows of scores, pairs of outputs, LSEs, with and without empty rows. Every draw differs.

What the judge diagnoses with and what the tests build on. Never used by graded code.
"""

from __future__ import annotations

import math

import torch

from drills.lessons.base import Args
from drills.lessons.parts import random_qkv


def draw_rows(rng: torch.Generator) -> Args:
    """Three rows of 6 to 12 ordinary scores, away from 0."""
    columns = int(torch.randint(6, 13, (), generator=rng))
    return (torch.randn(3, columns, generator=rng) * 2 + 3.0,)


def draw_far_rows(rng: torch.Generator) -> Args:
    """One row around 200, one around -300, one ordinary."""
    (x,) = draw_rows(rng)
    return (x + torch.tensor([[200.0], [-300.0], [0.0]]),)


def draw_masked_row(rng: torch.Generator) -> Args:
    """One row of three is masked throughout."""
    (x,) = draw_rows(rng)
    x[int(torch.randint(3, (), generator=rng))] = -math.inf
    return (x,)


def draw_pair(rng: torch.Generator) -> Args:
    """Two outputs [2, 3, 5] with LSEs some units apart."""
    o_a, o_b = torch.randn(2, 2, 3, 5, generator=rng)
    lse_a, lse_b = torch.randn(2, 2, 3, generator=rng) * 1.5 + 3.0
    return o_a, lse_a, o_b, lse_b


def draw_far_pair(rng: torch.Generator) -> Args:
    """LSEs of one row near 200, of another near -300."""
    o_a, lse_a, o_b, lse_b = draw_pair(rng)
    shift = torch.tensor([[200.0, -300.0, 0.0], [0.0, 200.0, -300.0]])
    return o_a, lse_a + shift, o_b, lse_b + shift


def draw_two_empty(rng: torch.Generator) -> Args:
    """Both sides of one row are empty, their outputs 0."""
    o_a, lse_a, o_b, lse_b = draw_pair(rng)
    row = int(torch.randint(2, (), generator=rng)), int(torch.randint(3, (), generator=rng))
    for o, lse in ((o_a, lse_a), (o_b, lse_b)):
        o[row], lse[row] = 0.0, -math.inf
    return o_a, lse_a, o_b, lse_b


def draw_payload(rng: torch.Generator) -> Args:
    """One side of two rows is empty and holds NaN."""
    o_a, lse_a, o_b, lse_b = draw_pair(rng)
    o_a[0, 1], lse_a[0, 1] = math.nan, -math.inf
    o_b[1, 2], lse_b[1, 2] = math.nan, -math.inf
    return o_a, lse_a, o_b, lse_b


def draw_inf_payload(rng: torch.Generator) -> Args:
    """One side of two rows is empty; one of them holds NaN, the other inf."""
    o_a, lse_a, o_b, lse_b = draw_payload(rng)
    return o_a, lse_a, torch.where(o_b.isnan(), math.inf, o_b), lse_b


def draw_both_kinds(rng: torch.Generator) -> Args:
    """Both of the above."""
    o_a, lse_a, o_b, lse_b = draw_payload(rng)
    for o, lse in ((o_a, lse_a), (o_b, lse_b)):
        o[1, 0], lse[1, 0] = 0.0, -math.inf
    return o_a, lse_a, o_b, lse_b


def draw_lse(rng: torch.Generator) -> Args:
    """lse[3, 5], every row with keys."""
    return (torch.randn(3, 5, generator=rng) * 2 + 3.0,)


def draw_lse_with_empty(rng: torch.Generator) -> Args:
    """lse[3, 5] with an empty row of each kind."""
    (lse,) = draw_lse(rng)
    lse[0, 1], lse[2, 3] = math.inf, -math.inf
    return (lse,)


def draw_partial(rng: torch.Generator) -> Args:
    """Two queries, 11 to 19 keys in 4 parts, the last one short."""
    keys = int(torch.randint(3, 6, (), generator=rng)) * 4 - 1
    return *random_qkv(rng, keys, H=3, D=8, leading=(2,)), 4


def draw_partial_empty(rng: torch.Generator) -> Args:
    """Five keys in eight parts: the last three are empty."""
    return *random_qkv(rng, 5, H=3, D=8, leading=(2,)), 8


def draw_partial_zero_scale(rng: torch.Generator) -> Args:
    """A scale of 0: every key counts the same."""
    return *draw_partial(rng), 0.0


def draw_partial_odd_d(rng: torch.Generator) -> Args:
    """D = 10, and the default scale."""
    return *random_qkv(rng, 11, H=3, D=10, leading=(2,)), 4


def draw_partial_scaled(rng: torch.Generator) -> Args:
    """An ordinary case with a scale of its own."""
    return *draw_partial(rng), 0.5 + float(torch.rand((), generator=rng))


def draw_long_part(rng: torch.Generator) -> Args:
    """One query and one part of 130 to 140 keys whose scores rise: the max moves in late steps too."""
    keys = 130 + int(torch.randint(11, (), generator=rng))
    q, k, v = random_qkv(rng, keys, H=2, D=8, leading=(1,))
    q[..., 0] = 3.0
    k[..., 0] = torch.linspace(-3.0, 3.0, keys)[:, None]
    return q, k, v, 1


def draw_far_keys(rng: torch.Generator) -> Args:
    """Scores of about 280 and, for another query, of -280."""
    q, k, v, num_splits = draw_partial(rng)
    q[:, :, 0], k[..., 0] = 20.0, 40.0
    q[1, :, 0] = -20.0
    return q, k, v, num_splits


LONGEST = 4096
"""Columns a step of a kernel, at most."""


def _long_rows(rng: torch.Generator) -> torch.Tensor:
    columns = LONGEST + 10 + int(torch.randint(9, (), generator=rng))
    return torch.randn(3, columns, generator=rng) * 2


def draw_masked_first(rng: torch.Generator) -> Args:
    """One row begins with masked blocks of whatever size, one is masked throughout, one is ordinary."""
    x = _long_rows(rng)
    x[0, :LONGEST] = -math.inf
    x[1] = -math.inf
    return (x,)


def draw_masked_then_low(rng: torch.Generator) -> Args:
    """The same, and what follows the masked blocks is far below 0."""
    (x,) = draw_masked_first(rng)
    x[0] -= 300.0
    return (x,)


def draw_rising(rng: torch.Generator) -> Args:
    """The max moves in every block, the last one included."""
    return (_long_rows(rng).sort().values,)


def draw_half_rows(rng: torch.Generator) -> Args:
    (x,) = draw_rows(rng)
    return (x.half(),)


def draw_far_below(rng: torch.Generator) -> Args:
    """Scores around -150,000: legal ones."""
    (x,) = draw_rows(rng)
    return (x - 150000.0,)


def draw_uneven_pair(rng: torch.Generator) -> Args:
    """lse_b far above lse_a in one row, far below in another; side a of a third is empty."""
    o_a, lse_a, o_b, lse_b = draw_pair(rng)
    lse_b[0, 0] += 200.0
    lse_b[1, 1] -= 200.0
    o_a[1, 2], lse_a[1, 2] = 0.0, -math.inf
    return o_a, lse_a, o_b, lse_b
