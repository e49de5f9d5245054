"""Autotuned in place (restore_value) and with atomics (reset_to_zero), annotations as text, a kept workspace."""

from __future__ import annotations

import logging
import os

import torch
import triton
import triton.language as tl

log = logging.getLogger(__name__)
PROGRAMS = torch.cuda.get_device_properties(0).multi_processor_count if torch.cuda.is_available() else 4
ROWS = int(os.environ.get("ROWS_A_PROGRAM", "4"))
_kept: dict[tuple, torch.Tensor] = {}


def kept(name: str, size: int, device: torch.device) -> torch.Tensor:
    """A float32 workspace that is made once and used again."""
    key = name, size, device
    if key not in _kept:
        log.debug("a workspace of %d", size)
        _kept[key] = torch.empty(size, dtype=torch.float32, device=device)
    return _kept[key]


@triton.jit
def finite(m):
    return tl.where(m == float("-inf"), 0.0, m)


@triton.autotune(
    configs=[triton.Config({"R": 2}, num_warps=1), triton.Config({"R": 8}, num_warps=4)],
    key=["D"],
    restore_value=["v", "s"],
)
@triton.jit(do_not_specialize=["rows"], repr=lambda specialization: "merge_into")
def merge_into(
    v: torch.Tensor,
    s: torch.Tensor,
    v_b,
    s_b,
    mask,
    rows: int,
    H,
    D: tl.constexpr,
    W: tl.constexpr,
    R: tl.constexpr,
    MASK: tl.constexpr,
):
    assert W >= D
    i = tl.program_id(0).to(tl.int64) * R + tl.arange(0, R)
    live = i < rows
    if MASK:
        live = live & tl.load(mask + i // H, mask=live, other=0).to(tl.int1)
    a = tl.load(s + i, mask=live, other=float("-inf"))
    b = tl.load(s_b + i, mask=live, other=float("-inf"))
    m = tl.maximum(a, b)
    wa, wb = tl.exp2(a - finite(m)), tl.exp2(b - finite(m))
    total = tl.where(m == float("-inf"), 1.0, wa + wb)
    d = tl.arange(0, W)
    at = i[:, None] * D + d[None, :]
    x = tl.load(v + at, mask=(wa > 0)[:, None] & (d < D)[None, :])
    y = tl.load(v_b + at, mask=(wb > 0)[:, None] & (d < D)[None, :])
    x = tl.where((wa > 0)[:, None], x.to(tl.float32) * wa[:, None], 0.0)
    y = tl.where((wb > 0)[:, None], y.to(tl.float32) * wb[:, None], 0.0)
    tl.store(v + at, ((x + y) / total[:, None]).to(v.dtype.element_ty), mask=live[:, None] & (d < D)[None, :])
    tl.store(s + i, m + tl.log2(total), mask=live)


def merge_state_in_place(
    v: torch.Tensor, s: torch.Tensor, v_other: torch.Tensor, s_other: torch.Tensor, mask: torch.Tensor | None = None
) -> None:
    S, H, D = v.shape
    if S * H == 0:
        return None
    mine_v, mine_s = v.contiguous(), s.contiguous()
    flags = None if mask is None else mask.contiguous().view(torch.int8)
    merge_into[lambda meta: (triton.cdiv(S * H, meta["R"]),)](
        mine_v,
        mine_s,
        v_other.contiguous(),
        s_other.contiguous(),
        flags,
        S * H,
        H,
        D=D,
        W=triton.next_power_of_2(D),
        MASK=mask is not None,
    )
    if mine_v.data_ptr() != v.data_ptr():
        v.copy_(mine_v)
    if mine_s.data_ptr() != s.data_ptr():
        s.copy_(mine_s)
    return None


@triton.jit
def pair(v_a, s_a, v_b, s_b, v, s, rows, D: tl.constexpr, W: tl.constexpr):
    """Persistent: rows in turn."""
    d = tl.arange(0, W)
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        i = tl.cast(row, tl.int64)
        a, b = tl.load(s_a + i), tl.load(s_b + i)
        m = tl.maximum(a, b)
        wa, wb = tl.exp2(a - finite(m)), tl.exp2(b - finite(m))
        total = tl.where(m == float("-inf"), 1.0, wa + wb)
        x = tl.load(v_a + i * D + d, mask=(d < D) & (wa > 0), other=0.0).to(tl.float32)
        y = tl.load(v_b + i * D + d, mask=(d < D) & (wb > 0), other=0.0).to(tl.float32)
        tl.store(v + i * D + d, ((x * wa + y * wb) / total).to(v.dtype.element_ty), mask=d < D)
        tl.store(s + i, m + tl.log2(total))


def merge_state(
    v_a: torch.Tensor, s_a: torch.Tensor, v_b: torch.Tensor, s_b: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    S, H, D = v_a.shape
    v, s = (
        torch.empty((S, H, D), dtype=v_a.dtype, device=v_a.device),
        torch.empty((S, H), dtype=torch.float32, device=v_a.device),
    )
    if S * H:
        pair[(min(PROGRAMS, S * H),)](
            v_a.contiguous(),
            s_a.contiguous(),
            v_b.contiguous(),
            s_b.contiguous(),
            v,
            s,
            S * H,
            D,
            triton.next_power_of_2(D),
        )
    return v, s


@triton.jit
def run_tops(s, indptr, tops, H):
    """tops[i, h]: the largest s of run i."""
    i, h = tl.program_id(0), tl.program_id(1)
    top = float("-inf")
    for n in range(tl.load(indptr + i), tl.load(indptr + i + 1)):
        top = tl.maximum(top, tl.load(s + n.to(tl.int64) * H + h))
    tl.store(tops + i * H + h, top)


@triton.autotune(configs=[triton.Config({"B": 8}), triton.Config({"B": 16})], key=["D"], reset_to_zero=["acc", "total"])
@triton.jit
def pour(v, s, indptr, tops, acc, total, H, D, W: tl.constexpr, B: tl.constexpr, PER: tl.constexpr):
    """grid (splits of a run, S, H): each pours its share of the run in."""
    i, h = tl.program_id(1), tl.program_id(2)
    begin, end = tl.load(indptr + i).to(tl.int64), tl.load(indptr + i + 1).to(tl.int64)
    share = tl.cdiv(end - begin, PER)
    first = begin + tl.program_id(0) * share
    last = tl.minimum(first + share, end)
    top = finite(tl.load(tops + i * H + h))
    d = tl.arange(0, W)
    sums = tl.zeros([W], tl.float32)
    weight = tl.zeros([B], tl.float32)
    while first < last:
        n = first + tl.arange(0, B)
        w = tl.exp2(tl.load(s + n * H + h, mask=n < last, other=float("-inf")) - top)
        x = tl.load(v + (n * H + h)[:, None] * D + d[None, :], mask=(w > 0)[:, None] & (d < D)[None, :], other=0.0)
        sums += tl.sum(x.to(tl.float32) * w[:, None], 0)
        weight += w
        first += B
    tl.atomic_add(acc + (i * H + h).to(tl.int64) * D + d, sums, mask=d < D, sem="relaxed")
    tl.atomic_add(total + i * H + h, tl.sum(weight, 0), sem="relaxed")


@triton.jit
def finish(tops, acc, total, v, s, count, D, B: tl.constexpr):
    e = tl.program_id(0).to(tl.int64) * B + tl.arange(0, B)
    row = e // D
    t = tl.load(total + row, mask=e < count, other=1.0)
    t = tl.where(t == 0.0, 1.0, t)
    tl.store(v + e, (tl.load(acc + e, mask=e < count, other=0.0) / t).to(v.dtype.element_ty), mask=e < count)
    tl.store(s + row, tl.load(tops + row, mask=e < count, other=0.0) + tl.log2(t), mask=(e < count) & (e % D == 0))


def variable_length_merge_states(
    v: torch.Tensor, s: torch.Tensor, indptr: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    S, (_, H, D) = indptr.shape[0] - 1, v.shape
    out_v, out_s = (
        torch.empty((S, H, D), dtype=v.dtype, device=v.device),
        torch.empty((S, H), dtype=torch.float32, device=v.device),
    )
    if S * H:
        v, s, indptr = v.contiguous(), s.contiguous(), indptr.contiguous()
        tops = kept("tops", S * H, v.device)
        acc, total = kept("acc", S * H * D, v.device).zero_(), kept("total", S * H, v.device).fill_(0)
        run_tops[(S, H)](s, indptr, tops, H)
        pour[(2, S, H)](v, s, indptr, tops, acc, total, H, D, W=triton.next_power_of_2(D), PER=2)
        finish[(triton.cdiv(S * H * D, 256),)](tops, acc, total, out_v, out_s, S * H * D, D, 256)
    return out_v, out_s


@triton.jit
def many(v, s, out_v, out_s, S, N, H, D: tl.constexpr, W: tl.constexpr, B: tl.constexpr):
    """A program a position: all heads in turn."""
    i = tl.program_id(0).to(tl.int64)
    d = tl.arange(0, W)
    lane = tl.arange(0, B)
    for h in range(H):
        m = tl.full([], float("-inf"), tl.float32)
        total = tl.full([], 0.0, tl.float32)
        acc = tl.zeros([W], tl.float32)
        for first in range(0, N, B):
            n = first + lane
            at = (i * N + n) * H + h
            s_n = tl.load(s + at, mask=n < N, other=float("-inf"))
            new = tl.maximum(m, tl.max(s_n, 0))
            w = tl.exp2(s_n - finite(new))
            x = tl.load(v + at[:, None] * D + d[None, :], mask=(w > 0)[:, None] & (d < D)[None, :], other=0.0)
            keep = tl.exp2(m - finite(new))
            total = total * keep + tl.sum(w, 0)
            acc = acc * keep + tl.sum(w[:, None] * x.to(tl.float32), 0)
            m = new
        total = tl.where(m == float("-inf"), 1.0, total)
        tl.store(out_v + (i * H + h) * D + d, (acc / total).to(out_v.dtype.element_ty), mask=d < D)
        tl.store(out_s + i * H + h, m + tl.log2(total))


def merge_states(v: torch.Tensor, s: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    S, N, H, D = v.shape
    out = (
        torch.empty((S, H, D), dtype=v.dtype, device=v.device),
        torch.empty((S, H), dtype=torch.float32, device=v.device),
    )
    if S:
        many[(S,)](
            v.contiguous(), s.contiguous(), *out, S, N, H, D, W=triton.next_power_of_2(D), B=ROWS * 4, num_warps=2
        )
    return out
