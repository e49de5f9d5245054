"""torch.autograd.Function around the launches, pairs as stacks of two, tuples of pointers, the scale in a tensor."""

import torch
import triton
import triton.language as tl


@triton.jit
def ref(m):
    return tl.where(m == float("-inf"), 0.0, m)


@triton.jit
def part(q, k, v, out, scale_ptr, H, L, T, D, by, WIDE: tl.constexpr, KEYS: tl.constexpr):
    """out: (m, l, o). grid (N, H) in one axis, heads first."""
    m_out, l_out, o_out = out
    parts = tl.num_programs(0) // H
    h, n = (tl.program_id(0) // parts).to(tl.int64), tl.program_id(0) % parts
    scale = tl.load(scale_ptr)
    d = tl.arange(0, WIDE)
    x = tl.load(q + h * by[0] + d * by[1], mask=d < D, other=0.0).to(tl.float32)
    lanes = tl.arange(0, KEYS)
    m = tl.full([KEYS], float("-inf"), tl.float32)
    l = tl.zeros([KEYS], tl.float32)
    acc = tl.zeros([KEYS, WIDE], tl.float32)
    stop = min(L, (n + 1) * T)
    for first in range(n * T, stop, KEYS):
        j = (first + lanes).to(tl.int64)
        ok = (j < stop)[:, None] & (d < D)[None, :]
        kk = tl.load(k + j[:, None] * by[2] + h * by[3] + d[None, :] * by[4], mask=ok, other=0.0).to(tl.float32)
        vv = tl.load(v + j[:, None] * by[5] + h * by[6] + d[None, :] * by[7], mask=ok, other=0.0).to(tl.float32)
        s = tl.where(j < stop, tl.sum(x[None, :] * kk, 1) * scale, float("-inf"))
        new = tl.maximum(m, s)
        keep, w = tl.exp(m - ref(new)), tl.exp(s - ref(new))
        l = l * keep + w
        acc = acc * keep[:, None] + vv * w[:, None]
        m = new
    top = tl.max(m, 0)
    f = tl.exp(m - ref(top))
    total = tl.sum(l * f, 0)
    o = tl.sum(acc * f[:, None], 0) / tl.where(total > 0, total, 1.0)
    at = n * H + h
    tl.store(m_out + at, top)
    tl.store(l_out + at, total)
    tl.store(o_out + at.to(tl.int64) * D + d, o, mask=d < D)


class Partial(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, num_splits, scale):
        H, D = q.shape
        L = k.shape[0]
        out = [torch.empty(num_splits, H, *more, dtype=torch.float32, device=q.device) for more in ((), (), (D,))]
        scale = torch.full((1,), D**-0.5 if scale is None else scale, dtype=torch.float32, device=q.device)
        T = triton.cdiv(L, num_splits)
        part[(num_splits * H,)](
            q,
            k,
            v,
            tuple(out),
            scale,
            H,
            L,
            T,
            D,
            (*q.stride(), *k.stride(), *v.stride()),
            WIDE=triton.next_power_of_2(D),
            KEYS=16,
        )
        return tuple(out)

    @staticmethod
    def backward(ctx, *gradients):
        raise NotImplementedError


def partial_attention(q, k, v, num_splits, scale=None):
    return Partial.apply(q, k, v, num_splits, scale)


@triton.jit
def merge(m, l, o, out, N, H, D, WIDE: tl.constexpr, ALL: tl.constexpr):
    """Parts one after another, a program a head. out: (m, l, o), or (o,) alone if not ALL."""
    h = tl.program_id(0)
    d = tl.arange(0, WIDE)
    top = tl.full([], float("-inf"), tl.float32)
    for n in range(N):
        top = tl.maximum(top, tl.load(m + n * H + h))
    total = tl.full([], 0.0, tl.float32)
    acc = tl.zeros([WIDE], tl.float32)
    for n in range(N):
        m_n = tl.load(m + n * H + h)
        if m_n > float("-inf"):
            w = tl.load(l + n * H + h) * tl.exp(m_n - top)
            total += w
            acc += w * tl.load(o + (n * H + h).to(tl.int64) * D + d, mask=d < D, other=0.0)
    acc /= tl.where(total > 0, total, 1.0)
    tl.store(out[-1] + h * D + d, acc.to(out[-1].dtype.element_ty), mask=d < D)
    if ALL:
        tl.store(out[0] + h, top)
        tl.store(out[1] + h, total)


class Merge(torch.autograd.Function):
    @staticmethod
    def forward(ctx, m, l, o, every):
        N, H, D = o.shape
        given = [x.contiguous() for x in (m, l, o)]
        out = (torch.empty(H, device=m.device), torch.empty(H, device=m.device), torch.empty(H, D, device=m.device))
        out = out if every else out[2:]
        if H:
            merge[(H,)](*given, out, N, H, D, WIDE=triton.next_power_of_2(D), ALL=every)
        return (*out[:-1], out[-1].to(o.dtype))


def merge_pair(m_a, l_a, o_a, m_b, l_b, o_b):
    return Merge.apply(torch.stack((m_a, m_b)), torch.stack((l_a, l_b)), torch.stack((o_a, o_b)), True)


def merge_mlo(m, l, o):
    (out,) = Merge.apply(m, l, o, False)
    return out
