"""The KV heads of a slot are taken to be D elements apart.

exercise: attend_paged
level: memory
diagnosis: out_of_bounds
told: kv_cache.stride(3) is 40, but here 5 is taken for it
"""

import torch
import triton
import triton.language as tl

LOG2E = 1.4426950408889634


@triton.jit
def step(q, k, v, live, scale, m, l, acc):
    """BLOCK_N more keys for a block of query rows."""
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
    group_ptr,  # [groups + 1], or None: group g is request g
    indptr_ptr,  # [groups + 1]
    indices_ptr,
    last_ptr,  # [groups]
    v_out_ptr,  # [B, Hq, D]
    s_out_ptr,  # [B, Hq]
    scale,
    D,
    page_size,
    qb, qh, qd, kp, k2, kn, kh, kd,
    ob, sb,
    G: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr,
):  # fmt: skip
    group = tl.program_id(0).to(tl.int64)
    kv_head = tl.program_id(1).to(tl.int64)
    if group_ptr is None:
        first_row = group * G
        end_row = first_row + G
    else:
        first_row = tl.load(group_ptr + group).to(tl.int64) * G
        end_row = tl.load(group_ptr + group + 1).to(tl.int64) * G
    d = tl.arange(0, BLOCK_D).to(tl.int64)
    first = tl.load(indptr_ptr + group).to(tl.int64)
    pages = (tl.load(indptr_ptr + group + 1).to(tl.int64) - first).to(tl.int32)
    length = 0
    if pages > 0:
        length = (pages - 1) * page_size + tl.load(last_ptr + group).to(tl.int32)
    for block in range(first_row, end_row, BLOCK_M):
        row = block + tl.arange(0, BLOCK_M)
        request = (row // G).to(tl.int64)
        head = kv_head * G + row % G
        q_mask = (row < end_row)[:, None] & (d < D)[None, :]
        q = tl.load(q_ptr + (request * qb + head * qh)[:, None] + d[None, :] * qd, mask=q_mask, other=0.0)
        m = tl.full([BLOCK_M], float("-inf"), tl.float32)
        l = tl.zeros([BLOCK_M], tl.float32)
        acc = tl.zeros([BLOCK_M, BLOCK_D], tl.float32)
        for start in range(0, length, BLOCK_N):
            key = start + tl.arange(0, BLOCK_N)
            live = key < length
            page = tl.load(indices_ptr + first + key // page_size, mask=live, other=0).to(tl.int64)
            mask = live[:, None] & (d < D)[None, :]
            at = (page * kp + (key % page_size).to(tl.int64) * kn + kv_head * D)[:, None] + d[None, :] * kd
            k = tl.load(kv_ptr + at, mask=mask, other=0.0)
            v = tl.load(kv_ptr + at + k2, mask=mask, other=0.0)
            m, l, acc = step(q, k, v, live, scale, m, l, acc)
        safe = tl.where(l > 0, l, 1.0)
        out = request * ob + head * D
        tl.store(v_out_ptr + out[:, None] + d[None, :], acc / safe[:, None], mask=q_mask)
        tl.store(s_out_ptr + request * sb + head, tl.where(l > 0, m + tl.log2(safe), float("-inf")), mask=row < end_row)


def launch_paged(q, kv_cache, group_indptr, indptr, indices, last_page_len, scale, v_out, s_out):
    B, Hq, D = q.shape
    _, _, page_size, Hkv, _ = kv_cache.shape
    G = Hq // Hkv
    groups = indptr.shape[0] - 1
    if groups > 0:
        group_indptr = None if group_indptr is None else group_indptr.contiguous()
        paged_kernel[(groups, Hkv)](
            q, kv_cache, group_indptr, indptr.contiguous(), indices.contiguous(), last_page_len.contiguous(),
            v_out, s_out, scale * LOG2E, D, page_size, *q.stride(), *kv_cache.stride(), v_out.stride(0), s_out.stride(0),
            G=G, BLOCK_M=32, BLOCK_N=16, BLOCK_D=max(16, triton.next_power_of_2(D)), num_stages=1,
        )  # fmt: skip


def attend_paged(q, kv_cache, indptr, indices, last_page_len, scale=None):
    B, Hq, D = q.shape
    scale = D**-0.5 if scale is None else scale
    v_out = torch.empty((B, Hq, D), dtype=torch.float32, device=q.device)
    s_out = torch.empty((B, Hq), dtype=torch.float32, device=q.device)
    launch_paged(q, kv_cache, None, indptr, indices, last_page_len, scale, v_out, s_out)
    return v_out, s_out
