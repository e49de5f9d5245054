"""The running max moves only if it would by more than 2^20: weights do not fit float16.

exercise: attend_shared
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
    m_new = tl.where(m_new - m > 20.0, m_new, m)
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
