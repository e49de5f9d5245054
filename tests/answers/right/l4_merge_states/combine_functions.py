"""tl.reduce and tl.associative_scan with a combine function on (m, l, o); a pair is joined first."""

import torch
import triton
import triton.language as tl


@triton.jit
def combine(ma, la, oa, mb, lb, ob):
    m = tl.maximum(ma, mb)
    fa = tl.where(ma == m, 1.0, tl.exp2(ma - m))
    fb = tl.where(mb == m, 1.0, tl.exp2(mb - m))
    return m, la * fa + lb * fb, oa * fa + ob * fb


@triton.jit
def finish(m, l, o):
    safe = tl.where(l == 0, 1.0, l)
    return o / safe, tl.where(l == 0, float("-inf"), m + tl.log2(safe))


@triton.jit
def pair(
    va,
    sa,
    vb,
    sb,
    out,
    sout,
    mask,
    rows,
    H,
    ms,
    vs,
    vh,
    vd,
    ss,
    sh,
    D: tl.constexpr,
    R: tl.constexpr,
    P: tl.constexpr,
    MASKED: tl.constexpr,
):
    r = tl.program_id(0).to(tl.int64) * R + tl.arange(0, R)
    i = r // H
    h = r % H
    ok = r < rows
    if MASKED:
        ok = ok & tl.load(mask + i * ms, mask=ok, other=False).to(tl.int1)
    c = tl.arange(0, P)
    ok2 = ok[:, None] & (c < D)[None, :]
    at = (i * vs + h * vh)[:, None] + (c * vd)[None, :]
    sat = i * ss + h * sh
    s = tl.join(tl.load(sa + sat, ok, other=float("-inf")), tl.load(sb + r, ok, other=float("-inf")))
    v = tl.join(tl.load(va + at, ok2, other=0.0), tl.load(vb + r[:, None] * D + c, ok2, other=0.0)).to(tl.float32)
    m = tl.broadcast_to(s[:, None, :], (R, P, 2))
    l = tl.where(m == float("-inf"), 0.0, 1.0)
    m, l, o = tl.reduce((m, l, tl.where(l > 0, v, 0.0)), 2, combine)
    o, t = finish(m, l, o)
    tl.debug_barrier()
    tl.store(out + at, o.to(out.dtype.element_ty), ok2)
    tl.store(sout + sat, tl.max(t, 1), ok)


def merge_state(v_a, s_a, v_b, s_b):
    S, H, D = v_a.shape
    v = torch.empty(v_a.shape, dtype=v_a.dtype, device=v_a.device)
    s = torch.empty(S, H, device=v_a.device)
    if S == 0:
        return v, s
    P = triton.next_power_of_2(D)
    R = max(1, 512 // P)
    pair[(triton.cdiv(S * H, R),)](
        v_a.contiguous(),
        s_a.contiguous(),
        v_b.contiguous(),
        s_b.contiguous(),
        v,
        s,
        None,
        S * H,
        H,
        0,
        *v.stride(),
        *s.stride(),
        D,
        R,
        P,
        False,
    )
    return v, s


def merge_state_in_place(v, s, v_other, s_other, mask=None):
    S, H, D = v.shape
    if S == 0:
        return
    P = triton.next_power_of_2(D)
    R = max(1, 512 // P)
    pair[(triton.cdiv(S * H, R),)](
        v,
        s,
        v_other.contiguous(),
        s_other.contiguous(),
        v,
        s,
        mask,
        S * H,
        H,
        0 if mask is None else mask.stride(0),
        *v.stride(),
        *s.stride(),
        D,
        R,
        P,
        mask is not None,
    )


@triton.jit
def gather(v, s, ptr, out, sout, N, H, D: tl.constexpr, P: tl.constexpr, B: tl.constexpr, SCAN: tl.constexpr):
    i = tl.program_id(1).to(tl.int64)
    h = tl.program_id(0)
    if SCAN:
        lo = tl.load(ptr + i).to(tl.int64)
        hi = tl.load(ptr + i + 1).to(tl.int64)
    else:
        lo = i * N
        hi = lo + N
    c = tl.arange(0, P)
    M = tl.full((P,), float("-inf"), tl.float32)
    L = tl.zeros((P,), tl.float32)
    O = tl.zeros((P,), tl.float32)
    for n0 in range(lo, hi, B):
        n = n0 + tl.arange(0, B)
        ok = n < hi
        sn = tl.load(s + n * H + h, ok, other=float("-inf"))
        some = (sn > float("-inf"))[:, None] & (c < D)[None, :]
        vn = tl.load(v + (n * H + h)[:, None] * D + c, some, other=0.0).to(tl.float32)
        m = tl.broadcast_to(sn[:, None], (B, P))
        l = tl.where(m > float("-inf"), 1.0, 0.0)
        if SCAN:
            m, l, o = tl.associative_scan((m, l, vn), 0, combine)
            last = (tl.arange(0, B) == B - 1)[:, None]
            m = tl.max(tl.where(last, m, float("-inf")), 0)
            l = tl.sum(tl.where(last, l, 0.0), 0)
            o = tl.sum(tl.where(last, o, 0.0), 0)
        else:
            m, l, o = tl.reduce((m, l, vn), 0, combine)
        M, L, O = combine(M, L, O, m, l, o)
    O, T = finish(M, L, O)
    row = i * H + h
    tl.store(out + row * D + c, O.to(out.dtype.element_ty), c < D)
    tl.store(sout + row, tl.max(T, 0))


def merge_states(v, s):
    S, N, H, D = v.shape
    out = v.new_empty(S, H, D)
    sout = torch.empty(S, H, device=v.device)
    if S:
        gather[(H, S)](v.contiguous(), s.contiguous(), None, out, sout, N, H, D, triton.next_power_of_2(D), 8, False)
    return out, sout


def variable_length_merge_states(v, s, indptr):
    _, H, D = v.shape
    S = indptr.numel() - 1
    out = v.new_empty(S, H, D)
    sout = torch.empty(S, H, device=v.device)
    if S:
        gather[(H, S)](
            v.contiguous(), s.contiguous(), indptr.contiguous(), out, sout, 0, H, D, triton.next_power_of_2(D), 4, True
        )
    return out, sout
