"""A sigmoid for weights, a copy written back, splits that are merged, and atomics into a workspace."""

import torch
import triton
import triton.language as tl

LN2: tl.constexpr = tl.constexpr(0.6931471805599453)


@triton.jit
def softplus2(x):
    return tl.where(x > 0, x, 0.0) + tl.log2(1.0 + tl.exp2(-tl.abs(x)))


@triton.jit
def k_sig(va, sa, vb, sb, vo, so, rows, D: tl.constexpr, BR: tl.constexpr, BD: tl.constexpr):
    r = tl.program_id(0).to(tl.int64) * BR + tl.arange(0, BR)
    d = tl.arange(0, BD)
    ok = r < rows
    a = tl.load(sa + r, mask=ok, other=0.0)
    b = tl.load(sb + r, mask=ok, other=0.0)
    no_a = a == float("-inf")
    no_b = b == float("-inf")
    x = tl.where(no_a | no_b, 0.0, a - b)
    wa = tl.sigmoid(x * LN2)
    wa = tl.where(no_a, 0.0, tl.where(no_b, 1.0, wa))
    wb = tl.sigmoid(-x * LN2)
    wb = tl.where(no_b, 0.0, tl.where(no_a, 1.0, wb))
    s = tl.where(no_a, b, tl.where(no_b, a, b + softplus2(x)))
    okk = ok[:, None] & (d < D)[None, :]
    at = r[:, None] * D + d[None, :]
    va_ = tl.load(va + at, mask=okk & ~no_a[:, None], other=0.0).to(tl.float32)
    vb_ = tl.load(vb + at, mask=okk & ~no_b[:, None], other=0.0).to(tl.float32)
    tl.store(vo + at, va_ * wa[:, None] + vb_ * wb[:, None], mask=okk)
    tl.store(so + r, s, mask=ok)


