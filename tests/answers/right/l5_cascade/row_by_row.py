"""Own pages without tl.dot, a query row a program; all levels merged at once."""

import torch
import triton
import triton.language as tl

LOG2E = 1.4426950408889634


@triton.jit
def step(q, k, v, live, scale, m, l, acc):
    """BLOCK_N more keys for a block of query rows: l1's recurrence in base 2."""
    scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
    scores = tl.where(live[None, :], scores, float("-inf"))
    m_new = tl.maximum(m, tl.max(scores, axis=1))
    shift = tl.where(m_new == float("-inf"), 0.0, m_new)
    p = tl.exp2(scores - shift[:, None])
    keep = tl.exp2(m - shift)
    l = l * keep + tl.sum(p, axis=1)
    acc = acc * keep[:, None] + tl.dot(p.to(v.dtype), v, input_precision="ieee")
    return m_new, l, acc


@triton.jit
def shared_kernel(
    q_ptr,  # [B, Hq, D]
    k_ptr,  # [P, Hkv, D]
    v_ptr,  # [P, Hkv, D]
    v_out_ptr,  # [B, Hq, D]
    s_out_ptr,  # [B, Hq]
    scale,
    rows,  # B * G
    P,
    Hq,
    Hkv,
    D,
    G: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    row = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    kv_head = tl.program_id(1)
    d = tl.arange(0, BLOCK_D)
    n = tl.arange(0, BLOCK_N)
    head = kv_head * G + row % G
    at = (row // G).to(tl.int64) * Hq + head
    q_mask = (row < rows)[:, None] & (d < D)[None, :]
    q = tl.load(q_ptr + at[:, None] * D + d[None, :], mask=q_mask, other=0.0)
    m = tl.full([BLOCK_M], float("-inf"), tl.float32)
    l = tl.zeros([BLOCK_M], tl.float32)
    acc = tl.zeros([BLOCK_M, BLOCK_D], tl.float32)
    for start in range(0, P, BLOCK_N):
        key = (start + n).to(tl.int64)
        live = key < P
        mask = live[:, None] & (d < D)[None, :]
        k = tl.load(k_ptr + (key * Hkv + kv_head)[:, None] * D + d[None, :], mask=mask, other=0.0)
        v = tl.load(v_ptr + (key * Hkv + kv_head)[:, None] * D + d[None, :], mask=mask, other=0.0)
        m, l, acc = step(q, k, v, live, scale, m, l, acc)
    safe = tl.where(l > 0, l, 1.0)
    s = tl.where(l > 0, m + tl.log2(safe), float("-inf"))
    tl.store(v_out_ptr + at[:, None] * D + d[None, :], acc / safe[:, None], mask=q_mask)
    tl.store(s_out_ptr + at, s, mask=row < rows)


def attend_shared(q, k, v, scale=None):
    B, Hq, D = q.shape
    P, Hkv, _ = k.shape
    G = Hq // Hkv
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    scale = D**-0.5 if scale is None else scale
    v_out = torch.empty((B, Hq, D), dtype=torch.float32, device=q.device)
    s_out = torch.empty((B, Hq), dtype=torch.float32, device=q.device)
    if B > 0:
        BLOCK_M = min(64, max(16, triton.next_power_of_2(B * G)))
        shared_kernel[(triton.cdiv(B * G, BLOCK_M), Hkv)](
            q, k, v, v_out, s_out, scale * LOG2E, B * G, P, Hq, Hkv, D,
            G=G, BLOCK_M=BLOCK_M, BLOCK_N=16, BLOCK_D=max(16, triton.next_power_of_2(D)),
        )  # fmt: skip
    return v_out, s_out


@triton.jit
def row_kernel(
    q_ptr,  # [B, Hq, D] by strides
    kv_ptr,  # [pages, 2, page_size, Hkv, D] by strides
    group_ptr,  # [groups + 1], or unused
    indptr_ptr,  # [groups + 1]
    indices_ptr,
    last_ptr,  # [groups]
    o_ptr,  # [B, Hq, D]
    s_ptr,  # [B, Hq]
    scale, groups, Hq, G, D, page_size, q_b, q_h, q_d, c_p, c_2, c_n, c_h, c_d,
    GROUPED: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """One query row a program, no tl.dot: products and a sum over the columns."""
    row = tl.program_id(0)
    b = (row // Hq).to(tl.int64)
    h = (row % Hq).to(tl.int64)
    d = tl.arange(0, BLOCK_D)
    q = tl.load(q_ptr + b * q_b + h * q_h + d * q_d, mask=d < D, other=0.0).to(tl.float32) * scale
    owner = b.to(tl.int32)
    if GROUPED:
        owner = -1
        for group in range(0, groups):
            inside = (tl.load(group_ptr + group) <= b) & (b < tl.load(group_ptr + group + 1))
            owner = tl.where(inside, group, owner)
    m = tl.full([], float("-inf"), tl.float32)
    l = tl.full([], 0.0, tl.float32)
    acc = tl.zeros([BLOCK_D], tl.float32)
    if owner >= 0:
        first = tl.load(indptr_ptr + owner).to(tl.int64)
        stop = tl.load(indptr_ptr + owner + 1).to(tl.int64)
        for j in range(first, stop):
            page = tl.load(indices_ptr + j).to(tl.int64)
            used = page_size
            if j + 1 == stop:
                used = tl.load(last_ptr + owner).to(tl.int32)
            for start in range(0, used, BLOCK_N):
                n = (start + tl.arange(0, BLOCK_N)).to(tl.int64)
                ok = (n < used)[:, None] & (d < D)[None, :]
                at = kv_ptr + page * c_p + (h // G) * c_h + n[:, None] * c_n + d[None, :] * c_d
                k = tl.load(at, mask=ok, other=0.0).to(tl.float32)
                x = tl.where(n < used, tl.sum(k * q[None, :], 1), float("-inf"))
                m_new = tl.maximum(m, tl.max(x, 0))
                p = tl.exp2(x - m_new)
                keep = tl.exp2(m - m_new)
                v = tl.load(at + c_2, mask=ok, other=0.0).to(tl.float32)
                acc = acc * keep + tl.sum(p[:, None] * v, 0)
                l = l * keep + tl.sum(p, 0)
                m = m_new
    if l > 0:
        acc = acc / l
        m = m + tl.log2(l)
    tl.store(o_ptr + row.to(tl.int64) * D + d, acc, mask=d < D)
    tl.store(s_ptr + row, m)


def attend_rows(q, kv_cache, group, indptr, indices, last_page_len, scale):
    B, Hq, D = q.shape
    o = torch.empty((B, Hq, D), dtype=torch.float32, device=q.device)
    s = torch.empty((B, Hq), dtype=torch.float32, device=q.device)
    scale = D**-0.5 if scale is None else scale
    if B > 0:
        row_kernel[(B * Hq,)](
            q, kv_cache, group, indptr.contiguous(), indices.contiguous(), last_page_len.contiguous(), o, s,
            scale * LOG2E, indptr.shape[0] - 1, Hq, Hq // kv_cache.shape[3], D, kv_cache.shape[2],
            *q.stride(), *kv_cache.stride(), GROUPED=group is not None, BLOCK_N=8, BLOCK_D=triton.next_power_of_2(D),
        )  # fmt: skip
    return o, s


def attend_paged(q, kv_cache, indptr, indices, last_page_len, scale=None):
    return attend_rows(q, kv_cache, None, indptr, indices, last_page_len, scale)


@triton.jit
def many_kernel(o_ptr, s_ptr, out_ptr, s_out_ptr, rows, N, D, BLOCK_D: tl.constexpr):
    """Merges the N levels of one row: o[N, rows, D], s[N, rows]."""
    row = tl.program_id(0).to(tl.int64)
    d = tl.arange(0, BLOCK_D)
    top = tl.full([], float("-inf"), tl.float32)
    for n in range(0, N):
        top = tl.maximum(top, tl.load(s_ptr + n * rows + row))
    shift = tl.where(top == float("-inf"), 0.0, top)
    total = tl.full([], 0.0, tl.float32)
    acc = tl.zeros([BLOCK_D], tl.float32)
    for n in range(0, N):
        w = tl.exp2(tl.load(s_ptr + n * rows + row) - shift)
        acc += w * tl.load(o_ptr + (n * rows + row) * D + d, mask=d < D, other=0.0)
        total += w
    safe = tl.where(total > 0, total, 1.0)
    tl.store(out_ptr + row * D + d, (acc / safe).to(out_ptr.dtype.element_ty), mask=d < D)
    tl.store(s_out_ptr + row, tl.where(total > 0, shift + tl.log2(safe), float("-inf")))


def multi_level_cascade(q, kv_cache, levels, scale=None):
    B, Hq, D = q.shape
    o = torch.empty((len(levels), B, Hq, D), dtype=torch.float32, device=q.device)
    s = torch.empty((len(levels), B, Hq), dtype=torch.float32, device=q.device)
    for i, (group, *table) in enumerate(levels):
        o_level, s_level = attend_rows(q, kv_cache, group.contiguous(), *table, scale)
        o[i].copy_(o_level)
        s[i].copy_(s_level)
    out = torch.empty((B, Hq, D), dtype=q.dtype, device=q.device)
    s_out = torch.empty((B, Hq), dtype=torch.float32, device=q.device)
    if B > 0:
        many_kernel[(B * Hq,)](o, s, out, s_out, B * Hq, len(levels), D, triton.next_power_of_2(D))
    return out, s_out


@triton.jit
def merge_kernel(v_a_ptr, s_a_ptr, v_b_ptr, s_b_ptr, v_ptr, s_ptr, D, BLOCK_D: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    d = tl.arange(0, BLOCK_D)
    s_a = tl.load(s_a_ptr + row)
    s_b = tl.load(s_b_ptr + row)
    top = tl.maximum(s_a, s_b)
    shift = tl.where(top == float("-inf"), 0.0, top)
    w_a = tl.exp2(s_a - shift)
    w_b = tl.exp2(s_b - shift)
    total = w_a + w_b
    safe = tl.where(total > 0, total, 1.0)
    v_a = tl.load(v_a_ptr + row * D + d, mask=d < D, other=0.0)
    v_b = tl.load(v_b_ptr + row * D + d, mask=d < D, other=0.0)
    v = (w_a * v_a + w_b * v_b) / safe
    s = tl.where(total > 0, shift + tl.log2(safe), float("-inf"))
    tl.store(v_ptr + row * D + d, v.to(v_ptr.dtype.element_ty), mask=d < D)
    tl.store(s_ptr + row, s)


def merge(v_a, s_a, v_b, s_b, dtype):
    B, Hq, D = v_a.shape
    v = torch.empty((B, Hq, D), dtype=dtype, device=v_a.device)
    s = torch.empty((B, Hq), dtype=torch.float32, device=v_a.device)
    if B > 0:
        merge_kernel[(B * Hq,)](v_a, s_a, v_b, s_b, v, s, D, triton.next_power_of_2(D))
    return v, s


def cascade(q, k_shared, v_shared, kv_cache, indptr, indices, last_page_len, scale=None):
    v_a, s_a = attend_shared(q, k_shared, v_shared, scale)
    v_b, s_b = attend_paged(q, kv_cache, indptr, indices, last_page_len, scale)
    return merge(v_a, s_a, v_b, s_b, q.dtype)
