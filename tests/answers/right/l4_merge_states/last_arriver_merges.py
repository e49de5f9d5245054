"""Tensor descriptors; runs split in two, merged by whichever program counts up last; many states as equal runs."""

import torch
import triton
import triton.language as tl


@triton.jit
def two(va, sa, vb, sb, v, s, rows, D: tl.constexpr, R: tl.constexpr, P: tl.constexpr):
    first = tl.program_id(0) * R
    da = tl.make_tensor_descriptor(va, [rows, D], [D, 1], [R, P])
    db = tl.make_tensor_descriptor(vb, [rows, D], [D, 1], [R, P])
    do = tl.make_tensor_descriptor(v, [rows, D], [D, 1], [R, P])
    r = first + tl.arange(0, R)
    a = tl.load(sa + r, mask=r < rows, other=float("-inf"))
    b = tl.load(sb + r, mask=r < rows, other=float("-inf"))
    m = tl.maximum(a, b)
    k = tl.where(m == float("-inf"), 0.0, m)
    p, q = tl.exp2(a - k), tl.exp2(b - k)
    z = tl.where(p + q == 0, 1.0, p + q)
    x = da.load([first, 0]).to(tl.float32)
    y = db.load([first, 0]).to(tl.float32)
    o = tl.where(p[:, None] > 0, x, 0.0) * (p / z)[:, None] + tl.where(q[:, None] > 0, y, 0.0) * (q / z)[:, None]
    do.store([first, 0], o.to(v.dtype.element_ty))
    tl.store(s + r, m + tl.log2(z), mask=r < rows)


@triton.jit
def two_plain(va, sa, vb, sb, v, s, rows, D: tl.constexpr, R: tl.constexpr, P: tl.constexpr):
    r = tl.program_id(0).to(tl.int64) * R + tl.arange(0, R)
    c = tl.arange(0, P)
    a = tl.load(sa + r, mask=r < rows, other=float("-inf"))
    b = tl.load(sb + r, mask=r < rows, other=float("-inf"))
    m = tl.maximum(a, b)
    k = tl.where(m == float("-inf"), 0.0, m)
    p, q = tl.exp2(a - k), tl.exp2(b - k)
    z = tl.where(p + q == 0, 1.0, p + q)
    ok = (r < rows)[:, None] & (c < D)[None, :]
    at = r[:, None] * D + c[None, :]
    x = tl.load(va + at, mask=ok, other=0.0).to(tl.float32)
    y = tl.load(vb + at, mask=ok, other=0.0).to(tl.float32)
    o = tl.where(p[:, None] > 0, x, 0.0) * (p / z)[:, None] + tl.where(q[:, None] > 0, y, 0.0) * (q / z)[:, None]
    tl.store(v + at, o.to(v.dtype.element_ty), mask=ok)
    tl.store(s + r, m + tl.log2(z), mask=r < rows)


def merge_state(v_a, s_a, v_b, s_b):
    S, H, D = v_a.shape
    v_a, s_a, v_b, s_b = v_a.contiguous(), s_a.contiguous(), v_b.contiguous(), s_b.contiguous()
    v, s = torch.empty_like(v_a), torch.empty_like(s_a)
    if S:
        P = triton.next_power_of_2(D)
        wide = D * v.element_size() % 16 == 0
        if wide:
            triton.set_allocator(lambda size, align, stream: torch.empty(size, dtype=torch.int8, device=v.device))
        kernel = two if wide else two_plain
        kernel[(triton.cdiv(S * H, 16),)](v_a, s_a, v_b, s_b, v, s, S * H, D, 16, P)
    return v, s


