"""Small seeded cases for l4: states drawn at random, edited where a case needs it, and handed out as arguments.

States are drawn as v[S, N, H, D] and s[S, N, H], N states of every position and head, and then cut into the arguments
of one of the four exercises. S, N and H differ, so that an address computed in the wrong order shows.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Generator, Tensor

from drills.lessons.base import Args

Edit = Callable[[Tensor, Tensor, Generator], None]
"""Changes drawn states in place."""


def integer(rng: Generator, low: int, high: int) -> int:
    """One of low … high."""
    return int(torch.randint(low, high + 1, (), generator=rng))


def states(rng: Generator, S: int, N: int, H: int, D: int, dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor]:
    """v[S, N, H, D] around another value in every state, s[S, N, H] float32 of about 8, give or take 2."""
    level = 2 * torch.randn(S, N, H, 1, generator=rng)
    v = level + torch.randn(S, N, H, D, generator=rng)
    return v.to(dtype), 8 + 2 * torch.randn(S, N, H, generator=rng)


def sizes(rng: Generator, two: bool) -> dict[str, int]:
    """S, N, H, a permutation of 2, 3 and 5, and D. With `two` states N is 2, and S and H are 3 and 5."""
    order = [i for i in torch.randperm(3, generator=rng).tolist() if not (two and i == 0)]
    S, H, *N = ((2, 3, 5)[i] for i in order)
    return {"S": S, "N": 2 if two else N[0], "H": H, "D": (3, 12, 20)[integer(rng, 0, 2)]}


def nothing(v: Tensor, s: Tensor, rng: Generator) -> None:
    """The states as they were drawn."""


def some_empty(v: Tensor, s: Tensor, rng: Generator) -> None:
    """Position 0, head 0 has only empty states; position 1, head 0 has one. Payloads stay finite."""
    s[0, :, 0] = -math.inf
    s[1, integer(rng, 0, s.shape[1] - 1), 0] = -math.inf


def empty_at_first(v: Tensor, s: Tensor, rng: Generator) -> None:
    """All states of position 0 but the last are empty, and the first one of position 1. Payloads stay finite."""
    s[0, :-1] = -math.inf
    s[1, 0] = -math.inf


def low_after_empty(v: Tensor, s: Tensor, rng: Generator) -> None:
    """Position 0 has one state, the last, far below what 2^s holds. Position 1 is empty throughout."""
    s[0] -= 400.0
    s[0, :-1] = s[1] = -math.inf


def poisoned(v: Tensor, s: Tensor, rng: Generator) -> None:
    """One state of position 1, last head, is empty, and its payload is NaN."""
    n = integer(rng, 0, s.shape[1] - 1)
    s[1, n, -1] = -math.inf
    v[1, n, -1] = math.nan


def poisoned_with_inf(v: Tensor, s: Tensor, rng: Generator) -> None:
    """The same with a payload of NaN at position 0 and one of inf at position 1."""
    poisoned(v, s, rng)
    v[v.isnan()] = math.inf
    n = integer(rng, 0, s.shape[1] - 1)
    s[0, n, 0], v[0, n, 0] = -math.inf, math.nan


def empty_and_poisoned(v: Tensor, s: Tensor, rng: Generator) -> None:
    """Both of the above."""
    some_empty(v, s, rng)
    poisoned(v, s, rng)


def huge(v: Tensor, s: Tensor, rng: Generator) -> None:
    """|s| far beyond what 2^s holds in float32: below at even positions, above at odd ones."""
    s[::2] -= 400.0
    s[1::2] += 400.0


def uneven(v: Tensor, s: Tensor, rng: Generator) -> None:
    """The last state is far above the first at position 0, far below at 1. The first of the last position is empty."""
    s[0, -1] += 400.0
    s[1, -1] -= 400.0
    s[-1, 0, 0] = -math.inf


def far_below(v: Tensor, s: Tensor, rng: Generator) -> None:
    """s around -70,000: legal scores. Position 0, head 0 is empty throughout."""
    s -= 70000.0
    s[0, :, 0] = -math.inf


def equal(v: Tensor, s: Tensor, rng: Generator) -> None:
    """All weights are 1; column j holds 1 + 2^-(j + 2) - 2^-10, which rounds the same way in every step."""
    s.fill_(0.0)
    column = torch.arange(v.shape[-1])
    v.copy_((1 + 2.0 ** -(column + 2) - 2.0**-10).expand(v.shape))


def cancelling(v: Tensor, s: Tensor, rng: Generator) -> None:
    """3/4 of one state and 1/4 of another are about 0.1 to 0.2, while 3/4 of the first is about 1 and no half."""
    s[:, 0], s[:, 1:] = math.log2(3), 0.0
    steps = torch.randint(1300, 1500, v[:, 0].shape, generator=rng) / 1024
    v[:, 0] = steps.to(v.dtype)
    v[:, 1:] = (0.4 + 0.4 * torch.rand(s[:, :1].shape, generator=rng)[..., None] - 3 * steps[:, None]).to(v.dtype)


def cancelling_halves(v: Tensor, s: Tensor, rng: Generator) -> None:
    """Equal s. Half of the states are about 1.5, the others about -1.5, and 0.03 is left: see the test of that name."""
    half = v.shape[1] // 2
    steps = torch.randint(1024, 2048, v[:, :half].shape, generator=rng)
    s.zero_()
    v[:, :half] = steps.to(v.dtype) / 1024
    v[:, half : 2 * half] = (61 + torch.arange(half)[:, None, None] % 2 - steps).to(v.dtype) / 1024


def two_args(v: Tensor, s: Tensor, rng: Generator) -> Args:
    """(v_a, s_a, v_b, s_b) of the first two states."""
    return v[:, 0].clone(), s[:, 0].clone(), v[:, 1].clone(), s[:, 1].clone()


def masked_args(v: Tensor, s: Tensor, rng: Generator) -> Args:
    """The same and a mask: True, True, False, and at further positions by chance."""
    mask = torch.rand(len(v), generator=rng) < 0.5
    mask[:2] = True
    mask[2:3] = False
    return (*two_args(v, s, rng), mask)


def many_args(v: Tensor, s: Tensor, rng: Generator) -> Args:
    """(v, s)."""
    return v, s


def equal_runs(v: Tensor, s: Tensor, rng: Generator) -> Args:
    """(v, s, indptr) with N rows a position."""
    S, N = s.shape[:2]
    return v.flatten(0, 1), s.flatten(0, 1), torch.arange(S + 1, dtype=torch.int32) * N


def uneven_runs(v: Tensor, s: Tensor, rng: Generator) -> Args:
    """(v, s, indptr) with an empty run and longer ones, the first not at row 0, the last not up to the end.

    For 3 positions and 12 rows.
    """
    lengths = torch.tensor([0, integer(rng, 2, 4), integer(rng, 1, 3)])[torch.randperm(3, generator=rng)]
    indptr = torch.tensor([0, *lengths.cumsum(0)]) + integer(rng, 1, 4)
    return v.flatten(0, 1), s.flatten(0, 1), indptr.to(torch.int32)


def cases(args: Callable[..., Args], edit: Edit = nothing, dtype: torch.dtype = torch.float32, **fixed: int):
    """A draw: rng → arguments. fixed: S, N, H or D where the case needs a certain size."""

    def draw(rng: Generator) -> Args:
        size = sizes(rng, two=args in (two_args, masked_args)) | fixed
        v, s = states(rng, **size, dtype=dtype)
        edit(v, s, rng)
        return args(v, s, rng)

    return draw
