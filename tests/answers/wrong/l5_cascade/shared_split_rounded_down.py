"""Where the prefix is split, shares are rounded down: the last keys belong to none.

exercise: attend_shared
level: value
diagnosis: wrong_value
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
    split = tl.program_id(2)
    share = P // tl.num_programs(2) // BLOCK_N * BLOCK_N if tl.num_programs(2) > 1 else P
    for start in range(split * share, tl.minimum(split * share + share, P), BLOCK_N):
        key = (start + n).to(tl.int64)
        live = key < P
        mask = live[:, None] & (d < D)[None, :]
        k = tl.load(k_ptr + (key * Hkv + kv_head)[:, None] * D + d[None, :], mask=mask, other=0.0)
        v = tl.load(v_ptr + (key * Hkv + kv_head)[:, None] * D + d[None, :], mask=mask, other=0.0)
        m, l, acc = step(q, k, v, live, scale, m, l, acc)
    out = ((row // G).to(tl.int64) * tl.num_programs(2) + split) * Hq + head
    safe = tl.where(l > 0, l, 1.0)
    s = tl.where(l > 0, m + tl.log2(safe), float("-inf"))
    tl.store(v_out_ptr + out[:, None] * D + d[None, :], acc / safe[:, None], mask=q_mask)
    tl.store(s_out_ptr + out, s, mask=row < rows)


def attend_shared(q, k, v, scale=None):
    B, Hq, D = q.shape
    P, Hkv, _ = k.shape
    G = Hq // Hkv
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    scale = D**-0.5 if scale is None else scale
    N = max(1, min(8, P // 128))
    v_out = torch.empty((B, N, Hq, D), dtype=torch.float32, device=q.device)
    s_out = torch.empty((B, N, Hq), dtype=torch.float32, device=q.device)
    if B > 0:
        BLOCK_M = min(64, max(16, triton.next_power_of_2(B * G)))
        shared_kernel[(triton.cdiv(B * G, BLOCK_M), Hkv, N)](
            q, k, v, v_out, s_out, scale * LOG2E, B * G, P, Hq, Hkv, D,
            G=G, BLOCK_M=BLOCK_M, BLOCK_N=16, BLOCK_D=max(16, triton.next_power_of_2(D)),
        )  # fmt: skip
    return merge_states(v_out, s_out)


@triton.jit
def merge_states_kernel(
    v_ptr,  # [S, N, H, D]
    s_ptr,  # [S, N, H]
    v_out_ptr,  # [S, H, D]
    s_out_ptr,  # [S, H]
    N,
    H,
    D,
    BLOCK_D: tl.constexpr,
):
    position = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1).to(tl.int64)
    cols = tl.arange(0, BLOCK_D)
    inside = cols < D
    m = float("-inf")
    total = 0.0
    acc = tl.zeros([BLOCK_D], dtype=tl.float32)
    for n in range(0, N):
        state = (position * N + n) * H + head
        s_n = tl.load(s_ptr + state)
        m_new = tl.maximum(m, s_n)
        shift = tl.where(m_new == float("-inf"), 0.0, m_new)
        w_n = tl.exp2(s_n - shift)
        keep = tl.exp2(m - shift)
        v_n = tl.load(v_ptr + state * D + cols, mask=inside & (w_n > 0), other=0.0).to(tl.float32)
        acc = acc * keep + w_n * v_n
        total = total * keep + w_n
        m = m_new
    denom = tl.where(total > 0, total, 1.0)
    out = position * H + head
    s = tl.where(total > 0, m + tl.log2(denom), float("-inf"))
    tl.store(v_out_ptr + out * D + cols, acc / denom, mask=inside)
    tl.store(s_out_ptr + out, s)


def merge_states(v, s):
    S, N, H, D = v.shape
    v, s = v.contiguous(), s.contiguous()
    v_out = torch.empty((S, H, D), dtype=v.dtype, device=v.device)
    s_out = torch.empty((S, H), dtype=torch.float32, device=v.device)
    if S > 0:
        merge_states_kernel[(S, H)](v, s, v_out, s_out, N, H, D, triton.next_power_of_2(D))
    return v_out, s_out