@triton.jit
def last_arrives(
    v,
    s,
    ptr,
    out,
    so,
    part_v,
    part_m,
    part_l,
    count,
    H,
    D: tl.constexpr,
    B: tl.constexpr,
    P: tl.constexpr,
    K: tl.constexpr,
):
    i = tl.program_id(0).to(tl.int64)
    h = tl.program_id(1)
    k = tl.program_id(2)
    lo = tl.load(ptr + i).to(tl.int64)
    hi = tl.load(ptr + i + 1).to(tl.int64)
    c = tl.arange(0, P)
    m = tl.full([], float("-inf"), tl.float32)
    l = tl.zeros([], tl.float32)
    acc = tl.zeros([P], tl.float32)
    for n0 in range(lo + k * B, hi, K * B):
        n = n0 + tl.arange(0, B)
        a = tl.load(s + n * H + h, mask=n < hi, other=float("-inf"))
        new = tl.maximum(m, tl.max(a, 0))
        ref = tl.where(new == float("-inf"), 0.0, new)
        w = tl.exp2(a - ref)
        x = tl.load(v + (n * H + h)[:, None] * D + c, mask=(w > 0)[:, None] & (c < D), other=0.0).to(tl.float32)
        f = tl.exp2(m - ref)
        acc = acc * f + tl.sum(x * w[:, None], 0)
        l = l * f + tl.sum(w, 0)
        m = new
    row = i * H + h
    if K > 1:
        tl.store(part_v + (row * K + k) * D + c, acc, mask=c < D)
        tl.store(part_m + row * K + k, m)
        tl.store(part_l + row * K + k, l)
        tl.debug_barrier()
        done = tl.atomic_add(count + row, 1, sem="acq_rel")
        if done == K - 1:
            tl.debug_barrier()
            j = tl.arange(0, K)
            ms = tl.load(part_m + row * K + j)
            ls = tl.load(part_l + row * K + j)
            vs = tl.load(part_v + (row * K + j)[:, None] * D + c, mask=(c < D)[None, :], other=0.0)
            m = tl.max(ms, 0)
            ref = tl.where(m == float("-inf"), 0.0, m)
            w = tl.exp2(ms - ref)
            l = tl.sum(ls * w, 0)
            z = tl.where(l == 0, 1.0, l)
            o = tl.sum(vs * w[:, None], 0) / z
            tl.store(out + row * D + c, o.to(out.dtype.element_ty), mask=c < D)
            tl.store(so + row, m + tl.log2(z))
    else:
        z = tl.where(l == 0, 1.0, l)
        tl.store(out + row * D + c, (acc / z).to(out.dtype.element_ty), mask=c < D)
        tl.store(so + row, m + tl.log2(z))


def _ragged(v, s, indptr, K):
    H, D = v.shape[1:]
    S = indptr.shape[0] - 1
    out = torch.empty((S, H, D), dtype=v.dtype, device=v.device)
    so = torch.empty((S, H), dtype=torch.float32, device=v.device)
    if S:
        pv = torch.empty((S, H, K, D), dtype=torch.float32, device=v.device)
        pm = torch.empty((S, H, K), dtype=torch.float32, device=v.device)
        pl = torch.empty((S, H, K), dtype=torch.float32, device=v.device)
        count = torch.zeros((S, H), dtype=torch.int32, device=v.device)
        last_arrives[(S, H, K)](v, s, indptr, out, so, pv, pm, pl, count, H, D, 4, triton.next_power_of_2(D), K)
    return out, so


def variable_length_merge_states(v, s, indptr):
    return _ragged(v.contiguous(), s.contiguous(), indptr.contiguous(), 2)


def merge_states(v, s):
    S, N, H, D = v.shape
    indptr = torch.arange(S + 1, device=v.device) * N
    return _ragged(v.reshape(S * N, H, D).contiguous(), s.reshape(S * N, H).contiguous(), indptr, 1)


@triton.jit
def add(v, s, w, t, mask, H, v0, v1, v2, s0, s1, m0, D: tl.constexpr, P: tl.constexpr):
    """One position a program, a head at a time."""
    i = tl.program_id(0).to(tl.int64)
    if mask is None:
        on = True
    else:
        on = tl.load(mask + i * m0)
    c = tl.arange(0, P)
    for h in range(H):
        a = tl.load(s + i * s0 + tl.cast(h, tl.int64) * s1)
        b = tl.load(t + i * H + h)
        m = tl.maximum(a, b)
        k = tl.where(m == float("-inf"), 0.0, m)
        p, q = tl.exp2(a - k), tl.exp2(b - k)
        z = p + q
        z = tl.where(z > 0, z, 1.0)
        x = tl.load(v + i * v0 + h.to(tl.int64) * v1 + c * v2, mask=(c < D) & (p > 0) & on, other=0.0).to(tl.float32)
        y = tl.load(w + (i * H + h) * D + c, mask=(c < D) & (q > 0) & on, other=0.0).to(tl.float32)
        tl.debug_barrier()
        tl.store(v + i * v0 + h.to(tl.int64) * v1 + c * v2, (x * p + y * q) / z, mask=(c < D) & on)
        tl.store(s + i * s0 + tl.cast(h, tl.int64) * s1, m + tl.log2(z), mask=on)


def merge_state_in_place(v, s, v_other, s_other, mask=None):
    S, H, D = v.shape
    if S:
        add[(S,)](
            v,
            s,
            v_other.contiguous(),
            s_other.contiguous(),
            mask,
            H,
            *v.stride(),
            *s.stride(),
            0 if mask is None else mask.stride(0),
            D,
            triton.next_power_of_2(D),
        )
