"""Weights by tl.map_elementwise, a mask as bytes, a data class and a context manager, runs in buckets of a length."""

import contextlib
import enum
from dataclasses import dataclass

import torch
import triton
import triton.language as tl


@triton.jit
def weights(a, b):
    if a == b:
        return 0.5, 0.5
    t = tl.exp2(-tl.abs(a - b))
    big = 1.0 / (1.0 + t)
    if a > b:
        return big, t * big
    return t * big, big


@triton.jit
def blended(va, sa, vb, sb, vo, so, rows, D: tl.constexpr, R: tl.constexpr, C: tl.constexpr):
    r = tl.program_id(0).to(tl.int64) * R + tl.arange(0, R)
    c = tl.arange(0, C)
    a = tl.load(sa + r, mask=r < rows, other=float("-inf"))
    b = tl.load(sb + r, mask=r < rows, other=float("-inf"))
    wa, wb = tl.map_elementwise(weights, a, b)
    wa = tl.where(a == float("-inf"), 0.0, wa)
    wb = tl.where(b == float("-inf"), 0.0, wb)
    at = r[:, None] * D + c[None, :]
    x = tl.load(va + at, mask=(wa > 0)[:, None] & (c < D)[None, :], other=0.0).to(tl.float32)
    y = tl.load(vb + at, mask=(wb > 0)[:, None] & (c < D)[None, :], other=0.0).to(tl.float32)
    tl.store(vo + at, x * wa[:, None] + y * wb[:, None], mask=(r < rows)[:, None] & (c < D)[None, :])
    hi = tl.maximum(a, b)
    gap = tl.where(hi == float("-inf"), 0.0, tl.minimum(a, b) - hi)
    tl.store(so + r, hi + tl.log2(1.0 + tl.exp2(gap)), mask=r < rows)


def merge_state(v_a, s_a, v_b, s_b):
    S, H, D = v_a.shape
    v_a, v_b, s_a, s_b = map(torch.Tensor.contiguous, (v_a, v_b, s_a, s_b))
    v, s = torch.empty_like(v_a), torch.empty_like(s_a)
    if S * H:
        blended[(triton.cdiv(S * H, 4),)](v_a, s_a, v_b, s_b, v, s, S * H, D, R=4, C=triton.next_power_of_2(D))
    return v, s


@triton.jit
def in_place(v, s, vo, so, mask_ptr, rows, H, vs, vh, vd, ss, sh, ms, D: tl.constexpr, R: tl.constexpr, C: tl.constexpr):
    r = tl.program_id(0).to(tl.int64) * R + tl.arange(0, R)
    i, h = r // H, r % H
    ok = r < rows
    if mask_ptr is not None:
        ok &= tl.load(mask_ptr + i * ms, mask=ok, other=0).to(tl.int1)
    c = tl.arange(0, C)
    full = ok[:, None] & (c < D)[None, :]
    sp = s + i * ss + h * sh
    a = tl.load(sp, mask=ok, other=float("-inf"))
    b = tl.load(so + r, mask=ok, other=float("-inf"))
    top = tl.maximum(a, b)
    base = tl.where(top == float("-inf"), 0.0, top)
    wa, wb = tl.exp2(a - base), tl.exp2(b - base)
    vp = v + (i * vs + h * vh)[:, None] + c.to(tl.int64)[None, :] * vd
    x = tl.load(vp, mask=full & (wa > 0)[:, None], other=0.0)
    y = tl.load(vo + r[:, None] * D + c[None, :], mask=full & (wb > 0)[:, None], other=0.0)
    den = wa + wb
    out = (x * wa[:, None] + y * wb[:, None]) / tl.maximum(den, 1e-37)[:, None]
    tl.store(vp, out.to(x.dtype), mask=full)
    tl.store(sp, base + tl.log2(den), mask=ok)


def merge_state_in_place(v, s, v_other, s_other, mask=None):
    S, H, D = v.shape
    if S * H == 0:
        return None
    byte = None if mask is None else mask.view(torch.uint8)
    in_place[(triton.cdiv(S * H, 4),)](v, s, v_other.contiguous(), s_other.contiguous(), byte, S * H, H, *v.stride(), *s.stride(), 0 if mask is None else mask.stride(0), D, 4, triton.next_power_of_2(D))


