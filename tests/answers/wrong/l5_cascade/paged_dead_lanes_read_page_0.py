"""Past the last key page 0 is read, which another request may own, with weight 0.

exercise: attend_paged
level: edge
diagnosis: not_finite
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
def paged_kernel(
    q_ptr,  # [B, Hq, D]
    kv_ptr,  # [pages, 2, page_size, Hkv, D]
    indptr_ptr,  # [B + 1]
    indices_ptr,
    last_ptr,  # [B]
    v_out_ptr,  # [B, Hq, D]
    s_out_ptr,  # [B, Hq]
    scale,
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
    first = tl.load(indptr_ptr + request)
    pages = (tl.load(indptr_ptr + request + 1) - first).to(tl.int32)
    length = 0
    if pages > 0:
        length = (pages - 1) * page_size + tl.load(last_ptr + request).to(tl.int32)
    for start in range(0, length, BLOCK_N):
        key = start + n
        live = key < length
        page = tl.load(indices_ptr + first + key // page_size, mask=live, other=0).to(tl.int64)
        mask = (d < D)[None, :]
        slot = (page * 2 * page_size + key % page_size) * Hkv + kv_head
        k = tl.load(kv_ptr + slot[:, None] * D + d[None, :], mask=mask, other=0.0)
        v = tl.load(kv_ptr + (slot + page_size * Hkv)[:, None] * D + d[None, :], mask=mask, other=0.0)
        m, l, acc = step(q, k, v, live, scale, m, l, acc)
    safe = tl.where(l > 0, l, 1.0)
    s = tl.where(l > 0, m + tl.log2(safe), float("-inf"))
    tl.store(v_out_ptr + at[:, None] * D + d[None, :], acc / safe[:, None], mask=q_mask)
    tl.store(s_out_ptr + at, s, mask=g < G)


def attend_paged(q, kv_cache, indptr, indices, last_page_len, scale=None):
    B, Hq, D = q.shape
    _, _, page_size, Hkv, _ = kv_cache.shape
    G = Hq // Hkv
    q, kv_cache = q.contiguous(), kv_cache.contiguous()
    indptr, indices, last_page_len = indptr.contiguous(), indices.contiguous(), last_page_len.contiguous()
    scale = D**-0.5 if scale is None else scale
    v_out = torch.empty((B, Hq, D), dtype=torch.float32, device=q.device)
    s_out = torch.empty((B, Hq), dtype=torch.float32, device=q.device)
    if B > 0:
        paged_kernel[(B, Hkv)](
            q, kv_cache, indptr, indices, last_page_len, v_out, s_out, scale * LOG2E, Hq, Hkv, D, page_size,
            G=G, BLOCK_M=max(16, triton.next_power_of_2(G)), BLOCK_N=16, BLOCK_D=max(16, triton.next_power_of_2(D)),
        )  # fmt: skip
    return v_out, s_out
