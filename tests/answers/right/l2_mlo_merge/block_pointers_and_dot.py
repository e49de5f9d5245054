"""Block pointers for keys and values, tl.dot for both products, triples combined lane by lane in the merge."""

import torch
import triton
import triton.language as tl


@triton.jit
def partial_kernel(
    q_ptr, k_ptr, v_ptr, m_ptr, l_ptr, o_ptr, L, T, H, D, scale, q0, q1, k0, k1, k2, v0, v1, v2,
    KEYS: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    h = tl.program_id(0).to(tl.int64)
    part = tl.program_id(1)
    first = tl.minimum(part * T, L)
    count = tl.minimum(first + T, L) - first
    q_block = tl.make_block_ptr(q_ptr + h * q0, (1, D), (0, q1), (0, 0), (16, WIDE), (1, 0))
    q = tl.load(q_block, boundary_check=(0, 1), padding_option="zero")  # row 0 is the query, the others are padding
    k_ptr += first.to(tl.int64) * k0 + h * k1
    v_ptr += first.to(tl.int64) * v0 + h * v1
    m = tl.full((16,), float("-inf"), tl.float32)
    l = tl.zeros((16,), tl.float32)
    acc = tl.zeros((16, WIDE), tl.float32)
    for start in range(0, count, KEYS):
        k_block = tl.make_block_ptr(k_ptr, (D, count), (k2, k0), (0, start), (WIDE, KEYS), (0, 1))
        v_block = tl.make_block_ptr(v_ptr, (count, D), (v0, v2), (start, 0), (KEYS, WIDE), (1, 0))
        k = tl.load(k_block, boundary_check=(0, 1), padding_option="zero")
        v = tl.load(v_block, boundary_check=(0, 1), padding_option="zero")
        s = tl.dot(q, k, input_precision="ieee") * scale
        s = tl.where((start + tl.arange(0, KEYS) < count)[None, :], s, float("-inf"))
        top = tl.maximum(m, tl.max(s, 1))
        keep = tl.exp(m - top)
        w = tl.exp(s - top[:, None])
        acc = acc * keep[:, None] + tl.dot(w, v.to(tl.float32), input_precision="ieee")
        l = l * keep + tl.sum(w, 1)
        m = top
    mine = tl.arange(0, 16) == 0
    row = part * H + h
    tl.store(m_ptr + row + tl.zeros((16,), tl.int32), m, mask=mine)
    tl.store(l_ptr + row + tl.zeros((16,), tl.int32), l, mask=mine)
    o = acc / tl.where(l > 0.0, l, 1.0)[:, None]
    o_block = tl.make_block_ptr(o_ptr + row.to(tl.int64) * D, (1, D), (D, 1), (0, 0), (16, WIDE), (1, 0))
    tl.store(o_block, o, boundary_check=(0, 1))


def partial_attention(q, k, v, num_splits, scale=None):
    (H, D), L = q.shape, k.shape[0]
    m = q.new_empty(num_splits, H, dtype=torch.float32)
    l = torch.empty_like(m)
    o = q.new_empty(num_splits, H, D, dtype=torch.float32)
    partial_kernel[(H, num_splits)](
        q, k, v, m, l, o, L, triton.cdiv(L, num_splits), H, D, D**-0.5 if scale is None else scale,
        *q.stride(), *k.stride(), *v.stride(), KEYS=16, WIDE=max(16, triton.next_power_of_2(D)),
    )  # fmt: skip
    return m, l, o


@triton.jit
def combine(m_a, l_a, o_a, m_b, l_b, o_b):
    """Two triples as one; o is not normalized here. (-inf, 0, 0) is neutral."""
    m = tl.maximum(m_a, m_b)
    keep_a = tl.where(m_a == m, 1.0, tl.exp(m_a - m))
    keep_b = tl.where(m_b == m, 1.0, tl.exp(m_b - m))
    return m, l_a * keep_a + l_b * keep_b, o_a * keep_a + o_b * keep_b


@triton.jit
def merge_kernel(m_n_ptr, l_n_ptr, o_n_ptr, o_ptr, N, H, D, PARTS: tl.constexpr, WIDE: tl.constexpr):
    h = tl.program_id(0)
    n = tl.arange(0, PARTS)
    d = tl.program_id(1) * WIDE + tl.arange(0, WIDE)
    m = tl.full((PARTS, 1), float("-inf"), tl.float32)
    l = tl.zeros((PARTS, 1), tl.float32)
    o = tl.zeros((PARTS, WIDE), tl.float32)
    for n0 in range(0, N, PARTS):
        row = (n0 + n) * H + h
        m_n = tl.load(m_n_ptr + row, mask=n0 + n < N, other=float("-inf"))
        l_n = tl.load(l_n_ptr + row, mask=n0 + n < N, other=0.0)
        full = (l_n > 0.0)[:, None] & (d < D)[None, :]
        o_n = tl.load(o_n_ptr + row[:, None].to(tl.int64) * D + d[None, :], mask=full, other=0.0).to(tl.float32)
        m, l, o = combine(m, l, o, m_n[:, None], l_n[:, None], o_n * l_n[:, None])
    top = tl.max(tl.reshape(m, (PARTS,)), 0)  # each lane has merged every PARTS-th part
    keep = tl.where(m == float("-inf"), 0.0, tl.exp(m - top))
    total = tl.sum(tl.reshape(l * keep, (PARTS,)), 0)
    o = tl.sum(o * keep, 0) / tl.where(total > 0.0, total, 1.0)
    tl.store(o_ptr + h * D + d, o.to(o_ptr.dtype.element_ty), mask=d < D)


def merge_mlo(m, l, o):
    N, H, D = o.shape
    out = torch.empty((H, D), dtype=o.dtype, device=o.device)
    grid = (H, triton.cdiv(D, 64))
    merge_kernel[grid](m.contiguous(), l.contiguous(), o.contiguous(), out, N, H, D, PARTS=8, WIDE=64)
    return out


@triton.jit
def pair_kernel(m_a_ptr, l_a_ptr, o_a_ptr, m_b_ptr, l_b_ptr, o_b_ptr, m_ptr, l_ptr, o_ptr, D, WIDE: tl.constexpr):
    h = tl.program_id(0)
    d = tl.arange(0, WIDE)
    m_a = tl.load(m_a_ptr + h)
    l_a = tl.load(l_a_ptr + h)
    m_b = tl.load(m_b_ptr + h)
    l_b = tl.load(l_b_ptr + h)
    o_a = tl.load(o_a_ptr + h * D + d, mask=(d < D) & (l_a > 0.0), other=0.0).to(tl.float32)
    o_b = tl.load(o_b_ptr + h * D + d, mask=(d < D) & (l_b > 0.0), other=0.0).to(tl.float32)
    m, l, o = combine(m_a, l_a, o_a * l_a, m_b, l_b, o_b * l_b)
    tl.store(m_ptr + h, m)
    tl.store(l_ptr + h, l)
    tl.store(o_ptr + h * D + d, (o / tl.where(l > 0.0, l, 1.0)).to(o_ptr.dtype.element_ty), mask=d < D)


def merge_pair(m_a, l_a, o_a, m_b, l_b, o_b):
    H, D = o_a.shape
    m, l, o = torch.empty_like(m_a), torch.empty_like(m_a), o_a.new_empty(H, D)
    m, l = m.contiguous(), l.contiguous()
    wide = triton.next_power_of_2(D)
    parts = [t.contiguous() for t in (m_a, l_a, o_a, m_b, l_b, o_b)]
    pair_kernel[(H,)](*parts, m, l, o, D, WIDE=wide)
    return m, l, o
