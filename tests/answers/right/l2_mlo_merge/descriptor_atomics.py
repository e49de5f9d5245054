"""A key a step with branches, a pair element by element, parts poured into a descriptor by its atomic_add."""

import torch
import triton
import triton.language as tl


@triton.jit
def key_by_key(Q, K, V, M, L_, O, nkeys, T, scale, sqh, sqd, skl, skh, skd, svl, svh, svd, H: tl.constexpr, D: tl.constexpr, BD: tl.constexpr):
    pid = tl.program_id(0)
    n = pid // H
    h = (pid - n * H).to(tl.int64)
    d = tl.arange(0, BD)
    q = tl.load(Q + h * sqh + d * sqd, d < D, 0.0).to(tl.float32)
    m, l = float("-inf"), 0.0
    o = tl.zeros_like(q)
    j = n * T
    stop = j + T
    if stop > nkeys:
        stop = nkeys
    while j < stop:
        jj = j.to(tl.int64)
        x = tl.sum(q * tl.load(K + jj * skl + h * skh + d * skd, d < D, 0.0).to(tl.float32), 0) * scale
        y = tl.load(V + jj * svl + h * svh + d * svd, d < D, 0.0).to(tl.float32)
        if x > m:
            f = tl.exp(m - x)
            l = l * f + 1.0
            o = o * f + y
            m = x
        else:
            w = tl.exp(x - m)
            l += w
            o += w * y
        j += 1
    tl.store(M + pid, m)
    tl.store(L_ + pid, l)
    if l > 0:
        o = o / l
    tl.store(O + pid * D + d, o, d < D)


def partial_attention(q, k_, v, num_splits, scale=None):
    H, D = q.shape
    L = k_.shape[0]
    new = lambda *shape: torch.empty(shape, dtype=torch.float32, device=q.device)
    m, l, o = new(num_splits, H), new(num_splits, H), new(num_splits, H, D)
    T = (L + num_splits - 1) // num_splits
    if H:
        key_by_key[(num_splits * H,)](q, k_, v, m, l, o, L, T, D**-0.5 if scale is None else scale, *q.stride(), *k_.stride(), *v.stride(), H, D, triton.next_power_of_2(D))
    return m, l, o


@triton.jit
def join(ma, la, oa, mb, lb, ob):
    m = tl.maximum(ma, mb)
    z = tl.where(m == float("-inf"), 0.0, m)
    wa = tl.exp(ma - z) * la
    wb = tl.exp(mb - z) * lb
    l = wa + wb
    one = tl.where(l > 0, l, 1.0)
    o = tl.where(wa > 0, oa, 0.0) * (wa / one) + tl.where(wb > 0, ob, 0.0) * (wb / one)
    return m, l, o


@triton.jit
def pair_elements(m_a, l_a, o_a, m_b, l_b, o_b, m_o, l_o, o_o, total, D: tl.constexpr, B: tl.constexpr):
    e = tl.program_id(0).to(tl.int64) * B + tl.arange(0, B)
    ok = e < total
    h = e // D
    m, l, o = join(
        tl.load(m_a + h, mask=ok, other=float("-inf")),
        tl.load(l_a + h, mask=ok, other=0.0),
        tl.load(o_a + e, mask=ok, other=0.0).to(tl.float32),
        tl.load(m_b + h, mask=ok, other=float("-inf")),
        tl.load(l_b + h, mask=ok, other=0.0),
        tl.load(o_b + e, mask=ok, other=0.0).to(tl.float32),
    )
    tl.store(o_o + e, o.to(o_o.dtype.element_ty), mask=ok)
    first = ok & (e % D == 0)
    tl.store(m_o + h, m, mask=first)
    tl.store(l_o + h, l, mask=first)


def merge_pair(m_a, l_a, o_a, m_b, l_b, o_b):
    args = [x.contiguous() for x in (m_a, l_a, o_a, m_b, l_b, o_b)]
    m, l, o = map(torch.empty_like, args[:3])
    if o.numel():
        pair_elements[(triton.cdiv(o.numel(), 128),)](*args, m, l, o, o.numel(), o.shape[-1], B=128)
    return m, l, o


@triton.jit
def tops(m_ptr, top_ptr, N, H, m0, m1, BH: tl.constexpr):
    h = (tl.program_id(0) * BH + tl.arange(0, BH)).to(tl.int64)
    top = tl.full([BH], float("-inf"), tl.float32)
    for n in range(N):
        top = tl.maximum(top, tl.load(m_ptr + tl.cast(n, tl.int64) * m0 + h * m1, mask=h < H, other=float("-inf")))
    tl.store(top_ptr + h, tl.where(top == float("-inf"), 0.0, top), mask=h < H)


@triton.jit
def pour(m_ptr, l_ptr, o_ptr, top_ptr, num, den, N, H, PAD, m0, m1, l0, l1, o0, o1, o2, D: tl.constexpr, C: tl.constexpr):
    n, h = tl.program_id(0), tl.program_id(1)
    w = tl.exp(tl.load(m_ptr + tl.cast(n, tl.int64) * m0 + tl.cast(h, tl.int64) * m1) - tl.load(top_ptr + h)) * tl.load(l_ptr + tl.cast(n, tl.int64) * l0 + tl.cast(h, tl.int64) * l1)
    w = tl.where(tl.load(m_ptr + tl.cast(n, tl.int64) * m0 + tl.cast(h, tl.int64) * m1) == float("-inf"), 0.0, w)
    d = tl.arange(0, C)
    x = tl.load(o_ptr + n.to(tl.int64) * o0 + h.to(tl.int64) * o1 + d.to(tl.int64) * o2, mask=(d < D) & (w > 0), other=0.0).to(tl.float32)
    into = tl.make_tensor_descriptor(num, shape=[H, PAD], strides=[PAD, 1], block_shape=[1, C])
    into.atomic_add([h, 0], (x * w)[None, :])
    tl.atomic_add(den + h, w, sem="relaxed")


@triton.jit
def divide(num, den, out, PAD, D: tl.constexpr, C: tl.constexpr):
    h = tl.program_id(0)
    d = tl.arange(0, C)
    l = tl.load(den + h)
    x = tl.load(num + h * PAD + d)
    tl.store(out + h * D + d, x / tl.where(l > 0, l, 1.0), mask=d < D)


def merge_mlo(m, l, o):
    N, H, D = o.shape
    out = torch.zeros((H, D), dtype=o.dtype, device=o.device)
    if N == 0 or H == 0:
        return out
    triton.set_allocator(lambda size, align, stream: torch.empty(size, dtype=torch.int8, device=o.device))
    C = max(4, triton.next_power_of_2(D))
    num = torch.zeros(H, C, device=o.device)
    den = torch.zeros(H, device=o.device)
    top = torch.empty(H, device=o.device)
    tops[(triton.cdiv(H, 4),)](m, top, N, H, *m.stride(), 4)
    pour[(N, H)](m, l, o, top, num, den, N, H, C, *m.stride(), *l.stride(), *o.stride(), D, C)
    divide[(H,)](num, den, out, C, D, C)
    return out
