"""Small cases of l1: ordinary, huge, negative and masked rows of scores. Every draw differs.

What the judge diagnoses with and what the tests build on. Never used by graded code.
"""

from __future__ import annotations

import math

import torch

from drills.lessons.base import Args


def scores(rng: torch.Generator, rows: int = 3, least: int = 17, most: int = 24) -> torch.Tensor:
    """Ordinary scores [rows, N], N from `least` to `most`."""
    columns = int(torch.randint(least, most + 1, (), generator=rng))
    return torch.randn(rows, columns, generator=rng) * 2


def draw_rows(rng: torch.Generator) -> Args:
    """Scores in blocks of 4; 17 to 23 of them, so that the last block is rarely full."""
    return scores(rng, most=23), 4


def draw_attend(rng: torch.Generator) -> Args:
    x = scores(rng, most=23)
    return x, torch.randn(x.shape[1], 5, generator=rng), 4


def with_values(draw):
    """The same scores with values beside them, for attend."""

    def both(rng: torch.Generator) -> Args:
        x, block = draw(rng)
        return x, torch.randn(x.shape[1], 5, generator=rng).to(x.dtype), block

    return both


def draw_huge(rng: torch.Generator) -> Args:
    """Scores around 200: exp overflows float32."""
    return scores(rng) + 200.0, 4


def draw_far_below(rng: torch.Generator) -> Args:
    """Scores around -300: exp(x - 0) is 0 in float32."""
    return scores(rng) - 300.0, 4


def draw_negative(rng: torch.Generator) -> Args:
    """Every score below 0."""
    return -scores(rng).abs() - 0.5, 4


def draw_falling(rng: torch.Generator) -> Args:
    """The first scores are 200 above the rest, the last block of whatever size up to 1,024 has none of them.

    Relative to the last block's max, exp overflows float32.
    """
    x = scores(rng, least=1041, most=1047)
    x[:, :4] += 200.0
    return x, 64


def draw_odd_tail(rng: torch.Generator) -> Args:
    """17, 18 or 19 negative scores: no block size from 4 on divides the row."""
    return -scores(rng, most=19).abs() - 0.5, 4


def draw_half(rng: torch.Generator) -> Args:
    """In blocks of 4: 64 equal bfloat16 scores, then 160 that are 3 lower. A bfloat16 sum of 64 + 4 * exp(-3) is 64."""
    level = torch.randint(-3, 4, (2, 1), generator=rng)
    steps = torch.tensor([0] * 64 + [-3] * 160)
    return (level + steps).to(torch.bfloat16), 4


def draw_masked_first(rng: torch.Generator) -> Args:
    """One row begins with masked blocks of whatever size up to 1,024, one is ordinary, one is masked throughout."""
    x = scores(rng, least=1041, most=1047)
    x[0, :1024] = -math.inf
    x[2] = -math.inf
    return x, 64


def draw_masked_then_low(rng: torch.Generator) -> Args:
    """The same, and what follows the masked blocks is far below 0."""
    x, block = draw_masked_first(rng)
    x[0] -= 300.0
    return x, block


def draw_masked_row(rng: torch.Generator) -> Args:
    """One row of three is masked throughout."""
    x = scores(rng)
    x[int(torch.randint(3, (), generator=rng))] = -math.inf
    return x, 4


def draw_far_apart(rng: torch.Generator) -> Args:
    """A row of scores around -70,000, one of equal scores far below any stand-in, and one that is masked throughout."""
    x = scores(rng) - 70000.0
    x[1], x[2] = -(2.0**127), -math.inf
    return x[torch.randperm(3, generator=rng)], 4


def draw_long(rng: torch.Generator) -> Args:
    """More columns than a block of whatever size up to 1,024 has."""
    return scores(rng, least=1041, most=1047), 64