def merge_state(v_a, s_a, v_b, s_b):
    S, H, D = v_a.shape
    v = torch.empty((S, H, D), dtype=v_a.dtype, device=v_a.device)
    s = torch.empty((S, H), dtype=torch.float32, device=v_a.device)
    if S:
        k_sig[(triton.cdiv(S * H, 8),)](
            v_a.contiguous(),
            s_a.contiguous(),
            v_b.contiguous(),
            s_b.contiguous(),
            v,
            s,
            S * H,
            D=D,
            BR=8,
            BD=triton.next_power_of_2(D),
        )
    return v, s


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
def k_cb(v, s, vo, so, mask, v_new, s_new, rows, H, D: tl.constexpr, BR: tl.constexpr, BD: tl.constexpr):
    r = tl.program_id(0).to(tl.int64) * BR + tl.arange(0, BR)
    d = tl.arange(0, BD)
    ok = r < rows
    on = tl.load(mask + r // H, mask=ok, other=0) != 0
    okk = ok[:, None] & (d < D)[None, :]
    at = r[:, None] * D + d[None, :]
    a = tl.load(s + r, mask=ok, other=float("-inf"))
    b = tl.load(so + r, mask=ok, other=float("-inf"))
    x = tl.load(v + at, mask=okk, other=0.0)
    y = tl.load(vo + at, mask=okk, other=0.0)
    z, t = merge_two(x, a, y, b)
    tl.store(v_new + at, tl.where(on[:, None], z, x.to(tl.float32)).to(v.dtype.element_ty), mask=okk)
    tl.store(s_new + r, tl.where(on, t, a), mask=ok)


def merge_state_in_place(v, s, v_other, s_other, mask=None):
    S, H, D = v.shape
    if v.numel() == 0:
        return
    if mask is None:
        mask = torch.ones(S, dtype=torch.bool, device=v.device)
    mask = mask.contiguous().to(torch.int32)
    v_new = torch.empty((S, H, D), dtype=v.dtype, device=v.device)
    s_new = torch.empty((S, H), dtype=torch.float32, device=v.device)
    k_cb[(triton.cdiv(S * H, 4),)](
        v.contiguous(),
        s.contiguous(),
        v_other.contiguous(),
        s_other.contiguous(),
        mask,
        v_new,
        s_new,
        S * H,
        H,
        D,
        4,
        triton.next_power_of_2(D),
    )
    v.copy_(v_new)
    s.copy_(s_new)


@triton.jit
def k_part(v, s, wv, ws, N, PER, H, D: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr):
    i = tl.program_id(0).to(tl.int64)
    h = tl.program_id(1)
    part = tl.program_id(2)
    parts = tl.num_programs(2)
    d = tl.arange(0, BD)
    n_ = tl.arange(0, BN)
    m = tl.full([], float("-inf"), tl.float32)
    l = tl.full([], 0.0, tl.float32)
    acc = tl.zeros([BD], tl.float32)
    last = tl.minimum(part * PER + PER, N)
    for start in range(part * PER, last, BN):
        n = start + n_
        row = (i * N + n) * H + h
        x = tl.load(s + row, mask=n < last, other=float("-inf"))
        new = tl.maximum(m, tl.max(x, 0))
        z = tl.where(new == float("-inf"), 0.0, new)
        w = tl.exp2(x - z)
        y = tl.load(v + row[:, None] * D + d[None, :], mask=(w > 0)[:, None] & (d < D)[None, :], other=0.0)
        c = tl.exp2(m - z)
        acc = acc * c + tl.sum(w[:, None] * y.to(tl.float32), 0)
        l = l * c + tl.sum(w, 0)
        m = new
    at = (i * parts + part) * H + h
    safe = tl.where(l > 0, l, 1.0)
    tl.store(wv + at * D + d, acc / safe, mask=d < D)
    tl.store(ws + at, m + tl.log2(safe))


def merge_states(v, s):
    S, N, H, D = v.shape
    parts = max(1, triton.cdiv(N, 256))
    dtypes = [v.dtype] if parts == 1 else [torch.float32, v.dtype]
    for dtype in dtypes:
        count = v.shape[1]
        out = torch.empty((S, parts, H, D), dtype=dtype, device=v.device)
        lse = torch.empty((S, parts, H), dtype=torch.float32, device=v.device)
        if S:
            k_part[(S, H, parts)](
                v.contiguous(), s.contiguous(), out, lse, count, triton.cdiv(count, parts), H, D, 8,
                triton.next_power_of_2(D),
            )  # fmt: skip
        v, s, parts = out, lse, 1
    return v.view(S, H, D), s.view(S, H)


@triton.jit
def owner(ptr, S, row):
    lo = 0
    hi = S
    while lo < hi:
        mid = (lo + hi) // 2
        if tl.load(ptr + mid + 1) > row:
            hi = mid
        else:
            lo = mid + 1
    return lo


@triton.jit
def k_max(s, ptr, top, S, H, BH: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    h = tl.arange(0, BH)
    if row >= tl.load(ptr) and row < tl.load(ptr + S):
        i = owner(ptr, S, row)
        tl.atomic_max(top + i * H + h, tl.load(s + row * H + h, mask=h < H, other=float("-inf")), mask=h < H)


@triton.jit
def k_add(v, s, ptr, top, tot, acc, S, H, D, BH: tl.constexpr, BD: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    h = tl.arange(0, BH)
    d = tl.arange(0, BD)
    if row >= tl.load(ptr) and row < tl.load(ptr + S):
        i = owner(ptr, S, row)
        x = tl.load(s + row * H + h, mask=h < H, other=float("-inf"))
        m = tl.load(top + i * H + h, mask=h < H, other=0.0)
        w = tl.where(x > float("-inf"), tl.exp2(x - m), 0.0)
        live = (w > 0)[:, None] & (d < D)[None, :]
        y = tl.load(v + (row * H + h)[:, None] * D + d, mask=live, other=0.0).to(tl.float32)
        tl.atomic_add(tot + i * H + h, w, mask=w > 0)
        tl.atomic_add(acc + (i * H + h)[:, None] * D + d, y * w[:, None], mask=live)


@triton.jit
def k_end(top, tot, acc, vo, so, H, D, BD: tl.constexpr):
    r = tl.program_id(0).to(tl.int64)
    d = tl.arange(0, BD)
    t = tl.load(tot + r)
    safe = tl.where(t > 0, t, 1.0)
    tl.store(vo + r * D + d, tl.load(acc + r * D + d, mask=d < D, other=0.0) / safe, mask=d < D)
    tl.store(so + r, tl.load(top + r) + tl.log2(safe))


def variable_length_merge_states(v, s, indptr):
    M, H, D = v.shape
    S = len(indptr) - 1
    v, s, indptr = v.contiguous(), s.contiguous(), indptr.to(torch.int64).contiguous()
    top = torch.full((S, H), float("-inf"), device=v.device)
    tot = torch.zeros((S, H), device=v.device)
    acc = torch.zeros((S, H, D), device=v.device)
    out = torch.empty((S, H, D), dtype=v.dtype, device=v.device)
    lse = torch.empty((S, H), device=v.device)
    if S == 0:
        return out, lse
    BH, BD = triton.next_power_of_2(H), triton.next_power_of_2(D)
    if M:
        k_max[(M,)](s, indptr, top, S, H, BH)
        k_add[(M,)](v, s, indptr, top, tot, acc, S, H, D, BH, BD)
    k_end[(S * H,)](top, tot, acc, out, lse, H, D, BD)
    return out, lse
