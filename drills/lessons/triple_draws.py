"""Small cases of l2: ordinary parts, empty parts, parts whose payload is NaN. Every draw differs.

What the judge diagnoses with and what the tests build on. Never used by graded code.
"""

from __future__ import annotations

import math

import torch

from drills.lessons.base import Args
from drills.lessons.parts import partial, random_qkv


def parts_of(rng: torch.Generator, N: int, H: int = 3, D: int = 16, dtype: torch.dtype = torch.float32) -> Args:
    """m[N, H], l[N, H], o[N, H, D] of ordinary parts, of 1 to 9 keys each.

    o in bfloat16 is 2^17 times as large, and no float16 on its way can hold it.
    """
    triples = []
    for _ in range(N):
        keys = int(torch.randint(1, 10, (), generator=rng))
        x = torch.randn(H, keys, generator=rng) * 2
        triples.append(partial(x, torch.randn(keys, H, D, generator=rng), [slice(None)]))
    if not N:
        return torch.zeros(0, H), torch.zeros(0, H), torch.zeros(0, H, D, dtype=dtype)
    m, l, o = (torch.cat(items) for items in zip(*triples, strict=True))
    return m.float(), l.float(), (o * 2.0**17 if dtype == torch.bfloat16 else o).to(dtype)


def as_pair(m: torch.Tensor, l: torch.Tensor, o: torch.Tensor) -> Args:
    """Parts 0 and 1 as merge_pair takes them."""
    return m[0].clone(), l[0].clone(), o[0].clone(), m[1].clone(), l[1].clone(), o[1].clone()


def make_empty(parts: Args, where: torch.Tensor, payload: float | torch.Tensor = 0.0) -> Args:
    """The parts with those at where[N, H] empty; `payload` is what their o, or each row of it, holds."""
    m, l, o = (t.clone() for t in parts)
    m[where], l[where], o[where] = -math.inf, 0.0, payload
    return m, l, o


def draw_partial(rng: torch.Generator) -> Args:
    """11 to 14 keys in 4 parts, the last one short."""
    keys = int(torch.randint(3, 6, (), generator=rng)) * 4 - 1
    return *random_qkv(rng, keys, H=2, D=8), 4


def draw_partial_scaled(rng: torch.Generator) -> Args:
    """The same with a scale of its own."""
    return *draw_partial(rng), 0.25 + float(torch.rand((), generator=rng))


def draw_partial_divisible(rng: torch.Generator) -> Args:
    """Three parts of four keys, and none left over."""
    return *random_qkv(rng, 12, H=2, D=8), 3


def draw_partial_negative_scale(rng: torch.Generator) -> Args:
    """A scale below 0: the largest q @ k has the smallest score."""
    return *draw_partial(rng), -0.25 - float(torch.rand((), generator=rng))


def draw_partial_zero_scale(rng: torch.Generator) -> Args:
    """A scale of 0: every key counts the same."""
    return *draw_partial(rng), 0.0


def draw_partial_odd_d(rng: torch.Generator) -> Args:
    """D = 10, and the default scale."""
    return *random_qkv(rng, 11, H=2, D=10), 4


def draw_partial_empty(rng: torch.Generator) -> Args:
    """Five keys in eight parts: the last three are empty."""
    return *random_qkv(rng, 5, H=2, D=8), 8


def draw_long_part(rng: torch.Generator) -> Args:
    """One part of 130 to 140 keys whose scores rise: the max moves in late steps too."""
    q, k, v = random_qkv(rng, 130 + int(torch.randint(11, (), generator=rng)), H=2, D=8)
    q[:, 0] = 3.0
    k[..., 0] = torch.linspace(-3.0, 3.0, len(k))[:, None]
    return q, k, v, 1


def draw_pair(rng: torch.Generator) -> Args:
    return as_pair(*parts_of(rng, 2))


def draw_parts(rng: torch.Generator) -> Args:
    """Three to five parts."""
    return parts_of(rng, int(torch.randint(3, 6, (), generator=rng)))


def empty_head(rng: torch.Generator, N: int, payload: float = 0.0) -> Args:
    """One head has no key in any part, another none in part 0."""
    where = torch.zeros(N, 3, dtype=torch.bool)
    where[:, 1] = True
    where[0, 2] = True
    return make_empty(parts_of(rng, N), where, payload)


def one_empty(rng: torch.Generator, N: int) -> Args:
    """One part of each head is empty and holds NaN."""
    where = torch.zeros(N, 3, dtype=torch.bool)
    where[torch.randint(N, (3,), generator=rng), torch.arange(3)] = True
    return make_empty(parts_of(rng, N), where, math.nan)


def inf_payload(rng: torch.Generator, N: int) -> Args:
    """One part of each head is empty; that of head 0 holds NaN, the others hold inf."""
    m, l, o = one_empty(rng, N)
    return m, l, torch.where(o.isnan() & (torch.arange(3) > 0)[:, None], math.inf, o)


def both_kinds_of_empty(rng: torch.Generator, N: int) -> Args:
    """Head 0 has no key in any part; part 0 of head 1 and the last of head 2 are empty and hold NaN."""
    nothing, one = torch.zeros(N, 3, dtype=torch.bool), torch.zeros(N, 3, dtype=torch.bool)
    nothing[:, 0] = True
    one[0, 1] = one[-1, 2] = True
    return make_empty(make_empty(parts_of(rng, N), nothing), one, math.nan)


def far_apart(rng: torch.Generator, N: int) -> Args:
    """m of head 0 around 200, of head 1 around -300, of head 2 ordinary: exp(m) overflows float32, or is 0."""
    m, l, o = parts_of(rng, N)
    return m + torch.tensor([200.0, -300.0, 0.0]), l, o


def one_far_above(rng: torch.Generator, N: int) -> Args:
    """The m of one part, another one in every head, is 200 above the others."""
    m, l, o = parts_of(rng, N)
    return m + 200.0 * (torch.arange(N)[:, None] == torch.arange(3) % N), l, o


def low_after_empty(rng: torch.Generator, N: int) -> Args:
    """131 parts, not N: in head 0 all but the last are empty, and that one is far below 0. Head 1 is all empty."""
    m, l, o = parts_of(rng, 131)
    where = torch.zeros(131, 3, dtype=torch.bool)
    where[:-1, 0] = where[:, 1] = True
    return make_empty((m - 300.0, l, o), where)


def far_below(rng: torch.Generator, N: int) -> Args:
    """m around -70,000: legal scores. One head has no key in any part."""
    m, l, o = parts_of(rng, N)
    return make_empty((m - 70000.0, l, o), torch.tensor([[False, True, False]] * N))


def parts_below_zero(rng: torch.Generator, N: int) -> Args:
    """m around -3: a part with m = 0 would weigh most."""
    m, l, o = parts_of(rng, N)
    return m - 5.0, l, o


def many_parts(rng: torch.Generator, N: int) -> Args:
    """130 parts and more whose m rises: the max moves in late steps too."""
    m, l, o = parts_of(rng, 130 + N)
    return m + torch.linspace(-4.0, 4.0, len(m))[:, None], l, o


def very_many_parts(rng: torch.Generator, N: int) -> Args:
    """Some 270 parts of which every one counts."""
    m, l, o = parts_of(rng, 266 + N)
    return torch.zeros_like(m), l, o
