"""Positions by nonzero(), the longest run as a constant, tl.join and tl.split, the bits of -inf, options in a cache."""

import functools
import operator

import triton
import triton.language as tl
from torch import Tensor, empty, empty_like, float32


@functools.lru_cache
def shape_of(D: int, rows: int = 2048):
    wide = triton.next_power_of_2(D)
    return {"W": wide, "R": max(1, min(16, rows // wide)), "num_warps": 2}


@triton.jit
def is_empty(s):
    return s.to(tl.int32, bitcast=True) == -8388608  # the bits of -inf


@triton.jit
def two_weights(s_a, s_b):
    both = tl.join(s_a, s_b)
    m = tl.max(both, axis=1)
    w = tl.exp2(both - tl.where(is_empty(m), 0.0, m)[:, None])
    total = tl.sum(w, axis=1)
    total = tl.where(total == 0.0, 1.0, total)
    a, b = tl.split(w / total[:, None])
    return a, b, m + tl.log2(total)


@triton.jit
def kernel(
    v_a,
    s_a,
    v_b,
    s_b,
    v,
    s,
    chosen,
    n,
    H,
    by_a,
    by_b,
    by,
    D: tl.constexpr,
    W: tl.constexpr,
    R: tl.constexpr,
    CHOSEN: tl.constexpr,
):
    """by…: (v's three strides, s's two). chosen: position numbers, or None."""
    row = tl.program_id(0) * R + tl.arange(0, R)
    live = row < n * H
    i, h = row // H, row % H
    if CHOSEN:
        i = tl.load(chosen + i, mask=live, other=0)
    i, h = i.to(tl.int64), h.to(tl.int64)
    a, b, merged = two_weights(
        tl.load(s_a + i * by_a[3] + h * by_a[4], mask=live, other=float("-inf")),
        tl.load(s_b + i * by_b[3] + h * by_b[4], mask=live, other=float("-inf")),
    )
    d = tl.arange(0, W)
    x = tl.load(v_a + (i * by_a[0] + h * by_a[1])[:, None] + d * by_a[2], mask=(a > 0)[:, None] & (d < D), other=0.0)
    y = tl.load(v_b + (i * by_b[0] + h * by_b[1])[:, None] + d * by_b[2], mask=(b > 0)[:, None] & (d < D), other=0.0)
    o = x.to(tl.float32) * a[:, None] + y.to(tl.float32) * b[:, None]
    tl.store(v + (i * by[0] + h * by[1])[:, None] + d * by[2], o.to(v.dtype.element_ty), mask=live[:, None] & (d < D))
    tl.store(s + i * by[3] + h * by[4], merged, mask=live)


def launch(a, b, out, chosen=None):
    (S, H, D) = a[0].shape
    n = S if chosen is None else len(chosen)
    if not (n and H):
        return
    options = shape_of(D)
    strides = [functools.reduce(operator.add, (x.stride() for x in pair)) for pair in (a, b, out)]
    kernel[(triton.cdiv(n * H, options["R"]),)](
        *a, *b, *out, chosen, n, H, *strides, D=D, CHOSEN=chosen is not None, **options
    )


def merge_state(v_a: Tensor, s_a: Tensor, v_b: Tensor, s_b: Tensor):
    out = empty_like(v_a), empty_like(s_a, dtype=float32)
    if 0 in v_a.stride() or 0 in s_a.stride():
        out = v_a.new_empty(v_a.shape), s_a.new_empty(s_a.shape)
    launch((v_a, s_a), (v_b, s_b), out)
    return out


def merge_state_in_place(v: Tensor, s: Tensor, v_other: Tensor, s_other: Tensor, mask: Tensor | None = None) -> None:
    if mask is None or mask.all():
        launch((v, s), (v_other, s_other), (v, s))
    elif mask.any():
        launch((v, s), (v_other, s_other), (v, s), mask.nonzero().squeeze(1).int())


@triton.jit
def one_tile(v, s, first, last, H, D: tl.constexpr, NB: tl.constexpr, C: tl.constexpr, h, d):
    """States first to last - 1 in one tile of NB."""
    n = first + tl.arange(0, NB)
    at = n.to(tl.int64) * H + h
    x = tl.load(s + at, mask=n < last, other=float("-inf"))
    m = tl.max(x, 0)
    w = tl.exp2(x - tl.where(is_empty(m), 0.0, m))
    y = tl.load(v + at[:, None] * D + d[None, :], mask=(w > 0)[:, None] & (d < D)[None, :], other=0.0)
    total = tl.sum(w, 0)
    total = tl.where(total == 0, 1.0, total)
    return tl.sum(y.to(tl.float32) * w[:, None], 0) / total, m + tl.log2(total)


@triton.jit
def tile_kernel(v, s, indptr, v_out, s_out, N, H, D: tl.constexpr, NB: tl.constexpr, C: tl.constexpr):
    """grid (H, S, blocks of C columns); runs of N states where there is no indptr."""
    h, i = tl.program_id(0), tl.program_id(1).to(tl.int64)
    d = tl.program_id(2) * C + tl.arange(0, C)
    if indptr is None:
        first, last = i * N, i * N + N
    else:
        first, last = tl.load(indptr + i).to(tl.int64), tl.load(indptr + i + 1).to(tl.int64)
    o, merged = one_tile(v, s, first, last, H, D, NB, C, h, d)
    tl.store(v_out + (i * H + h) * D + d, o.to(v_out.dtype.element_ty), mask=d < D)
    if tl.program_id(2) == 0:
        tl.store(s_out + i * H + h, merged)


def in_tiles(v, s, indptr, S, H, D, longest):
    out = empty((S, H, D), dtype=v.dtype, device=v.device), empty((S, H), dtype=float32, device=v.device)
    if S and H:
        NB = triton.next_power_of_2(max(1, longest))
        C = max(1, min(triton.next_power_of_2(D), 16384 // NB))
        tile_kernel[(H, S, triton.cdiv(D, C))](
            v.contiguous(), s.contiguous(), indptr, *out, longest, H, D=D, NB=NB, C=C
        )
    return out


def merge_states(v: Tensor, s: Tensor):
    S, N, H, D = v.shape
    return in_tiles(v, s, None, S, H, D, N)


def variable_length_merge_states(v: Tensor, s: Tensor, indptr: Tensor):
    lengths = indptr.diff()
    longest = int(lengths.max()) if lengths.numel() else 0
    return in_tiles(v, s, indptr.contiguous(), len(lengths), *v.shape[1:], longest)
