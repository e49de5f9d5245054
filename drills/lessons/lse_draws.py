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
