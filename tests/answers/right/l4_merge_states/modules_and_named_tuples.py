"""States as NamedTuples in a kernel's arguments, a torch.nn.Module that calls kernel.run, tl.gather for the bounds of runs."""

from typing import NamedTuple

import torch
import triton
import triton.language as tl


class State(NamedTuple):
    v: torch.Tensor
    s: torch.Tensor


@triton.jit
def load(state, rows, cols, mask, D: tl.constexpr):
    s = tl.load(state.s + rows, mask=mask, other=float("-inf"))
    v = tl.load(state.v + rows[:, None] * D + cols[None, :], mask=(s > float("-inf"))[:, None] & (cols < D)[None, :], other=0.0)
    return v.to(tl.float32), s


@triton.jit
def pair_of_states(a, b, out, n, D: tl.constexpr, R: tl.constexpr, C: tl.constexpr):
    rows = tl.program_id(0).to(tl.int64) * R + tl.arange(0, R)
    cols = tl.arange(0, C)
    mask = rows < n
    v1, s1 = load(a, rows, cols, mask, D)
    v2, s2 = load(b, rows, cols, mask, D)
    top = tl.maximum(s1, s2)
    base = tl.where(top == float("-inf"), 0.0, top)
    w1, w2 = tl.exp2(s1 - base), tl.exp2(s2 - base)
    den = w1 + w2
    safe = tl.where(den == 0.0, 1.0, den)
    v = (w1[:, None] * v1 + w2[:, None] * v2) / safe[:, None]
    tl.store(out.v + rows[:, None] * D + cols[None, :], v, mask=mask[:, None] & (cols < D)[None, :])
    tl.store(out.s + rows, base + tl.log2(den), mask=mask)


def merge_state(v_a, s_a, v_b, s_b):
    S, H, D = v_a.shape
    a = State(v_a.reshape(-1, D).contiguous(), s_a.flatten().contiguous())
    b = State(v_b.reshape(-1, D).contiguous(), s_b.flatten().contiguous())
    out = State(torch.empty(S, H, D, dtype=v_a.dtype, device=v_a.device), torch.empty(S, H, dtype=torch.float32, device=v_a.device))
    if out.s.nelement() == 0:
        return out
    pair_of_states[(triton.cdiv(S * H, 8),)](a, b, out, S * H, D=D, R=8, C=triton.next_power_of_2(D))
    return tuple(out)


@triton.jit
def where_true(v_ptr, s_ptr, vo_ptr, so_ptr, mask_ptr, H, D, vs, vh, vd, ss, sh, ms, MASKED: tl.constexpr, BH: tl.constexpr, BD: tl.constexpr):
    i = tl.program_id(0).to(tl.int64)
    if MASKED:
        keep = tl.load(mask_ptr + i * ms)
        if not keep:
            return
    h = (tl.program_id(1) * BH + tl.arange(0, BH)).to(tl.int64)
    d = tl.arange(0, BD).to(tl.int64)
    hm = h < H
    both = hm[:, None] & (d < D)[None, :]
    a = tl.load(s_ptr + i * ss + h * sh, mask=hm, other=float("-inf"))
    b = tl.load(so_ptr + i * H + h, mask=hm, other=float("-inf"))
    m = tl.maximum(a, b)
    m_ = tl.where(m == float("-inf"), 0.0, m)
    ea, eb = tl.exp2(a - m_), tl.exp2(b - m_)
    z = ea + eb
    zi = tl.where(z > 0.0, 1.0 / z, 0.0)
    x = tl.load(v_ptr + i * vs + h[:, None] * vh + d[None, :] * vd, mask=both & (ea > 0)[:, None], other=0.0).to(tl.float32)
    y = tl.load(vo_ptr + (i * H + h)[:, None] * D + d[None, :], mask=both & (eb > 0)[:, None], other=0.0).to(tl.float32)
    r = x * (ea * zi)[:, None] + y * (eb * zi)[:, None]
    tl.store(v_ptr + i * vs + h[:, None] * vh + d[None, :] * vd, r.to(v_ptr.dtype.element_ty), mask=both)
    tl.store(s_ptr + i * ss + h * sh, m_ + tl.log2(z), mask=hm)


def merge_state_in_place(v, s, v_other, s_other, mask=None):
    S, H, D = v.shape
    if S == 0 or H == 0:
        return
    masked = mask is not None
    where_true[(S, triton.cdiv(H, 4))](v, s, v_other.contiguous(), s_other.contiguous(), mask if masked else s, H, D, *v.stride(), *s.stride(), mask.stride(0) if masked else 0, masked, 4, triton.next_power_of_2(D))


class Merge(torch.nn.Module):
    def __init__(self, rows=8):
        super().__init__()
        self.rows = rows

    def forward(self, v, s):
        S, N, H, D = v.shape
        vo = torch.empty((S, H, D), dtype=v.dtype, device=v.device)
        so = torch.empty((S, H), dtype=torch.float32, device=v.device)
        if (count := S * H) > 0:
            step_by_step.run(v.contiguous(), s.contiguous(), vo, so, N, H, D, self.rows, triton.next_power_of_2(D), grid=(count,), warmup=False)
        return vo, so


@triton.jit(launch_metadata=lambda grid, kernel, args: {"name": "merge"})
def step_by_step(v, s, vo, so, N, H, D: tl.constexpr, BN: tl.constexpr, C: tl.constexpr):
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


merge_states = Merge()


@triton.jit
def gathered_runs(v, s, indptr, vo, so, S, H, D: tl.constexpr, BS: tl.constexpr, BN: tl.constexpr, C: tl.constexpr):
    i = tl.program_id(0)
    h = tl.program_id(1)
    ends = tl.load(indptr + tl.arange(0, BS), mask=tl.arange(0, BS) <= S, other=0).to(tl.int32)
    lo = tl.max(tl.where(tl.arange(0, BS) == i, ends, 0), 0)
    hi = tl.max(tl.gather(ends, (tl.zeros([BS], tl.int32) + i + 1), 0), 0)
    d = tl.arange(0, C)
    m = -float("inf")
    l = 0.0
    acc = tl.zeros([C], tl.float32)
    for n0 in tl.range(lo, hi, BN, loop_unroll_factor=2):
        n = n0 + tl.arange(0, BN)
        x = tl.load(s + n.to(tl.int64) * H + h, mask=n < hi, other=-float("inf"))
        new = tl.maximum(m, tl.max(x, 0))
        safe = new if new > -float("inf") else 0.0
        w = tl.exp2(x - safe)
        y = tl.load(v + (n.to(tl.int64) * H + h)[:, None] * D + d[None, :], mask=(w > 0)[:, None] & (d < D)[None, :], other=0.0)
        a = tl.exp2(m - safe)
        l = l * a + tl.sum(w, 0)
        acc = acc * a + tl.sum(w[:, None] * y.to(tl.float32), 0)
        m = new
    at = i.to(tl.int64) * H + h
    tl.store(vo + at * D + d, acc / tl.where(l > 0, l, 1.0), mask=d < D)
    tl.store(so + at, m + tl.log2(tl.where(l > 0, l, 1.0)))


def variable_length_merge_states(v, s, indptr):
    M, H, D = v.shape
    S = indptr.numel() - 1
    vo = torch.empty((S, H, D), dtype=v.dtype, device=v.device)
    so = torch.empty((S, H), dtype=torch.float32, device=v.device)
    if S and H:
        gathered_runs[(S, H)](v.contiguous(), s.contiguous(), indptr.contiguous(), vo, so, S, H, D, triton.next_power_of_2(S + 1), 4, triton.next_power_of_2(D))
    return vo, so
