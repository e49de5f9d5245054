"""States merged one after another, s rounded after each; a return for masked positions; one program for all runs."""

import torch
import triton
import triton.language as tl


@triton.jit
def k_persist(va, sa, vb, sb, vo, so, rows, D: tl.constexpr, BD: tl.constexpr):
    d = tl.arange(0, BD)
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        r64 = tl.cast(row, tl.int64)
        a = tl.load(sa + r64)
        b = tl.load(sb + r64)
        m = tl.maximum(a, b)
        base = m
        if m == float("-inf"):
            base = 0.0
        wa = tl.exp2(a - base)
        wb = tl.exp2(b - base)
        xa = tl.load(va + r64 * D + d, mask=(d < D) & (wa > 0), other=0.0).to(tl.float32)
        xb = tl.load(vb + r64 * D + d, mask=(d < D) & (wb > 0), other=0.0).to(tl.float32)
        t = wa + wb
        inv = tl.where(t > 0, 1.0 / tl.where(t > 0, t, 1.0), 0.0)
        tl.store(vo + r64 * D + d, (xa * wa + xb * wb) * inv, mask=d < D)
        tl.store(so + r64, m + tl.where(t > 0, tl.log2(tl.where(t > 0, t, 1.0)), 0.0))


def merge_state(v_a, s_a, v_b, s_b):
    S, H, D = v_a.shape
    v_a, s_a, v_b, s_b = [x.contiguous() for x in (v_a, s_a, v_b, s_b)]
    v = torch.empty_like(v_a)
    s = torch.empty_like(s_a)
    if v.numel():
        k_persist[(min(S * H, 6),)](v_a, s_a, v_b, s_b, v, s, S * H, D, triton.next_power_of_2(D), num_warps=2)
    return v, s


@triton.jit
def k_ip(
    v,
    s,
    vo,
    so,
    mask,
    H,
    D,
    v0,
    v1,
    v2,
    s0,
    s1,
    w0,
    w1,
    w2,
    t0,
    t1,
    m0,
    HAS: tl.constexpr,
    BH: tl.constexpr,
    BD: tl.constexpr,
):
    i = tl.program_id(0).to(tl.int64)
    on = tl.load(mask + i * m0) if HAS else 1
    if on == 0:
        return
    d = tl.arange(0, BD).to(tl.int64)
    for h0 in range(0, H, BH):
        for j in tl.static_range(BH):
            h = (h0 + j).to(tl.int64)
            live = h < H
            a = tl.load(s + i * s0 + h * s1, mask=live, other=0.0)
            b = tl.load(so + i * t0 + h * t1, mask=live, other=0.0)
            top = tl.maximum(a, b)
            top = tl.where(top == float("-inf"), 0.0, top)
            wa = tl.exp2(a - top)
            wb = tl.exp2(b - top)
            t = wa + wb
            ok = (d < D) & live
            p = v + i * v0 + h * v1 + d * v2
            x = tl.load(p, mask=ok, other=0.0).to(tl.float32)
            y = tl.load(vo + i * w0 + h * w1 + d * w2, mask=ok, other=0.0).to(tl.float32)
            x = tl.where(wa > 0, x * wa, 0.0) + tl.where(wb > 0, y * wb, 0.0)
            tl.store(p, (x / tl.where(t > 0, t, 1.0)).to(v.dtype.element_ty), mask=ok)
            tl.store(s + i * s0 + h * s1, top + tl.log2(t), mask=live)


def merge_state_in_place(v, s, v_other, s_other, mask=None):
    S, H, D = v.shape
    if S == 0 or H == 0:
        return
    k_ip[(S,)](
        v,
        s,
        v_other,
        s_other,
        mask,
        H,
        D,
        *v.stride(),
        *s.stride(),
        *v_other.stride(),
        *s_other.stride(),
        mask.stride(0) if mask is not None else 0,
        mask is not None,
        2,
        triton.next_power_of_2(D),
        num_warps=1,
    )


