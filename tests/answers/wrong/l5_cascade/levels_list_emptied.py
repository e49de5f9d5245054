"""Levels are taken out of the list that the caller gave.

exercise: multi_level_cascade
level: memory
diagnosis: input_changed
"""

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


@triton.jit
def level_kernel(
    q_ptr,  # [B, Hq, D]
    kv_ptr,  # [pages, 2, page_size, Hkv, D]
    group_ptr,  # [groups + 1]
    indptr_ptr,  # [groups + 1]
    indices_ptr,
    last_ptr,  # [groups]
    v_out_ptr,  # [B, Hq, D]
    s_out_ptr,  # [B, Hq]
    scale,
    groups,
    Hq,
    Hkv,
    D,
    page_size,
    G: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    request = tl.program_id(0).to(tl.int64)
    kv_head = tl.program_id(1)
    g = tl.arange(0, BLOCK_M)
    d = tl.arange(0, BLOCK_D)
    n = tl.arange(0, BLOCK_N)
    at = request * Hq + kv_head * G + g
    q_mask = (g < G)[:, None] & (d < D)[None, :]
    q = tl.load(q_ptr + at[:, None] * D + d[None, :], mask=q_mask, other=0.0)
    m = tl.full([BLOCK_M], float("-inf"), tl.float32)
    l = tl.zeros([BLOCK_M], tl.float32)
    acc = tl.zeros([BLOCK_M, BLOCK_D], tl.float32)
    for group in range(0, groups):
        begin = tl.load(group_ptr + group)
        end = tl.load(group_ptr + group + 1)
        first = tl.load(indptr_ptr + group)
        pages = (tl.load(indptr_ptr + group + 1) - first).to(tl.int32)
        length = 0
        if (begin <= request) & (request < end) & (pages > 0):
            length = (pages - 1) * page_size + tl.load(last_ptr + group).to(tl.int32)
        for start in range(0, length, BLOCK_N):
            key = start + n
            live = key < length
            page = tl.load(indices_ptr + first + key // page_size, mask=live, other=0).to(tl.int64)
            mask = live[:, None] & (d < D)[None, :]
            slot = (page * 2 * page_size + key % page_size) * Hkv + kv_head
            k = tl.load(kv_ptr + slot[:, None] * D + d[None, :], mask=mask, other=0.0)
            v = tl.load(kv_ptr + (slot + page_size * Hkv)[:, None] * D + d[None, :], mask=mask, other=0.0)
            m, l, acc = step(q, k, v, live, scale, m, l, acc)
    safe = tl.where(l > 0, l, 1.0)
    s = tl.where(l > 0, m + tl.log2(safe), float("-inf"))
    tl.store(v_out_ptr + at[:, None] * D + d[None, :], acc / safe[:, None], mask=q_mask)
    tl.store(s_out_ptr + at, s, mask=g < G)


def attend_level(q, kv_cache, level, scale):
    B, Hq, D = q.shape
    _, _, page_size, Hkv, _ = kv_cache.shape
    group_indptr, indptr, indices, last_page_len = (one.contiguous() for one in level)
    v = torch.empty((B, Hq, D), dtype=torch.float32, device=q.device)
    s = torch.empty((B, Hq), dtype=torch.float32, device=q.device)
    if B > 0:
        level_kernel[(B, Hkv)](
            q, kv_cache, group_indptr, indptr, indices, last_page_len, v, s, scale * LOG2E,
            group_indptr.shape[0] - 1, Hq, Hkv, D, page_size, G=Hq // Hkv,
            BLOCK_M=max(16, triton.next_power_of_2(Hq // Hkv)), BLOCK_N=16,
            BLOCK_D=max(16, triton.next_power_of_2(D)),
        )  # fmt: skip
    return v, s


def multi_level_cascade(q, kv_cache, levels, scale=None):
    B, Hq, D = q.shape
    q, kv_cache = q.contiguous(), kv_cache.contiguous()
    scale = D**-0.5 if scale is None else scale
    v = torch.zeros((B, Hq, D), dtype=torch.float32, device=q.device)
    s = torch.full((B, Hq), float("-inf"), dtype=torch.float32, device=q.device)
    for level in [levels.pop(0) for _ in range(len(levels))]:
        v, s = merge(v, s, *attend_level(q, kv_cache, level, scale), torch.float32)
    return v.to(q.dtype), s