class Level(enum.IntEnum):
    PLAIN = 0
    SPLIT = 1


@dataclass(frozen=True, slots=True)
class Shape:
    S: int
    N: int
    H: int
    D: int

    @property
    def rows(self) -> int:
        return self.S * self.H

    @classmethod
    def of(cls, v: torch.Tensor) -> "Shape":
        return cls(*v.shape)


@triton.jit
def stepped(v, s, vo, so, N, H, D: tl.constexpr, BN: tl.constexpr, C: tl.constexpr, LEVEL: tl.constexpr):
    tl.static_assert(LEVEL == 0)
    p = tl.program_id(0).to(tl.int64)
    i, h = p // H, p % H
    d = tl.arange(0, C)
    m = float("-inf")
    l = 0.0
    acc = tl.zeros([C], tl.float32)
    for st in range(0, N, BN):
        n = st + tl.arange(0, BN)
        x = tl.load(s + (i * N + n) * H + h, mask=n < N, other=float("-inf"))
        new = tl.maximum(m, tl.max(x, 0))
        base = tl.where(new == float("-inf"), 0.0, new)
        w = tl.exp2(x - base)
        y = tl.load(v + ((i * N + n) * H + h)[:, None] * D + d[None, :], mask=(w > 0)[:, None] & (d < D)[None, :], other=0.0)
        l = l * tl.exp2(m - base) + tl.sum(w, 0)
        acc = acc * tl.exp2(m - base) + tl.sum(w[:, None] * y, 0)
        m = new
    tl.store(vo + p * D + d, acc / tl.where(l == 0, 1.0, l), mask=d < D)
    tl.store(so + p, m + tl.log2(tl.where(l == 0, 1.0, l)))


@contextlib.contextmanager
def results(shape: Shape, like: torch.Tensor):
    v = like.new_empty((shape.S, shape.H, shape.D))
    s = like.new_empty((shape.S, shape.H), dtype=torch.float32)
    yield v, s


def merge_states(v, s, *, level: Level = Level.PLAIN):
    shape = Shape.of(v)
    with results(shape, v) as (vo, so), torch.no_grad():
        if shape.rows:
            stepped[(shape.rows,)](v.contiguous(), s.contiguous(), vo, so, shape.N, shape.H, shape.D, 4, triton.next_power_of_2(shape.D), int(level))
    return vo, so


@triton.jit
def bucket(v, s, indptr, order, vo, so, H, D: tl.constexpr, LONG: tl.constexpr, C: tl.constexpr):
    i = tl.load(order + tl.program_id(0)).to(tl.int64)
    h = tl.program_id(1)
    d = tl.arange(0, C)
    a = tl.load(indptr + i).to(tl.int64)
    b = tl.load(indptr + i + 1).to(tl.int64)
    n = a + tl.arange(0, LONG)
    x = tl.load(s + n * H + h, mask=n < b, other=float("-inf"))
    m = tl.max(x, 0)
    base = tl.where(m == float("-inf"), 0.0, m)
    w = tl.exp2(x - base)
    l = tl.sum(w, 0)
    y = tl.load(v + (n[:, None] * H + h) * D + d[None, :], mask=(w > 0)[:, None] & (d < D)[None, :], other=0.0).to(tl.float32)
    acc = tl.sum(y * w[:, None], 0)
    at = i * H + h
    tl.store(vo + at * D + d, acc / tl.where(l > 0, l, 1.0), mask=d < D)
    tl.store(so + at, base + tl.log2(l))


def variable_length_merge_states(v, s, indptr):
    M, H, D = v.shape
    lens = (indptr[1:] - indptr[:-1]).tolist()
    v, s, indptr = v.contiguous(), s.contiguous(), indptr.contiguous()
    vo = torch.empty((len(lens), H, D), dtype=v.dtype, device=v.device)
    so = torch.empty((len(lens), H), dtype=torch.float32, device=v.device)
    buckets = {}
    for i, n in enumerate(lens):
        buckets.setdefault(max(2, triton.next_power_of_2(n)), []).append(i)
    for long, who in sorted(buckets.items()):
        order = torch.tensor(who, dtype=torch.int32, device=v.device)
        if H:
            bucket[(len(who), H)](v, s, indptr, order, vo, so, H, D, long, triton.next_power_of_2(D))
    return vo, so