@triton.jit
def k_while(v, s, vo, so, N, H, D, v0, v1, v2, v3, s0, s1, s2, BD: tl.constexpr):
    pid = tl.program_id(0)
    i = (pid // H).to(tl.int64)
    h = (pid % H).to(tl.int64)
    d = tl.arange(0, BD).to(tl.int64)
    ps = s + i * s0 + h * s2
    pv = v + i * v0 + h * v2 + d * v3
    acc = tl.zeros([BD], tl.float32)
    lse = tl.full([], float("-inf"), tl.float32)
    n = 0
    while n < N:
        x = tl.load(ps)
        if x > float("-inf"):
            hi = tl.maximum(lse, x)
            new = hi + tl.log2(tl.exp2(lse - hi) + tl.exp2(x - hi))
            acc = acc * tl.exp2(lse - new) + tl.load(pv, mask=d < D, other=0.0).to(tl.float32) * tl.exp2(x - new)
            lse = new
        ps += s1
        pv += v1
        n += 1
    tl.store(vo + pid.to(tl.int64) * D + d, acc.to(vo.dtype.element_ty), mask=d < D)
    tl.store(so + pid, lse)


def merge_states(v, s):
    S, N, H, D = v.shape
    out = torch.empty(S, H, D, dtype=v.dtype, device=v.device)
    lse = torch.empty(S, H, dtype=torch.float32, device=v.device)
    if S:
        k_while[(S * H,)](v, s, out, lse, N, H, D, *v.stride(), *s.stride(), BD=triton.next_power_of_2(D))
    return out, lse


@triton.jit
def merge_two(v_a, s_a, v_b, s_b):
    """Merges v_a[R, D], s_a[R] with v_b, s_b in float32. The larger weight is 2^0 = 1, so nothing overflows."""
    m = tl.maximum(s_a, s_b)
    shift = tl.where(m == float("-inf"), 0.0, m)  # (-inf) - (-inf) is NaN, (-inf) - 0 is not
    w_a = tl.exp2(s_a - shift)
    w_b = tl.exp2(s_b - shift)
    v_a = tl.where(w_a[:, None] > 0, v_a.to(tl.float32), 0.0)  # 0 * NaN is NaN, so a payload of weight 0 is dropped
    v_b = tl.where(w_b[:, None] > 0, v_b.to(tl.float32), 0.0)
    total = tl.where(m == float("-inf"), 1.0, w_a + w_b)
    v = v_a * (w_a / total)[:, None] + v_b * (w_b / total)[:, None]
    return v, m + tl.log2(total)


@triton.jit
def k_seq(v, s, ptr, vo, so, S, H, D: tl.constexpr, BH: tl.constexpr, BD: tl.constexpr):
    h = tl.arange(0, BH)
    d = tl.arange(0, BD)
    okh = h < H
    ok = okh[:, None] & (d < D)[None, :]
    begin = tl.load(ptr).to(tl.int64)
    for i in range(S):
        end = tl.load(ptr + i + 1).to(tl.int64)
        lse = tl.full([BH], float("-inf"), tl.float32)
        acc = tl.zeros([BH, BD], tl.float32)
        row = begin
        while row < end:
            x = tl.load(s + row * H + h, mask=okh, other=float("-inf"))
            y = tl.load(v + (row * H + h)[:, None] * D + d[None, :], mask=ok, other=0.0)
            acc, lse = merge_two(acc, lse, y, x)
            row += 1
        o = i * H + h
        tl.store(vo + o[:, None] * D + d[None, :], acc, mask=ok)
        tl.store(so + o, lse, mask=okh)
        begin = end


def variable_length_merge_states(v, s, indptr):
    S = indptr.numel() - 1
    M, H, D = v.shape
    out = torch.empty((S, H, D), dtype=v.dtype, device=v.device)
    lse = torch.empty((S, H), dtype=torch.float32, device=v.device)
    if S:
        k_seq[(1,)](
            v.contiguous(),
            s.contiguous(),
            indptr.contiguous(),
            out,
            lse,
            S,
            H,
            D,
            triton.next_power_of_2(H),
            triton.next_power_of_2(D),
        )
    return out, lse
